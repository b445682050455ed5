"""Agents with wrong clocks that append reports to one table, beside a naive model of receipts."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from functools import partial

import pyarrow as pa
from deltalake import DeltaTable
from hypothesis import strategies as st

from acktrail.audit.wire import Report, row_of_report
from acktrail.contracts import Table
from acktrail.contracts.arrow import rows
from acktrail.contracts.bronze import AUDIT_REPORTS
from acktrail.contracts.vocabulary import Tier
from acktrail.lake import Lake, Position, housekeeping

EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
START_MS = 1_769_839_200_000
CLUSTERS = ("east", "west")


@dataclass(frozen=True)
class Append:
    """One agent commits rows of *clusters* that its clock received at *times*."""

    agent: int
    rows: tuple[tuple[str, int], ...]
    """Cluster and microseconds after START_MS of each row."""
    meanwhile: tuple[Append, ...] = ()
    """What others commit between this agent's look at the table and its commit."""


@dataclass(frozen=True)
class Compact:
    """Small files are put together."""


def _appends(meanwhile: st.SearchStrategy[tuple[Append, ...]]) -> st.SearchStrategy[Append]:
    row = st.tuples(st.sampled_from(CLUSTERS), st.integers(-3_000, 9_000))
    return st.builds(Append, st.integers(0, 2), st.lists(row, max_size=4).map(tuple), meanwhile)


_alone = _appends(st.just(()))
_met = _appends(st.lists(_alone, max_size=2).map(tuple))
appends = _appends(st.lists(_met, max_size=2).map(tuple))
stories = st.lists(st.one_of(appends, appends, appends, st.just(Compact())), max_size=7)


class _Delayed(Lake):
    """A writer that is overtaken: *between* runs after it has looked, and before it commits."""

    between: Callable[[], None] | None = None

    def create(self, table: Table) -> DeltaTable:
        delta = super().create(table)
        between, self.between = self.between, None
        if between is not None:
            between()
        return delta


def reports(wanted: Sequence[tuple[int, str, int]]) -> pa.Table:
    """A row for each (number, cluster, microseconds after START_MS of its receipt)."""
    made = []
    for number, cluster, us in wanted:
        report = Report("ab" * 16, Tier.HEARTBEAT, "t", number, START_MS, session="s")
        at = EPOCH + timedelta(milliseconds=START_MS, microseconds=us)
        made.append(row_of_report(report, cluster, "source", at))
    return rows(AUDIT_REPORTS, made)


class Receivers:
    """The lake, and what each commit should have made of its receipts."""

    def __init__(self, lake: Lake) -> None:
        self.lake = lake
        self.said: dict[int, tuple[str, int]] = {}
        self.commits: list[tuple[int, list[int]]] = []
        self.positions: dict[int, int] = {}

    def play(self, story: Sequence[Append | Compact]) -> None:
        """Every step; then the table has each row once, in the order of its receipt."""
        for step in story:
            if isinstance(step, Compact):
                housekeeping.compact(self.lake, AUDIT_REPORTS, self.lake.files(AUDIT_REPORTS))
            else:
                self._append(step)
        self.check()

    def _append(self, step: Append) -> None:
        numbers = range(len(self.said), len(self.said) + len(step.rows))
        wanted = [(n, *row) for n, row in zip(numbers, step.rows, strict=True)]
        self.said |= dict(zip(numbers, step.rows, strict=True))
        writer = _Delayed(self.lake.uri, self.lake.store.options)
        writer.between = partial(self._append_all, step.meanwhile)
        # A source of its own for each commit: two that meet on one source is another law.
        move = Position(f"agent {step.agent}/{len(self.positions)}", None, len(wanted))
        self.positions[len(self.positions)] = len(wanted)
        version = writer.append(AUDIT_REPORTS, reports(wanted), [move])
        self.commits.append((version, list(numbers)))
        assert writer.position(AUDIT_REPORTS, move.app_id) == move.reached

    def _append_all(self, steps: Sequence[Append]) -> None:
        for step in steps:
            self._append(step)

    def check(self) -> None:
        """Against the model: a receipt is its time of reading, or a millisecond after the last."""
        found = self.lake.read(AUDIT_REPORTS, columns=["number", "cluster", "read_at"]).to_pylist()
        assert sorted(row["number"] for row in found) == sorted(self.said), "each row once"
        stored = {r["number"]: (r["read_at"] - EPOCH) // timedelta(microseconds=1) for r in found}
        newest: dict[str, int] = defaultdict(lambda: -1)
        for _, numbers in sorted(self.commits):
            floors = dict(newest)
            for number in numbers:
                cluster, us = self.said[number]
                floor = floors.get(cluster, -1)
                read_us = START_MS * 1000 + us
                expected = read_us if read_us // 1000 > floor else (floor + 1) * 1000
                assert stored[number] == expected
                assert stored[number] // 1000 > floor, "later than all that was there"
                newest[cluster] = max(newest[cluster], expected // 1000)
        for cluster in CLUSTERS:
            assert self.lake.receipt(cluster) == max(newest[cluster], 0)
