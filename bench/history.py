"""`acktrail run` and `acktrail check` on one new slice of evidence, with 1, 10 and 100 days behind.

The commands are run as a user runs them, each a process of its own: time and CPU time are of
Python, the JVM and Spark's workers together. How the lakes are made: `bench/history_data.py`. The
slice is the recorded incident of the demo, an hour after the last copy of it in the history.
Repetitions alternate, and medians are compared.

Environment: ACKTRAIL_BENCH_HISTORY (days, `1,10,100`), ACKTRAIL_BENCH_REPEAT (5),
ACKTRAIL_BENCH_LAKES (a directory in which the lakes are kept and found again).
"""

from __future__ import annotations

import os
import shutil
import sys
import tempfile
from collections.abc import Callable
from pathlib import Path
from typing import Any

from bench.cost import Cost, cost_of, middle
from bench.history_data import make_day, present
from bench.history_days import make_days
from bench.ratio import ratio_row

DAYS = tuple(map(int, os.environ.get("ACKTRAIL_BENCH_HISTORY", "1,10,100").split(",")))
REPEAT = int(os.environ.get("ACKTRAIL_BENCH_REPEAT", "5"))
KEPT = os.environ.get("ACKTRAIL_BENCH_LAKES")
BARS = {10: 1.1, 100: 1.3}
COMMANDS = {"run": (0,), "check": (0, 1)}
"""Exit codes that are answers: a check of an incident fails."""


def run() -> list[dict[str, Any]]:
    with tempfile.TemporaryDirectory() as scratch:
        lakes = {days: lake_of(Path(KEPT or scratch), days) for days in DAYS}
        found: dict[int, dict[str, list[Cost]]] = {d: {c: [] for c in COMMANDS} for d in DAYS}
        for turn in range(REPEAT + 1):
            for days, lake in lakes.items():
                costs = _after(lake, Path(scratch) / "lake")
                print(f"  {days} days: {costs}", file=sys.stderr, flush=True)
                for command, cost in costs.items():
                    if turn:  # the first one fills the file cache
                        found[days][command].append(cost)
    return [row for days in DAYS[1:] for row in _rows(found, days)]


def lake_of(directory: Path, days: int) -> Path:
    """A lake with *days* of history and a slice that no job has read; made unless it is kept."""
    path, last_day = directory / f"history-{days}", directory / "last-day"
    if not last_day.is_dir():
        _make(last_day, make_day)
    if not path.is_dir():
        _make(path, lambda made: make_days(last_day, made, days))
    return path


def _make(path: Path, make: Callable[[Path], None]) -> None:
    """*path*, complete or not at all."""
    unfinished = path.with_suffix(".unfinished")
    shutil.rmtree(unfinished, ignore_errors=True)
    make(unfinished)
    unfinished.rename(path)


def _after(lake: Path, scratch: Path) -> dict[str, Cost]:
    """What both commands cost on a fresh copy of *lake*."""
    shutil.copytree(lake, scratch)
    try:
        given = ["--lake", str(scratch), "--as-of", present().isoformat()]
        return {
            command: cost_of(["-m", "acktrail", command, *given], allowed=codes)
            for command, codes in COMMANDS.items()
        }
    finally:
        shutil.rmtree(scratch)


def _rows(found: dict[int, dict[str, list[Cost]]], days: int) -> list[dict[str, Any]]:
    """Time and CPU time, of both commands together and of each."""
    least = DAYS[0]
    together = {
        d: [a + b for a, b in zip(costs["run"], costs["check"], strict=True)]
        for d, costs in found.items()
    }
    times = days // least
    rows = []
    for name in ("run_and_check", "run", "check"):
        ours, theirs = (
            middle(together[d] if name == "run_and_check" else found[d][name])
            for d in (days, least)
        )
        bar = BARS.get(times) if name == "run_and_check" else None
        label = f"{name}_{times}x_history"
        peer = f"with {least} day of history"
        rows.append(ratio_row(label, ours.wall_s, peer, theirs.wall_s, bar))
        rows.append(ratio_row(f"{label}_cpu", ours.cpu_s, peer, theirs.cpu_s, bar))
    return rows
