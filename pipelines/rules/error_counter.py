"""What record-error-total of a client says of its chains: unmoved, or moved as one ended."""

from __future__ import annotations

from bisect import bisect_left, bisect_right
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from itertools import pairwise

from pipelines.rules.exhaustion import Interval

_SLACK = timedelta(seconds=2)
"""Between the client's clock and that of the metrics."""


@dataclass(frozen=True)
class CounterSample:
    """A total of the client: how much it grew since *since*, up to *at*."""

    key: str
    since: datetime
    at: datetime
    increase: float


class ErrorCounter:
    """The samples of one client beside the ends of all its chains."""

    def __init__(self, samples: Sequence[CounterSample], ends: Sequence[Interval]) -> None:
        self._samples = sorted(samples, key=lambda e: (e.at, e.key))
        self._ats = [e.at for e in self._samples]
        self._earliest = sorted(i.earliest - _SLACK for i in ends if i.earliest is not None)
        self._latest = sorted(i.latest + _SLACK for i in ends if i.latest is not None)
        self._open_ends = sum(1 for i in ends if i.earliest is None or i.latest is None)

    def across(self, first: datetime, latest: datetime) -> list[CounterSample]:
        """The samples from *first* until past *latest*; none if any time between was not seen."""
        start = bisect_right(self._ats, first)
        stop = bisect_left(self._ats, latest) + 1
        found = self._samples[start:stop]
        if not found or found[0].since > first or found[-1].at < latest:
            return []
        whole = all(b.since <= a.at for a, b in pairwise(found))
        return found if whole else []

    def grown_between(self, earliest: datetime, latest: datetime) -> list[CounterSample]:
        """The samples that grew while a chain with this end may have ended."""
        start = bisect_left(self._ats, earliest - _SLACK)
        found = []
        for sample in self._samples[start:]:
            if sample.since > latest + _SLACK:
                break
            if sample.increase > 0:
                found.append(sample)
        return found

    def candidates(self, sample: CounterSample) -> int:
        """How many chains may have ended while *sample* grew."""
        begun = bisect_right(self._earliest, sample.at)
        over = bisect_left(self._latest, sample.since)
        return begun - over + self._open_ends
