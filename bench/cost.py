"""What a command costs: its time, and the CPU time of all processes it starts.

A run is three kinds of processes: Python, the JVM and Spark's Python workers. Some outlive the
command for a moment. While a command is measured, this process adopts such orphans (Linux,
PR_SET_CHILD_SUBREAPER) and waits for them, so that none of their CPU time is missed.
"""

from __future__ import annotations

import contextlib
import ctypes
import os
import resource
import subprocess
import sys
import time
from collections.abc import Sequence
from dataclasses import dataclass
from statistics import median

_PR_SET_CHILD_SUBREAPER = 36


@dataclass(frozen=True)
class Cost:
    """Seconds until the command returned, and CPU seconds (user + system) of all its processes."""

    wall_s: float
    cpu_s: float

    def __add__(self, other: Cost) -> Cost:
        return Cost(self.wall_s + other.wall_s, self.cpu_s + other.cpu_s)


def cost_of(words: Sequence[str], *, allowed: Sequence[int] = (0,)) -> Cost:
    """Run Python with *words*, and say what it cost. RuntimeError for another exit code."""
    if ctypes.CDLL(None, use_errno=True).prctl(_PR_SET_CHILD_SUBREAPER, 1, 0, 0, 0):
        raise OSError(ctypes.get_errno(), "cannot adopt orphaned processes")
    before, began = _children_cpu_s(), time.perf_counter()
    done = subprocess.run(
        [sys.executable, *words],
        env=environment(),
        capture_output=True,
        text=True,
        errors="replace",
        check=False,
    )
    wall = time.perf_counter() - began
    with contextlib.suppress(ChildProcessError):
        while True:
            os.waitpid(-1, 0)
    if done.returncode not in allowed:
        said = done.stderr[-2000:]
        raise RuntimeError(f"{' '.join(words)} ended with {done.returncode}:\n{said}")
    return Cost(wall, _children_cpu_s() - before)


def environment() -> dict[str, str]:
    """Ours without the settings of the benchmarks, which are none of acktrail's."""
    return {k: v for k, v in os.environ.items() if not k.startswith("ACKTRAIL_BENCH_")}


def middle(costs: Sequence[Cost]) -> Cost:
    """The median of each figure."""
    return Cost(median(c.wall_s for c in costs), median(c.cpu_s for c in costs))


def _children_cpu_s() -> float:
    used = resource.getrusage(resource.RUSAGE_CHILDREN)
    return used.ru_utime + used.ru_stime
