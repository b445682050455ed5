"""Which ranges that groups have read can matter to certain blocks: of all time, a few.

A group may have read for years. The rules ask of old ranges what a few of them show: where the
group began, which topics they were of, who may still read, how far an assignment had come. The
ranges that are kept give the same answers as all of them, for every record at or above the floor
of its partition (`tests/unit/audit/test_needed_ranges.py`).
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from acktrail.audit.intervals import Longs
from acktrail.audit.log_end import NEVER

TOPIC = ("cluster", "topic")
PLACE = (*TOPIC, "partition")
GROUP = (*PLACE, "group")
COLUMNS = (
    *(*GROUP, "reporter", "assignment", "part", "number"),
    *("first_offset", "last_offset", "leader_epoch", "topic_id", "received_ms"),
)
Mask = npt.NDArray[np.bool_]
Floors = Mapping[tuple[Any, ...], int]


def needed_ranges(rows: pa.Table, floors: Floors, commits: Floors, closed: pa.Table) -> Mask:
    """Which of *rows*, the ranges that groups have read, are needed.

    *floors*: by cluster, topic and partition, the lowest offset of a record of the blocks.
    *commits*: by these and the group, the lowest offset of the commits that count. *closed*:
    cluster, topic, group and reporter of members that ended in good order.
    """
    if not rows.num_rows:
        return np.zeros(0, bool)
    of, groups = _numbered(rows, GROUP)
    places = list(zip(*(groups.column(n).to_pylist() for n in GROUP), strict=True))
    floor = np.array([floors.get(place[:3], NEVER) for place in places], np.int64)
    known = [place if place[:3] in floors else () for place in places]
    lowest = np.array([commits.get(place, NEVER) for place in known], np.int64)
    return _Ranges(rows, of).needed(floor[of] - 1, np.minimum(floor, lowest)[of] - 1, closed)


class _Ranges:
    """The ranges as columns; *of* numbers the group and partition of each."""

    def __init__(self, rows: pa.Table, of: Longs) -> None:
        self.rows, self.of = rows, of
        self.first, self.last = (_longs(rows, n, 0) for n in ("first_offset", "last_offset"))
        self.high = np.maximum(self.first, self.last)
        self.part, self.number = _longs(rows, "part", 0), _longs(rows, "number", 0)
        self.received = _longs(rows, "received_ms", -1)
        self.epoch = _longs(rows, "leader_epoch", 0)
        self.topic_id = _codes(rows, "topic_id")
        self.reporter = _dense(of, _codes(rows, "reporter"))
        """Numbers the reporter of a group and partition."""
        assigned = np.asarray(pc.is_valid(rows.column("assignment")))
        numbers = _dense(self.reporter, _longs(rows, "assignment", 0))
        self.assignment = np.where(assigned, numbers, -1)
        """Numbers the assignment; -1 where it is not known."""

    def needed(self, near: Longs, late: Longs, closed: pa.Table) -> Mask:
        """*near*, *late*: from where on ranges, and assignments, count one by one."""
        newest = self._newest()
        at = np.flatnonzero(newest)
        kept = newest & (self.high >= near)
        kept[self._least(at, self.of, self.first)] = True  # where the group began
        kept[self._least(at, _dense(self.of, self.topic_id), self.first)] = True
        heard = self._heard()
        nameless = at[~_named(self.rows)[at]]
        kept[self._least(nameless, self.of, heard)] = True
        still = at[~self._closed(closed)[at]]
        kept[self._least(still, self.of, self.first)] = True  # who may still read
        self._keep_assignments(kept, at, near, late)
        return self._with_first_receipts(kept, newest, heard)

    def _newest(self) -> Mask:
        """The newest report of each part of each member."""
        age = (-self.received, self.last, self.number, self.part, self.reporter)
        order = np.lexsort(age)
        part = np.stack((self.reporter[order], self.part[order]))
        ends = np.append(np.any(np.diff(part, axis=1), axis=0), True)
        newest = np.zeros(order.size, bool)
        newest[order[ends]] = True
        return newest

    def _heard(self) -> Longs:
        """For each range when its reporter was first heard of; -1: not known."""
        return _minimum(self.reporter, self.received)[self.reporter]

    def _closed(self, closed: pa.Table) -> Mask:
        """Which ranges are of members that ended in good order."""
        names = (*TOPIC, "group", "reporter")
        both = pa.concat_tables([self.rows.select(names), closed.select(names)])
        member, _ = _numbered(both, names)
        count = self.rows.num_rows
        return np.isin(member[:count], member[count:])

    def _keep_assignments(self, kept: Mask, at: Longs, near: Longs, late: Longs) -> None:
        """What counts of assignments that came to where records or commits lie."""
        at = at[self.assignment[at] >= 0]
        mine = self.assignment[at]
        at = at[(-_minimum(mine, -self.high[at]))[mine] >= late[at]]
        kept[self._least(at, self.assignment, self.first)] = True
        kept[self._least(at, self.assignment, -self.last)] = True
        known = at[self.received[at] >= 0]
        kept[self._least(known, self.assignment, self.received)] = True
        self._keep_predecessors(kept, at, near)
        self._keep_highest(kept, at)

    def _keep_predecessors(self, kept: Mask, at: Longs, near: Longs) -> None:
        """What a member read before a range that counts: it may have jumped there."""
        order = at[np.lexsort((self.part[at], self.assignment[at]))]
        same = self.assignment[order][1:] == self.assignment[order][:-1]
        counts = self.high[order][1:] >= near[order][1:]
        kept[order[:-1][same & counts]] = True

    def _keep_highest(self, kept: Mask, at: Longs) -> None:
        """Of each leader epoch, how far a member had read: with none higher in a later epoch."""
        order = at[np.lexsort((-self.epoch[at], -self.last[at], self.assignment[at]))]
        if not order.size:
            return
        steps = _dense(self.epoch[order])
        rank = self.assignment[order] * (int(steps.max()) + 1) + steps
        before = np.maximum.accumulate(rank)
        kept[order[np.append(True, rank[1:] > before[:-1])]] = True

    def _with_first_receipts(self, kept: Mask, newest: Mask, heard: Longs) -> Mask:
        """With each reporter its first receipt; with each report of a part the newest one."""
        reporters = np.zeros(int(self.reporter.max()) + 1, bool)
        reporters[self.reporter[kept]] = True
        first = np.flatnonzero(reporters[self.reporter] & (self.received == heard))
        found = kept.copy()
        found[self._least(first, self.reporter, self.received)] = True
        parts = _dense(self.reporter, self.part)
        older = np.unique(parts[found & ~newest])
        return found | (newest & np.isin(parts, older))

    def _least(self, at: Longs, keys: Longs, values: Longs) -> Longs:
        """Of the ranges *at*, for each key the one with the lowest value; as indexes."""
        order = at[np.lexsort((values[at], keys[at]))]
        return order[np.append(True, np.diff(keys[order]) != 0)] if order.size else order


def _longs(rows: pa.Table, name: str, otherwise: int) -> Longs:
    column: Any = rows.column(name)
    return np.asarray(pc.fill_null(column.cast(pa.int64()), otherwise), np.int64)


def _codes(rows: pa.Table, name: str) -> Longs:
    """A number for each text; the same for none and an empty one."""
    column: Any = rows.column(name)
    texts: Any = pc.fill_null(column, "")
    return np.asarray(texts.combine_chunks().dictionary_encode().indices, np.int64)


def _named(rows: pa.Table) -> Mask:
    """Which ranges name the topic's id."""
    column: Any = rows.column("topic_id")
    return np.asarray(pc.fill_null(pc.not_equal(column, pa.scalar("")), False), bool)


def _numbered(rows: pa.Table, names: Sequence[str]) -> tuple[Longs, pa.Table]:
    """A number for each distinct combination, and the combinations in that order."""
    found = np.zeros(rows.num_rows, np.int64)
    for name in names:
        column = rows.column(name)
        codes = _longs(rows, name, -1) if pa.types.is_integer(column.type) else _codes(rows, name)
        found = _dense(found, codes)
    _, first = np.unique(found, return_index=True)
    return found, rows.select(list(names)).take(first)


def _dense(*columns: Longs) -> Longs:
    """Numbers from 0 on, the same for the same combination."""
    found = np.unique(columns[0], return_inverse=True)[1]
    for column in columns[1:]:
        codes = np.unique(column, return_inverse=True)[1]
        found = np.unique(found * (codes.max(initial=0) + 1) + codes, return_inverse=True)[1]
    return np.asarray(found, np.int64)


def _minimum(keys: Longs, values: Longs) -> Longs:
    """By key the lowest of the values."""
    found = np.full(int(keys.max(initial=-1)) + 1, NEVER, np.int64)
    np.minimum.at(found, keys, values)
    return found
