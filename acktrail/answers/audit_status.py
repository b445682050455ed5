"""Which clients are audited and which are not, how completely, and when each last reported.

Audited are those that sent heartbeats; unaudited are producers that logs or metrics show, and
groups that have committed, without any. Of audited producers, `outcomes` is the number of ids of
which the reporter knew the outcome.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from typing import Any

from acktrail.contracts.bronze import AUDIT_REPORTS, GROUP_OFFSETS
from acktrail.contracts.silver import CLIENTS
from acktrail.contracts.vocabulary import Tier
from acktrail.lake import Lake

Row = dict[str, Any]
COLUMNS = (
    *("cluster", "client_id", "host", "role", "topics", "audit", "mode", "handed_over"),
    *("outcomes", "dropped", "unaudited", "last_report_at"),
)
SILENT = timedelta(minutes=2)
"""Several intervals of a reporter without a word."""
BY_HAND = "files"
"""The mode of clients whose heartbeats say nothing of outcomes."""


@dataclass
class _Seen:
    """The newest heartbeat of every session (or member) and topic of one client."""

    newest: dict[tuple[str, str, str], Row] = field(default_factory=dict)

    def add(self, row: Row) -> None:
        """One heartbeat more."""
        key = (row["session"], row["group"], f"{row['reporter']}/{row['topic']}")
        known = self.newest.get(key)
        if known is None or (row["reported_at"], row["number"]) > (
            known["reported_at"],
            known["number"],
        ):
            self.newest[key] = row


def audit_status(lake: Lake, as_of: datetime, since: timedelta = timedelta(days=7)) -> list[Row]:
    """One row for each client of the time before *as_of*: audited ones first."""
    import pyarrow.dataset as ds

    first = as_of - since
    alive = ds.field("tier") == Tier.HEARTBEAT.value
    wanted = [
        *("cluster", "session", "topic", "group", "reporter", "number", "records", "settings"),
        *("closed", "exited", "outcomes", "dropped", "reported_at"),
    ]
    beats = lake.read(AUDIT_REPORTS, alive & (ds.field("day") >= f"{first:%Y-%m-%d}"), wanted)
    clients: dict[tuple[str, str, str, str], _Seen] = {}
    for row in beats.to_pylist():
        settings = dict(row["settings"] or ())
        row["settings"] = settings
        role = "producer" if row["session"] else f"group {row['group']}"
        place = (row["cluster"], settings.get("client_id", ""), settings.get("host", ""), role)
        clients.setdefault(place, _Seen()).add(row)
    audited = [_audited(place, found.newest.values(), as_of) for place, found in clients.items()]
    rows = [row for row in audited if row["last_report_at"] >= first]
    return sorted([*rows, *_unaudited(lake, set(clients), first)], key=_order)


def _audited(place: tuple[str, str, str, str], beats: Iterable[Row], as_of: datetime) -> Row:
    listed = list(beats)
    last = max(beat["reported_at"] for beat in listed)
    over = all(beat["closed"] or beat["exited"] for beat in listed)
    state = "ended" if over else "silent" if as_of - last > SILENT else "on"
    cluster, client_id, host, role = place
    producing = role == "producer"
    told = sum(sum(_counts(beat["outcomes"]).values()) for beat in listed)
    modes = {_mode(beat) for beat in listed}
    return {
        "cluster": cluster,
        "client_id": client_id,
        "host": host,
        "role": role,
        "topics": ", ".join(sorted({beat["topic"] for beat in listed})),
        "audit": state,
        "mode": "+".join(sorted(modes)),
        "handed_over": sum(beat["records"] for beat in listed) if producing else None,
        "outcomes": told if producing and modes != {BY_HAND} else None,
        "dropped": sum(sum(_counts(beat["dropped"]).values()) for beat in listed),
        "unaudited": sum(int(beat["settings"].get("unaudited", 0)) for beat in listed),
        "last_report_at": last,
    }


def _mode(beat: Mapping[str, Any]) -> str:
    """How much of each message is known."""
    if not beat["session"]:
        return "reads"
    named = beat["settings"].get("audit_mode")
    return str(named) if named else "ids" if beat["outcomes"] else BY_HAND


def _counts(pairs: Any) -> dict[str, int]:
    return {name: int(count) for name, count in dict(pairs or ()).items()}


def _unaudited(
    lake: Lake, audited: set[tuple[str, str, str, str]], since: datetime
) -> Iterable[Row]:
    """Clients in logs or metrics, and groups with commits, of which no report came."""
    import pyarrow.dataset as ds

    producers = {place[:3] for place in audited if place[3] == "producer"}
    named = {(cluster, client) for cluster, client, _ in producers}
    groups = {(place[0], place[3]) for place in audited}
    recent = ds.field("last_seen_at") >= since
    for row in lake.read(CLIENTS, recent & ~ds.field("in_audits")).to_pylist():
        place = (row["cluster"], row["client_id"], row["host"])
        if place not in producers and (row["host"] or place[:2] not in named):
            yield _row(*place, "producer")
    commits = lake.read(GROUP_OFFSETS, ds.field("at") >= since, ["cluster", "group", "topic"])
    topics: dict[tuple[str, str], set[str]] = {}
    for row in commits.group_by(["cluster", "group", "topic"]).aggregate([]).to_pylist():
        group = (row["cluster"], f"group {row['group']}")
        if group not in groups:
            topics.setdefault(group, set()).add(row["topic"])
    for (cluster, role), found in topics.items():
        yield _row(cluster, "", "", role, ", ".join(sorted(found)))


def _row(cluster: str, client_id: str, host: str, role: str, topics: str = "") -> Row:
    empty: Row = dict.fromkeys(COLUMNS)
    return empty | {
        "cluster": cluster,
        "client_id": client_id,
        "host": host,
        "role": role,
        "audit": "off",
        "topics": topics,
    }


def _order(row: Row) -> tuple[Any, ...]:
    return (row["audit"] == "off", row["cluster"], row["role"], row["client_id"], row["host"])
