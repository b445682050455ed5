"""How long the rounds of a watch take, and what they cost: stated every ten minutes."""

from __future__ import annotations

import math
import os
import time
from collections import deque
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from pathlib import Path

MOST_S = 8.0
"""A round may take so long, and a page still goes out within a minute of any evidence: what comes
just after a round has read waits for the rest of that round and for the next one."""
_EVERY_S = 600.0


def percentile(values: list[float], share: float) -> float:
    """The smallest of *values* that at least *share* of them do not exceed."""
    ordered = sorted(values)
    return ordered[max(0, math.ceil(len(ordered) * share) - 1)] if ordered else 0.0


def cpu_seconds() -> float:
    """CPU seconds of this process and of all below it, the JVM too; where /proc is not, its own."""
    try:
        per_second = os.sysconf("SC_CLK_TCK")
        return sum(_ticks(pid) for pid in _tree()) / per_second
    except (OSError, ValueError):
        return time.process_time()


def _tree() -> Iterator[int]:
    left = [os.getpid()]
    while left:
        pid = left.pop()
        yield pid
        for listed in Path(f"/proc/{pid}/task").glob("*/children"):
            try:
                left += [int(child) for child in listed.read_text().split()]
            except OSError:
                continue


def _ticks(pid: int) -> int:
    try:
        stat = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
    except OSError:
        return 0
    return sum(map(int, stat[11:15]))


@dataclass
class RoundTimes:
    """Rounds of the last ten minutes. *report* is called with what they took."""

    report: Callable[[str, bool], None]
    """A sentence, and whether rounds take too long."""
    clock: Callable[[], float] = time.monotonic
    cpu: Callable[[], float] = cpu_seconds
    _seconds: deque[float] = field(default_factory=lambda: deque(maxlen=1000))
    _since: float | None = None
    _cpu_before: float = 0.0

    def add(self, seconds: float) -> None:
        """Count one round."""
        now = self.clock()
        if self._since is None:
            self._since, self._cpu_before = now, self.cpu()
        self._seconds.append(seconds)
        if now - self._since < _EVERY_S:
            return
        used, passed = self.cpu() - self._cpu_before, now - self._since
        most = percentile(list(self._seconds), 0.95)
        slow = most > MOST_S
        said = (
            f"{len(self._seconds)} rounds in {passed / 60:.0f} min: 95 % took at most "
            f"{most:.1f} s, CPU {100 * used / passed:.0f} % of one core."
        )
        if slow:
            said += f" More than {MOST_S:.0f} s is too slow to page within a minute."
        self.report(said, slow)
        self._seconds.clear()
        self._since, self._cpu_before = now, self.cpu()
