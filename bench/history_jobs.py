"""`python -m bench.history_jobs DAYS`: where a run on DAYS of history goes, job by job.

The jobs of `bench/history.py` one after the other in one Spark session, each with the CPU seconds
(user + system) of Python, the JVM and Spark's workers, what it read and what it wrote.

Environment: ACKTRAIL_BENCH_LAKES as there; without it, the lake is made again.
"""

from __future__ import annotations

import os
import shutil
import sys
import tempfile
from pathlib import Path

from acktrail.lake import Lake
from bench.history import KEPT, lake_of
from bench.history_data import present

_TICKS = os.sysconf("SC_CLK_TCK")


def main(days: int) -> None:
    from pipelines import runner, session
    from pipelines.registry import JOBS

    with tempfile.TemporaryDirectory() as scratch:
        lake = Lake(shutil.copytree(lake_of(Path(KEPT or scratch), days), Path(scratch) / "run"))
        began = _cpu_s()
        spark = session.build()
        try:
            spark.range(1).count()
            print(f"{'(session)':24}{_cpu_s() - began:8.2f}", flush=True)
            for job in JOBS:
                before = _cpu_s()
                counts = runner.run(job, lake, lambda: spark, present())
                used = f"{job.name:24}{_cpu_s() - before:8.2f}"
                print(f"{used}  rows in {counts.rows_in}, out {counts.rows_out}", flush=True)
            print(f"{'(all)':24}{_cpu_s() - began:8.2f}")
        finally:
            session.stop(spark)


def _cpu_s() -> float:
    """Of this process and all that it has started."""
    found: dict[int, tuple[int, int]] = {}
    for entry in Path("/proc").glob("[0-9]*/stat"):
        try:
            fields = entry.read_text().rpartition(")")[2].split()
        except OSError:  # it has ended
            continue
        found[int(entry.parent.name)] = int(fields[1]), sum(map(int, fields[11:15]))
    ours, known = {os.getpid()}, 0
    while len(ours) > known:
        known = len(ours)
        ours |= {pid for pid, (parent, _) in found.items() if parent in ours}
    return sum(found[pid][1] for pid in ours if pid in found) / _TICKS


if __name__ == "__main__":
    main(int(sys.argv[1]))
