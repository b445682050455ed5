"""The losses of a window, the most silent and the largest first; and the accounts behind them."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc

from acktrail.answers.inquiry import Inquiry, both
from acktrail.answers.losses import INCIDENT_STATES, STATES
from acktrail.answers.many import Row, Top, grouped, top
from acktrail.contracts.gold import DELIVERY_LEDGER, LOSS_EVENTS, LOSS_INCIDENTS
from acktrail.lake import Lake

INCIDENT_COLUMNS = (
    *("cluster", "incident", "topic", "group", "state", "cause", "confidence", "told"),
    *("started_at", "ended_at", "ids", "events", "sessions", "partitions", "client_ids", "hosts"),
    "because",
)
_ORDER = (
    *(("told", "ascending"), ("ids", "descending"), ("started_at", "descending")),
    ("incident", "ascending"),
)
_COUNTS = (*STATES, "sent", "acked", "residual", "duplicates", "redelivered", "out_of_order")
_REASONS = 20_000
"""Accounts whose reasons are added up, at most."""


@dataclass(frozen=True)
class Lost:
    """The incidents of a window."""

    incidents: Top = field(default_factory=Top)
    by_state: Mapping[tuple[str, bool], int] = field(default_factory=dict)
    """State, and whether it is of a group, to messages of all incidents."""

    def of_log(self) -> dict[str, int]:
        """State to messages that the log lacks."""
        return {state: n for (state, group), n in self.by_state.items() if not group}

    def of_groups(self) -> dict[str, int]:
        """State to messages that groups did not get, counted for each group."""
        return {state: n for (state, group), n in self.by_state.items() if group}


def lost(lake: Lake, asked: Inquiry, most: int, incident: str | None = None) -> Lost:
    """The incidents in the window of *asked*; only that named *incident*, where one is."""
    where = asked.overlapping(LOSS_INCIDENTS, "started_at", "ended_at")
    if asked.client_id is not None:
        where = both(where, pc.field("incident").isin(_incidents_of(lake, asked, where)))
    if incident is not None:
        named = asked.named(LOSS_INCIDENTS)
        where = both(named, pc.field("incident") == incident)
    sums = grouped(lake, LOSS_INCIDENTS, where, ("state", "group"), [("ids", "sum")])
    by_state: dict[tuple[str, bool], int] = {}
    for row in sums.to_pylist():
        key = (row["state"], bool(row["group"]))
        by_state[key] = by_state.get(key, 0) + (row["ids"] or 0)
    incidents = top(lake, LOSS_INCIDENTS, where, INCIDENT_COLUMNS, _ORDER, most)
    return Lost(incidents, dict(sorted(by_state.items())))


def _incidents_of(lake: Lake, asked: Inquiry, where: Any) -> pa.Array[Any]:
    """The incidents that name the asked client."""
    found = [
        str(row["incident"])
        for batch in lake.batches(LOSS_INCIDENTS, where, ["incident", "client_ids"])
        for row in batch.to_pylist()
        if asked.client_id in (row["client_ids"] or ())
    ]
    return pa.array(found, pa.string())  # typed: there may be none


@dataclass(frozen=True)
class Ledger:
    """The accounts of the blocks that were busy in a window."""

    rows: list[Row] = field(default_factory=list)
    """One per cluster, topic and group (empty: the log itself), those with losses first."""
    reasons: Mapping[str, int] = field(default_factory=dict)
    """Why messages are pending or inconclusive, with their number."""
    reasons_cut: bool = False

    @cached_property
    def log(self) -> Row:
        """The sums over all topics, for the log itself."""
        found: Row = dict.fromkeys(_COUNTS, 0)
        for row in self.rows:
            if not row["group"]:
                for name in _COUNTS:
                    found[name] += row[name] or 0
        return found

    @property
    def undecided(self) -> int:
        """Messages that are pending or inconclusive for the log."""
        log = self.log
        return int(log["pending"] + log["inconclusive"])


def ledger(lake: Lake, asked: Inquiry) -> Ledger:
    """The accounts of the window of *asked*."""
    where = asked.overlapping(DELIVERY_LEDGER, "first_at", "last_at")
    measures = [*((name, "sum") for name in _COUNTS), ("latency_p99_ms", "max")]
    sums = grouped(lake, DELIVERY_LEDGER, where, ("cluster", "topic", "group"), measures)
    rows = sums.to_pylist()
    for row in rows:
        row["lost"] = sum(row[state] or 0 for state in INCIDENT_STATES)
    rows.sort(key=lambda r: (-r["lost"], r["cluster"], r["topic"], r["group"]))
    known = Ledger(rows)
    if not known.undecided:
        return known
    return Ledger(rows, *_reasons(lake, where))


def _reasons(lake: Lake, where: Any) -> tuple[dict[str, int], bool]:
    undecided = (pc.field("pending") > 0) | (pc.field("inconclusive") > 0)
    found: dict[str, int] = {}
    read = 0
    for batch in lake.batches(DELIVERY_LEDGER, both(where, undecided), ["reasons", "group"]):
        for row in batch.slice(0, max(0, _REASONS - read)).to_pylist():
            for reason, number in dict(row["reasons"] or ()).items():
                if not row["group"] and str(number).isdigit():
                    found[reason] = found.get(reason, 0) + int(number)
        read += batch.num_rows
    return dict(sorted(found.items(), key=lambda item: (-item[1], item[0]))), read > _REASONS


def losses_by_client(lake: Lake, asked: Inquiry) -> dict[tuple[str, str], int]:
    """Cluster and client id to messages that the log lacks."""
    where = asked.overlapping(LOSS_EVENTS, "first_at", "last_at")
    of_log = both(where, pc.field("group") == "")
    sums = grouped(lake, LOSS_EVENTS, of_log, ("cluster", "client_id"), [("count", "sum")])
    return {(r["cluster"], r["client_id"] or ""): r["count"] or 0 for r in sums.to_pylist()}


def lost_ranges(lake: Lake, asked: Inquiry, most: int) -> tuple[list[Row], int]:
    """Partitions with `lost` ranges of offsets, most first; and how many are left out."""
    where = asked.overlapping(LOSS_EVENTS, "first_at", "last_at")
    known = (pc.field("group") == "") & pc.field("partition").is_valid()
    known &= pc.field("first_offset").is_valid() & pc.field("last_offset").is_valid()
    columns = ("cluster", "topic", "partition", "first_offset", "last_offset", "count", "state")
    order = [(name, "ascending") for name in columns[:4]]
    found = top(lake, LOSS_EVENTS, both(where, known), columns, order, 20_000)
    strips: dict[tuple[str, str, int], Row] = {}
    for row in found.rows:
        key = (row["cluster"], row["topic"], row["partition"])
        strip = strips.setdefault(
            key, {"cluster": key[0], "topic": key[1], "partition": key[2], "count": 0, "lost": []}
        )
        strip["count"] += row["count"]
        _extend(strip["lost"], row["first_offset"], row["last_offset"], row["state"])
    ordered = sorted(
        strips.values(), key=lambda s: (-s["count"], s["cluster"], s["topic"], s["partition"])
    )
    return ordered[:most], max(0, len(ordered) - most) + found.left_out


def _extend(ranges: list[tuple[int, int, str]], first: int, last: int, state: str) -> None:
    """Add a range, to the one before it where they touch."""
    if ranges and ranges[-1][2] == state and first <= ranges[-1][1] + 1:
        ranges[-1] = (ranges[-1][0], max(ranges[-1][1], last), state)
    else:
        ranges.append((first, last, state))
