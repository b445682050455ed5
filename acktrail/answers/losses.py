"""Losses and accounts, from `loss_incidents`, `loss_events` and `delivery_ledger`."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Any

import pyarrow.compute as pc

from acktrail.contracts.gold import DELIVERY_LEDGER, LOSS_EVENTS, LOSS_INCIDENTS
from acktrail.contracts.vocabulary import State
from acktrail.errors import UsageError
from acktrail.lake import Lake

Row = dict[str, Any]

INCIDENT_COLUMNS = (
    *("incident", "cluster", "started_at", "topic", "group", "state", "cause", "confidence"),
    *("told", "ids", "sessions", "partitions", "client_ids", "hosts", "because"),
)
EVENT_COLUMNS = (
    *(
        "cluster",
        "client_id",
        "host",
        "session",
        "topic",
        "group",
        "first_seq",
        "last_seq",
        "count",
    ),
    *("partition", "first_offset", "last_offset", "first_at", "last_at", "state", "told", "cause"),
    *("confidence", "because", "evidence"),
)
STATES = tuple(s.value for s in State)
"""Of these `sent` is the sum."""
_LOST = (*(s for s in STATES if s.startswith("lost_")), State.UNACCOUNTED.value)
INCIDENT_STATES = (
    *(*_LOST, State.REJECTED.value),
    *(State.SKIPPED_BY_CONSUMER.value, State.EXPIRED_BEFORE_READ.value),
)
"""Of ids in these an incident is made."""
_RECORDS = ("duplicates", "redelivered", "out_of_order", "ghosts", "forwarded")
"""Counts beside the states: an id in one of them has a state as well."""
_SUMMED = ("sent", "acked", *STATES, "residual", *_RECORDS)
LEDGER_COLUMNS = (
    *("cluster", "topic", "group", "client_id", "sent", "acked", *STATES, "lost", "residual"),
    *(*_RECORDS, "latency_p99_ms", "first_at", "last_at"),
)
BLOCK_COLUMNS = ("session", "block", *LEDGER_COLUMNS)
_OLD = datetime(1, 1, 1, tzinfo=UTC)


@dataclass(frozen=True)
class Wanted:
    """Which rows are asked for; None: all."""

    cluster: str | None = None
    topic: str | None = None
    since: datetime | None = None

    def where(self, ended: str) -> Any:
        """The rows of these names that ended at or after *since*, or have no time."""
        found = None
        for column, value in (("cluster", self.cluster), ("topic", self.topic)):
            if value is not None:
                found = _and(found, pc.field(column) == value)
        if self.since is not None:
            recent = (pc.field(ended) >= self.since) | pc.field(ended).is_null()
            found = _and(found, recent)
        return found


def _and(one: Any, other: Any) -> Any:
    return other if one is None else one & other


def incidents(lake: Lake, wanted: Wanted) -> list[Row]:
    """The incidents, newest first; of one time, those that no application was told of first."""
    rows: list[Row] = lake.read(LOSS_INCIDENTS, wanted.where("ended_at")).to_pylist()
    return sorted(
        rows, key=lambda r: (r["started_at"] or _OLD, not r["told"], r["ids"]), reverse=True
    )


def events(lake: Lake, wanted: Wanted) -> list[Row]:
    """Every range of lost ids."""
    rows: list[Row] = lake.read(LOSS_EVENTS, wanted.where("last_at")).to_pylist()
    return sorted(rows, key=lambda r: (r["cluster"], r["topic"], r["session"], r["first_seq"]))


def incident_columns(incidents: Sequence[Row]) -> list[str]:
    """The columns a person reads, with the cluster where there are several."""
    clusters = {incident["cluster"] for incident in incidents}
    return [
        *("incident", "started_at"),
        *(("cluster",) if len(clusters) > 1 else ()),
        *("topic", "group", "state", "cause", "ids", "because"),
    ]


def accounts(lake: Lake, wanted: Wanted, by: Sequence[str]) -> list[Row]:
    """The ledger, summed by *by*."""
    needed = sorted({*by, *_SUMMED, "latency_p99_ms", "first_at", "last_at"})
    rows = lake.read(DELIVERY_LEDGER, wanted.where("last_at"), needed).to_pylist()
    summed: dict[tuple[Any, ...], Row] = {}
    for row in rows:
        key = tuple(row[name] for name in by)
        _add(summed.setdefault(key, dict(zip(by, key, strict=True))), row)
    return [summed[key] for key in sorted(summed, key=lambda k: [str(v or "") for v in k])]


def shown_columns(accounts: Sequence[Row], blocks: bool) -> list[str]:
    """The columns a person reads: of the counts those that are not 0 everywhere."""
    clusters = {account["cluster"] for account in accounts}
    names = [
        *(("session", "block") if blocks else ()),
        *(("cluster",) if len(clusters) > 1 else ()),
        *("topic", "group", "client_id", "sent", State.DELIVERED.value),
    ]
    counts = (*STATES, "residual", *_RECORDS)
    return [*names, *(c for c in counts if c not in names and any(a[c] for a in accounts))]


def _add(total: Row, row: Mapping[str, Any]) -> None:
    for name in _SUMMED:
        total[name] = total.get(name, 0) + row[name]
    total["lost"] = total.get("lost", 0) + sum(row[name] for name in _LOST)
    for name, choose in (("latency_p99_ms", max), ("first_at", min), ("last_at", max)):
        known = [v for v in (total.get(name), row[name]) if v is not None]
        total[name] = choose(known) if known else None


def incident_named(lake: Lake, name: str) -> Row:
    """The incident whose name begins with *name*; UsageError where none or several do."""
    rows = incidents(lake, Wanted())
    found = [r for r in rows if r["incident"].startswith(name)]
    if len(found) == 1:
        return found[0]
    if name in {r["topic"] for r in rows}:
        raise UsageError(
            f"{name} is a topic. `acktrail losses --topic {name}` lists its incidents; explain one."
        )
    if not rows:
        raise UsageError(f"No incident is named {name}…: the lake has no incident.")
    listed = ", ".join(r["incident"] for r in (found or rows)[:5])
    if found:
        raise UsageError(f"{len(found)} incidents are named {name}…: {listed}. Write more of it.")
    raise UsageError(
        f"No incident is named {name}…. The newest are {listed}; `acktrail losses` lists all."
    )


def events_of(lake: Lake, incident: Mapping[str, Any]) -> list[Row]:
    """The loss events that make up an incident."""
    where = events_where(incident)
    rows: list[Row] = lake.read(LOSS_EVENTS, where).to_pylist()
    return sorted(rows, key=lambda r: (r["session"], r["first_seq"]))


def events_where(incident: Mapping[str, Any]) -> Any:
    """Which rows of `loss_events` make up *incident*."""
    where: Any = None
    for column in ("cluster", "topic", "group", "state", "cause"):
        where = _and(where, pc.field(column) == incident[column])
    if incident["started_at"] is None:
        return _and(where, pc.field("first_at").is_null())
    where = _and(where, pc.field("first_at") >= incident["started_at"])
    return _and(where, pc.field("first_at") <= (incident["ended_at"] or incident["started_at"]))
