"""What record-error-total of a client says of its chains: unmoved, or moved as one ended.

Every process has a counter of its own, and no line says which process a chain is of. So all
counters that can be the client's must say the same.
"""

from __future__ import annotations

from bisect import bisect_left, bisect_right
from collections import defaultdict
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from datetime import datetime
from itertools import pairwise

from acktrail.retries.audited_chains import LATE_MS
from acktrail.retries.exhaustion import SLACK, Interval
from acktrail.retries.signs import milliseconds

_LATE = milliseconds(LATE_MS)
"""How long after its end a loss may be counted or told: a slow callback holds the sender up."""


@dataclass(frozen=True)
class CounterSample:
    """A total of the client: how much it grew since *since*, up to *at*."""

    key: str
    since: datetime
    at: datetime
    increase: float
    series: str = ""
    """Whose counter: of one process as one source sees it."""
    total: float | None = None
    """What it stood at, where known: one that falls was reset."""


class ErrorCounter:
    """The samples of one client beside the ends of all its chains and the lines of failures."""

    def __init__(
        self,
        samples: Iterable[CounterSample],
        ends: Sequence[Interval],
        failures: Iterable[datetime] = (),
    ) -> None:
        by_series: dict[str, list[CounterSample]] = defaultdict(list)
        for sample in sorted(samples, key=lambda e: (e.at, e.key)):
            by_series[sample.series].append(sample)
        self._series = [_Series(by_series[name]) for name in sorted(by_series)]
        self._earliest = sorted(i.earliest - SLACK for i in ends if i.earliest is not None)
        self._latest = sorted(i.latest + SLACK for i in ends if i.latest is not None)
        self._open_ends = sum(1 for i in ends if i.earliest is None or i.latest is None)
        self._failures = sorted(failures)

    def unmoved(self, first: datetime, latest: datetime) -> list[CounterSample]:
        """The first and last samples of every counter, if all stood still across this time.

        Empty if one of them moved, was reset, or was not seen for any time between.
        """
        proof = []
        for series in self._series:
            across = series.across(first, latest + _LATE)
            if not across or any(e.increase > 0 for e in across):
                return []
            proof += [across[0], across[-1]]
        return proof

    def moved_for(self, end: Interval) -> list[CounterSample]:
        """The samples that grew while the one chain with this end may have ended.

        Empty if a counter did not grow then, or if another chain or failure may have moved it.
        """
        proof = []
        for series in self._series:
            grown = series.grown_between(end)
            if not grown or any(self._explained(e) for e in grown):
                return []
            proof += grown
        return proof

    def _explained(self, sample: CounterSample) -> bool:
        """Whether something else than one chain's end can have moved it."""
        begun = bisect_right(self._earliest, sample.at)
        over = bisect_left(self._latest, sample.since)
        if begun - over + self._open_ends > 1:
            return True
        told = bisect_left(self._failures, sample.since - SLACK)
        return told < len(self._failures) and self._failures[told] <= sample.at + _LATE


class _Series:
    """The samples of one counter, by time."""

    def __init__(self, samples: Sequence[CounterSample]) -> None:
        self._samples = samples
        self._ats = [e.at for e in samples]

    def across(self, first: datetime, until: datetime) -> Sequence[CounterSample]:
        """The samples from *first* to *until*; none if any time between was not seen."""
        start = bisect_right(self._ats, first)
        stop = bisect_left(self._ats, until) + 1
        found = self._samples[start:stop]
        if not found or found[0].since > first or found[-1].at < until:
            return []
        together = pairwise(self._samples[max(0, start - 1) : stop])
        reset = any(_fell(a, b) for a, b in together)
        seen = all(b.since <= a.at for a, b in pairwise(found))
        return found if seen and not reset else []

    def grown_between(self, end: Interval) -> list[CounterSample]:
        """The samples that grew while a chain with this end may have ended."""
        if end.earliest is None or end.latest is None:
            return []
        found = []
        for sample in self._samples[bisect_left(self._ats, end.earliest - SLACK) :]:
            if sample.since > end.latest + SLACK:
                break
            if sample.increase > 0:
                found.append(sample)
        return found


def _fell(before: CounterSample, after: CounterSample) -> bool:
    if before.total is None or after.total is None:
        return False
    return after.total < before.total
