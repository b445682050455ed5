"""Jobs behind the checks of a watch take a part of the time; rounds are timed."""

from __future__ import annotations

import os
from datetime import UTC, datetime

import pytest
from hypothesis import given
from hypothesis import strategies as st

from acktrail.cli import watch
from acktrail.errors import ContractError, Overtaken
from acktrail.operate.round_times import MOST_S, RoundTimes, cpu_seconds, percentile
from acktrail.operate.watch_background import SHARE, TURN_S, BackgroundJobs
from acktrail.operate.watch_steps import PacedStep
from acktrail.settings.sources import PrometheusSource

NOON = datetime(2026, 1, 31, 12, tzinfo=UTC)


class Clock:
    def __init__(self) -> None:
        self.now = 0.0

    def __call__(self) -> float:
        return self.now


class Job:
    """A step that takes *seconds* and ends as told."""

    def __init__(self, name, clock, seconds=1.0, outcome=True):
        self.name, self._clock, self.seconds, self.outcome = name, clock, seconds, outcome
        self.runs = 0

    def __call__(self, _as_of):
        self.runs += 1
        self._clock.now += self.seconds
        if isinstance(self.outcome, Exception):
            raise self.outcome
        return self.outcome


@given(st.lists(st.floats(0, 60), min_size=1, max_size=6))
def test_the_other_jobs_take_a_third_of_the_time_at_most(durations):
    clock = Clock()
    jobs = [Job(str(n), clock, seconds) for n, seconds in enumerate(durations)]
    step = BackgroundJobs(jobs, clock=clock)
    while clock.now < 3600:
        began, runs = clock.now, sum(job.runs for job in jobs)
        step(NOON)
        if clock.now - began > TURN_S + max(durations):
            pytest.fail("a warning waits for more than one job")
        assert clock.now - began < TURN_S or sum(job.runs for job in jobs) > runs
        clock.now += 5
    spent = sum(job.seconds * job.runs for job in jobs)
    one_pass = sum(durations)
    assert spent <= clock.now * SHARE + one_pass
    counts = [job.runs for job in jobs]
    assert counts == sorted(counts, reverse=True), "in order"
    assert counts[0] - counts[-1] <= 1, "a pass is whole"
    assert jobs[0].runs >= 3600 / (max(20, one_pass / SHARE) + 5 * len(jobs)) - 1, (
        "and comes as often as it may"
    )


def test_one_that_fails_stops_no_other_and_is_told():
    clock = Clock()
    broken, late, fine = (
        Job("a", clock, outcome=RuntimeError("no")),
        Job("b", clock, outcome=Overtaken("second")),
        Job("c", clock),
    )
    step = BackgroundJobs([broken, late, fine], clock=clock)
    with pytest.raises(RuntimeError, match="no"):
        step(NOON)
    assert (late.runs, fine.runs) == (1, 1)
    clock.now += 10
    assert step(NOON) is False, "it is not tried again at once"
    clock.now += 20
    broken.outcome = False
    assert step(NOON) is True
    broken.outcome = ContractError("never")
    clock.now += 60
    with pytest.raises(ContractError):
        step(NOON)


def test_a_watch_that_ends_starts_no_other_job():
    clock = Clock()
    step = BackgroundJobs([Job("a", clock), Job("b", clock)], clock=clock)
    step.stopping.set()
    assert step(NOON) is False
    assert step.steps[0].runs == 0


def test_rounds_are_stated_every_ten_minutes():
    clock, said = Clock(), []
    times = RoundTimes(lambda text, slow: said.append((text, slow)), clock, lambda: clock.now / 4)
    for n in range(121):
        clock.now = n * 5.0
        times.add(50.0 if n % 10 == 0 else 2.0)
    ((text, slow),) = said
    assert text.startswith("121 rounds in 10 min: 95 % took at most 50.0 s, CPU 25 % of one core.")
    assert slow == (MOST_S < 50)


@given(st.lists(st.integers(0, 9), min_size=1), st.floats(0.01, 1))
def test_a_percentile_is_reached_by_so_many(values, share):
    found = percentile(values, share)
    assert sum(v <= found for v in values) >= len(values) * share
    assert sum(v < found for v in values) < len(values) * share


def test_the_cpu_of_this_process_is_counted():
    before = cpu_seconds()
    assert before > 0
    sum(n * n for n in range(2_000_000))
    assert cpu_seconds() >= before
    assert cpu_seconds() >= sum(os.times()[:2]) * 0.5


def test_the_periods_of_the_slowest_evidence_leave_room_for_two_rounds_in_a_minute():
    every = next(p.default for p in watch.command.params if p.name == "every")
    samples = PrometheusSource.model_fields
    waits = samples["late_s"].default + samples["interval_s"].default
    waits += every / 2 + PacedStep.every.total_seconds()
    assert waits + 2 * MOST_S <= 60
