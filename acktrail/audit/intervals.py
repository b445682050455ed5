"""Ranges of offsets or ids, both ends included: what has been read, and how far it reaches."""

from __future__ import annotations

from collections.abc import Iterable

import numpy as np
import numpy.typing as npt

Longs = npt.NDArray[np.int64]
Range = tuple[int, int]


class Coverage:
    """A union of ranges, as sorted ranges that neither touch nor overlap."""

    def __init__(self, ranges: Iterable[Range]) -> None:
        merged: list[list[int]] = []
        for first, last in sorted(r for r in ranges if r[0] <= r[1]):
            if merged and first <= merged[-1][1] + 1:
                merged[-1][1] = max(merged[-1][1], last)
            else:
                merged.append([first, last])
        self.firsts: Longs = np.array([m[0] for m in merged], np.int64)
        self.lasts: Longs = np.array([m[1] for m in merged], np.int64)

    def reach(self, first: int) -> int:
        """The last offset that is covered without a gap from *first*; *first* − 1 for none."""
        at = int(np.searchsorted(self.firsts, first, "right")) - 1
        if at < 0 or self.lasts[at] < first:
            return first - 1
        return int(self.lasts[at])

    def covers(self, firsts: Longs, lasts: Longs) -> npt.NDArray[np.bool_]:
        """For each range whether all of it is covered."""
        if not self.firsts.size:
            return np.zeros(firsts.shape, bool)
        at = np.searchsorted(self.firsts, firsts, "right") - 1
        inside: npt.NDArray[np.bool_] = (at >= 0) & (self.lasts[np.maximum(at, 0)] >= lasts)
        return inside

    def missing(self, first: int, last: int) -> int:
        """How many from *first* to *last* are not covered."""
        firsts, lasts = np.maximum(self.firsts, first), np.minimum(self.lasts, last)
        return max(0, last - first + 1) - int(np.maximum(0, lasts - firsts + 1).sum())
