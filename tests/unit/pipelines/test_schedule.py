"""Jobs side by side: none before its inputs, none twice, an error stops what has not begun."""

from __future__ import annotations

import threading
import time

import pytest

from acktrail.contracts.bronze import LOG_RECORDS
from acktrail.lake import Lake
from pipelines import runner
from pipelines.job import Job
from pipelines.registry import JOBS
from pipelines.schedule import run_all, waits_for
from tests.unit.lake.test_lake import records


def test_the_registry_is_in_an_order_that_can_run() -> None:
    seen: set[str] = set()
    before = waits_for(JOBS)
    for job in JOBS:
        assert before[job.name] <= seen, f"{job.name} stands before a job that writes its input"
        seen.add(job.name)


@pytest.mark.parametrize("at_once", [1, 2, 5])
def test_every_job_runs_once_and_after_the_jobs_it_waits_for(at_once: int) -> None:
    before = waits_for(JOBS)
    ended: list[str] = []
    running: list[int] = []
    lock = threading.Lock()

    def run_one(job: Job) -> str:
        with lock:
            assert before[job.name] <= set(ended)
            running.append(1)
            assert len(running) <= at_once
        time.sleep(0.005)
        with lock:
            running.pop()
            ended.append(job.name)
        return job.name

    assert run_all(JOBS, run_one, at_once) == [job.name for job in JOBS]
    assert sorted(ended) == sorted(job.name for job in JOBS)


def test_an_error_is_raised_and_nothing_more_is_begun() -> None:
    begun: list[str] = []

    def run_one(job: Job) -> None:
        begun.append(job.name)
        if job is JOBS[0]:
            raise RuntimeError("no more")

    with pytest.raises(RuntimeError, match="no more"):
        run_all(JOBS, run_one, 1)
    assert begun == [JOBS[0].name]


def test_no_job_is_no_work() -> None:
    assert run_all((), lambda job: job.name) == []


@pytest.mark.parametrize(
    ("case", "commits", "long"),
    [
        ("an empty lake", [], False),
        ("a row too few", [9], False),
        ("as many as it takes", [10], True),
        ("in several commits", [4, 6], True),
    ],
)
def test_a_run_is_long_by_the_rows_it_has_to_read(tmp_path, monkeypatch, case, commits, long):
    monkeypatch.setattr(runner, "LONG_ROWS", 10)
    lake, first = Lake(tmp_path), 0
    for count in commits:
        lake.append(LOG_RECORDS, records(range(first, first + count)))
        first += count
    assert runner.is_long(JOBS, lake) is long, case
    assert runner.is_long(JOBS, lake, rebuild=True) is long, case
