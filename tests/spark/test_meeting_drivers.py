"""Two drivers run one job at once: the second looks again, and nothing is doubled or left out."""

from __future__ import annotations

from collections.abc import Callable
from datetime import UTC, datetime

import pytest

from acktrail.contracts import Table
from acktrail.contracts.arrow import rows
from acktrail.contracts.bronze import LOG_RECORDS
from acktrail.contracts.gold import LOSS_EVENTS
from acktrail.contracts.runs import RUNS
from acktrail.lake import Lake
from acktrail.terminal.output import plain
from pipelines import runner
from pipelines.registry import jobs_named
from tests.unit.expectations.gold_rows import row

NOW = datetime(2026, 1, 31, 12, tzinfo=UTC)
RETRY = (
    "[2026-01-31 0{number}:00:00,000] WARN [Producer clientId=p] Got error produce response with "
    "correlation id {number} on topic-partition t-0, retrying (3 attempts left). Error: "
    "NOT_ENOUGH_REPLICAS (org.apache.kafka.clients.producer.internals.Sender)"
)


def print_line(lake: Lake, number: int) -> None:
    """A line of a log, in a commit of its own."""
    record = {
        "source": "s", "file_id": "f", "position": number, "text": RETRY.format(number=number),
        "truncated": False, "read_at": NOW, "day": "2026-01-31",
    }  # fmt: skip
    lake.append(LOG_RECORDS, rows(LOG_RECORDS, [row(LOG_RECORDS, **record)]))


def find_loss(lake: Lake, number: int) -> None:
    """A loss event, as if a run had found it."""
    event = {
        "session": f"s{number}", "topic": "t", "first_seq": 0, "last_seq": 2, "count": 3,
        "state": "lost_after_ack", "cause": "acks_1_leader_change", "first_at": NOW,
    }  # fmt: skip
    lake.append(LOSS_EVENTS, rows(LOSS_EVENTS, [row(LOSS_EVENTS, **event)]))


JOBS: dict[str, Callable[[Lake, int], None]] = {
    # a map, a fold and a diff; what is new for each
    "producer_events": print_line,
    "coverage": print_line,
    "verdict_changes": find_loss,
}


def contents(lake: Lake, table: Table) -> list[str]:
    return sorted(str(plain(found)) for found in lake.read(table).to_pylist())


def numbers(lake: Lake, job: str) -> list[int]:
    """The runs of *job* that were recorded."""
    return sorted(r["run"] for r in lake.read(RUNS).to_pylist() if r["job"] == job)


def before_commit(monkeypatch: pytest.MonkeyPatch, happens: Callable[[], object]) -> None:
    """Let something happen once, when the next run has written its files and not committed."""

    def passing(point: str) -> None:
        if point == "before_commit":
            monkeypatch.setattr(runner, "crash_point", lambda _point: None)
            happens()

    monkeypatch.setattr(runner, "crash_point", passing)


@pytest.mark.parametrize("name", JOBS)
def test_who_commits_second_finds_nothing_new(name, spark, tmp_path, monkeypatch):
    (job,) = jobs_named([name])
    lake, other, alone = (Lake(tmp_path / place) for place in ("lake", "lake", "alone"))
    for number in range(1, 4):
        JOBS[name](lake, number)
        JOBS[name](alone, number)
    runner.run(job, alone, lambda: spark, NOW)
    before_commit(monkeypatch, lambda: runner.run(job, other, lambda: spark, NOW))
    done = runner.run(job, lake, lambda: spark, NOW)
    assert done.nothing_new
    assert contents(lake, job.output) == contents(alone, job.output) != []
    assert numbers(lake, name) == [0]


@pytest.mark.parametrize("name", JOBS)
def test_what_came_in_while_a_job_ran_is_the_next_runs(name, spark, tmp_path, monkeypatch):
    (job,) = jobs_named([name])
    lake, other, alone = (Lake(tmp_path / place) for place in ("lake", "lake", "alone"))
    for number in range(1, 5):
        JOBS[name](alone, number)
    for number in range(1, 3):
        JOBS[name](lake, number)

    def more() -> None:
        for number in range(3, 5):
            JOBS[name](other, number)

    before_commit(monkeypatch, more)
    first = runner.run(job, lake, lambda: spark, NOW)
    assert not first.nothing_new
    assert not runner.is_up_to_date(job, lake)
    second = runner.run(job, lake, lambda: spark, NOW)
    assert not second.nothing_new
    assert runner.is_up_to_date(job, lake)
    runner.run(job, alone, lambda: spark, NOW)
    assert contents(lake, job.output) == contents(alone, job.output) != []
    assert numbers(lake, name) == [0, 1]
