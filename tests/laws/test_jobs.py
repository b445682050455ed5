"""The law of every job: however the evidence is split, in any order, with the driver killed at
every named point, the tables are those of one full run over all of it.
"""

from __future__ import annotations

import contextlib
import json
import os
import random
import subprocess
import sys
import threading
from datetime import timedelta
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pyarrow as pa
import pytest

from acktrail.contracts import Table
from acktrail.contracts.bronze import BRONZE
from acktrail.lake import Change, Lake
from acktrail.lake.data_files import write_files
from acktrail.terminal.output import plain
from acktrail.window import Window
from pipelines import input_frames, runner
from pipelines.job import Job
from pipelines.registry import JOBS
from pipelines.schedule import run_all
from tests.laws.incident import AS_OF, FOLDED

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

pytestmark = pytest.mark.timeout(1800)  # every job, several times over
KILLS = (("before_commit", "after_commit"), ("after_record",))
"""Where the driver dies, for each slice of the evidence: every named point, in every job."""
LIMITS = {
    name: getattr(input_frames, name)
    for name in ("FEW_ROWS", "FILES_LISTED", "FILES_LISTED_REMOTE")
}


class Killed(BaseException):
    """Stands for the driver's death: nothing catches it."""


@pytest.fixture(scope="module")
def whole(whole_lake: Lake) -> dict[str, list[str]]:
    """The tables of one run over everything."""
    return contents(whole_lake)


def contents(lake: Lake) -> dict[str, list[str]]:
    return {job.name: sorted(map(_spelt, lake.read(job.output).to_pylist())) for job in FOLDED}


def _spelt(row: dict[str, Any]) -> str:
    row = {k: dict(v) if _is_map(v) else v for k, v in row.items()}
    return json.dumps(plain(row), sort_keys=True)


def _is_map(value: object) -> bool:
    return isinstance(value, list) and bool(value) and isinstance(value[0], tuple)


def slices(table: pa.Table, parts: int, chance: random.Random) -> list[pa.Table]:
    """The rows dealt out at random, each part in random order."""
    order = list(range(table.num_rows))
    chance.shuffle(order)
    return [table.take(pa.array(order[i::parts], pa.int64())) for i in range(parts)]


def killed_at_each(points: tuple[str, ...], job: Job, lake: Lake, spark: SparkSession) -> None:
    """Run *job* until it is through, its driver killed at each of *points* on the way."""
    for point in points:
        _dying.point = point
        with contextlib.suppress(Killed):
            runner.run(job, lake, lambda: spark, AS_OF)
    _dying.point = None
    runner.run(job, lake, lambda: spark, AS_OF)


_dying = threading.local()
"""Where the driver of this thread's job dies next."""


def _passing(name: str) -> None:
    if name == _dying.point:
        raise Killed


def test_any_split_in_any_order_with_kills_gives_the_tables_of_one_run(
    evidence: dict[str, pa.Table],
    whole: dict[str, list[str]],
    spark: SparkSession,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    lake = Lake(tmp_path)
    run_in_pieces(lake, evidence, spark, monkeypatch)
    for name, rows in contents(lake).items():
        assert rows == whole[name], f"{name} differs from one full run"


def run_in_pieces(
    lake: Lake,
    evidence: dict[str, pa.Table],
    spark: SparkSession,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """Every job on random slices of the evidence, its driver killed at every named point."""
    chance = random.Random(20260131)
    monkeypatch.setattr(runner, "crash_point", _passing)
    dealt = {name: slices(table, len(KILLS), chance) for name, table in evidence.items()}
    for number, points in enumerate(KILLS):
        for table in BRONZE:
            # Not appended: in whatever order the evidence comes, its receipts are the same.
            put_files(lake, table, dealt[table.name][number])
        # The first slice is read by Spark, through Delta's own index; the second by Arrow.
        for name, limit in LIMITS.items():
            monkeypatch.setattr(input_frames, name, limit if number else 0)
        run_all(FOLDED, lambda job, points=points: killed_at_each(points, job, lake, spark))


def put_files(lake: Lake, table: Table, rows: pa.Table) -> None:
    """Rows as they are, receipts included."""
    lake.create(table)
    lake.put(table, write_files(table, rows, lake.at(table)), Change())


def test_a_second_run_finds_nothing_new_and_starts_no_session(
    evidence: dict[str, pa.Table], spark: SparkSession, tmp_path: Path
) -> None:
    lake = Lake(tmp_path)
    for table in BRONZE:
        lake.append(table, evidence[table.name])
    first = FOLDED[0]
    runner.run(first, lake, lambda: spark, AS_OF)
    again = runner.run(first, lake, lambda: pytest.fail("a session was started"), AS_OF)
    assert again.nothing_new


def test_a_killed_process_is_finished_by_the_next(
    evidence: dict[str, pa.Table], whole: dict[str, list[str]], tmp_path: Path
) -> None:
    lake = Lake(tmp_path / "lake")
    for table in BRONZE:
        lake.append(table, evidence[table.name])
    names = [job.name for job in FOLDED[:3]]
    words = ["-m", "acktrail", "run", *names, "--lake", lake.uri, "--as-of", AS_OF.isoformat()]
    environment = {**os.environ, "ACKTRAIL_CRASH_AT": "after_commit#2"}
    killed = subprocess.run([sys.executable, *words], env=environment, check=False)
    assert killed.returncode == 137
    subprocess.run([sys.executable, *words], check=True)
    found = contents(lake)
    for name in names:
        assert found[name] == whole[name]


def test_rows_in_are_rows_out_and_dropped_for_every_map(
    evidence: dict[str, pa.Table], spark: SparkSession, tmp_path: Path
) -> None:
    lake = Lake(tmp_path)
    for table in BRONZE:
        lake.append(table, evidence[table.name])
    hour = AS_OF.replace(minute=0, second=0, microsecond=0)
    for job in JOBS:
        if job.shape != "map":
            continue
        for window in (None, Window(hour, hour + timedelta(hours=1))):
            done = runner.run(job, lake, lambda: spark, AS_OF, rebuild=window)
            dropped = sum(done.dropped.values())
            assert done.rows_in == done.rows_out + dropped, (job.name, window)
