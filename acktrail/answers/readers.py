"""Consumer groups: how far behind they are, and when retention overtakes them."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from acktrail.answers.inquiry import Inquiry, both
from acktrail.answers.many import Row, first_of_each, numbers
from acktrail.contracts.bronze import CLUSTER_STATES, GROUP_OFFSETS
from acktrail.lake import Lake

_PLACE = ("cluster", "topic", "partition")
_ROWS = 2_000_000
"""Answers that are looked at, at most."""


@dataclass(frozen=True)
class Reader:
    """One group on one partition, by the newest answers of the window."""

    cluster: str
    group: str
    topic: str
    partition: int
    at: datetime
    committed: int
    log_start: int | None
    log_end: int | None
    behind: int | None
    late: timedelta | None
    """The oldest unread message is not older than this; None where it is not known."""
    overtaken_at: datetime | None
    """When the log's start reaches the commit, if both go on as in the window."""
    overtaken: bool
    """The log already begins behind the commit."""
    state: str


def readers(lake: Lake, asked: Inquiry) -> list[Reader]:
    """Every group and partition with a commit in the window, the furthest behind first."""
    commits = _read(
        lake,
        GROUP_OFFSETS,
        both(asked.at(GROUP_OFFSETS), pc.field("committed_offset").is_valid()),
        ("cluster", "group", "topic", "partition", "at", "committed_offset", "group_state"),
        ("cluster", "group", "topic", "partition", "at"),
    )
    if not commits.num_rows:
        return []
    ends = _log_ends(lake, asked)
    found = []
    for first, last in _edges(commits, ("cluster", "group", "topic", "partition")):
        place = (first["cluster"], first["topic"], first["partition"])
        found.append(_reader(first, last, ends.get(place)))
    return sorted(found, key=_order)


def _order(one: Reader) -> tuple[Any, ...]:
    soon = one.overtaken_at or datetime.max.replace(tzinfo=UTC)
    place = (one.cluster, one.group, one.topic, one.partition)
    return (not one.overtaken, soon, -(one.behind or 0), *place)


def _read(
    lake: Lake, table: Any, where: Any, columns: Sequence[str], order: Sequence[str]
) -> pa.Table:
    parts: list[pa.Table] = []
    rows = 0
    for batch in lake.batches(table, where, columns):
        parts.append(batch)
        rows += batch.num_rows
        if rows > _ROWS:
            break
    if not parts:
        return pa.table({name: [] for name in columns})
    return pa.concat_tables(parts).sort_by([(name, "ascending") for name in order])


def _edges(rows: pa.Table, keys: Sequence[str]) -> list[tuple[Row, Row]]:
    """The first and the last row of each of *keys*."""
    starts = np.flatnonzero(first_of_each(rows, keys))
    lasts = np.append(starts[1:], rows.num_rows) - 1
    first = rows.take(starts).to_pylist()
    last = rows.take(lasts).to_pylist()
    return list(zip(first, last, strict=True))


@dataclass(frozen=True)
class _LogEnds:
    """What the cluster said of the ends of one log, in order of time (epoch seconds)."""

    at: Any
    earliest: Any
    latest: Any


def _log_ends(lake: Lake, asked: Inquiry) -> dict[tuple[Any, ...], _LogEnds]:
    columns = (*_PLACE, "at", "earliest_offset", "latest_offset")
    known = pc.field("latest_offset").is_valid()
    named = Inquiry(asked.since, asked.until, asked.as_of, asked.cluster, asked.topic)
    rows = _read(lake, CLUSTER_STATES, both(named.at(CLUSTER_STATES), known), columns, columns[:4])
    if not rows.num_rows:
        return {}
    at = rows["at"].cast(pa.int64()).to_numpy() / 1e6
    earliest = numbers(rows["earliest_offset"], -1)
    latest = rows["latest_offset"].to_numpy()
    starts = np.flatnonzero(first_of_each(rows, _PLACE))
    places = rows.select(list(_PLACE)).take(starts).to_pylist()
    found = {}
    for place, begin, end in zip(places, starts, [*starts[1:], rows.num_rows], strict=True):
        key = tuple(place[name] for name in _PLACE)
        found[key] = _LogEnds(at[begin:end], earliest[begin:end], latest[begin:end])
    return found


def _reader(first: Row, last: Row, log: _LogEnds | None) -> Reader:
    committed = last["committed_offset"]
    at = last["at"].astimezone(UTC)
    start = int(log.earliest[-1]) if log is not None and log.earliest[-1] >= 0 else None
    end = int(log.latest[-1]) if log is not None else None
    return Reader(
        cluster=last["cluster"],
        group=last["group"],
        topic=last["topic"],
        partition=last["partition"],
        at=at,
        committed=committed,
        log_start=start,
        log_end=end,
        behind=None if end is None else max(0, end - committed),
        late=None if log is None else _late(log, committed),
        overtaken_at=None if log is None else _overtaken_at(first, last, log),
        overtaken=start is not None and start > committed,
        state=(last["group_state"] or "").lower(),
    )


def _late(log: _LogEnds, committed: int) -> timedelta | None:
    """How long ago, at most, the log went past *committed*."""
    if log.latest[-1] <= committed:
        return timedelta(0)
    reached = np.flatnonzero(log.latest <= committed)
    if not reached.size:
        return None  # it was behind before the window began
    return timedelta(seconds=float(log.at[-1] - log.at[reached[-1]]))


def _overtaken_at(first: Row, last: Row, log: _LogEnds) -> datetime | None:
    """When the log's start reaches the commit, at the paces of the window; None: not so."""
    known = log.earliest >= 0
    if np.count_nonzero(known) < 2:
        return None
    at, start = log.at[known], log.earliest[known]
    span = (last["at"] - first["at"]) / timedelta(seconds=1)
    if at[-1] <= at[0]:
        return None
    pace = float(start[-1] - start[0]) / float(at[-1] - at[0])
    read = (last["committed_offset"] - first["committed_offset"]) / span if span > 0 else 0.0
    margin = last["committed_offset"] - float(start[-1])
    if pace <= read or pace <= 0 or margin < 0:
        return None
    seconds = float(at[-1]) + margin / (pace - read)
    if seconds > datetime(9000, 1, 1, tzinfo=UTC).timestamp():
        return None
    return datetime.fromtimestamp(seconds, UTC)
