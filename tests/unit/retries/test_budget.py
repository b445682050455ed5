"""When a budget ends, how it ended, and what a person is told."""

from __future__ import annotations

from dataclasses import replace
from datetime import datetime, timedelta

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from acktrail.retries.backoff import backoffs
from acktrail.retries.budget import Budget, budgets_of
from acktrail.retries.error_counter import CounterSample
from acktrail.retries.signs import RetrySettings, Sign
from acktrail.retries.state import BudgetState, critical_at, state_of, urgency
from tests.unit.retries.retry_lines import (
    DEFAULTS,
    FIVE,
    MAX,
    NO_TIMEOUT,
    NOON,
    SPENT,
    at,
    counter,
    expiry,
    line,
    simulate,
)


def seconds(when: datetime | None) -> float | None:
    return None if when is None else round((when - NOON).total_seconds(), 3)


OLD = RetrySettings("config", retries=3, request_timeout_ms=30_000, linger_ms=0,
                       retry_backoff_ms=100, client_version="2.0.1")  # fmt: skip
SHORT = replace(DEFAULTS, delivery_timeout_ms=20_000)

ENDS = {
    # settings, lines -> earliest, latest, axis, confidence of the first chain
    "time: from the first line, less linger": (
        DEFAULTS, [line(0, MAX - 1, 1), line(0.1, MAX - 2, 2)],
        (119.995, 120, "time", "bounded")),
    "time: a time-out may have waited 30 s before its line": (
        DEFAULTS, [line(0, MAX - 1, 1, error="REQUEST_TIMED_OUT")],
        (89.995, 120, "time", "bounded")),
    "time: a broken connection too": (
        DEFAULTS, [line(0, MAX - 1, 1, error="NETWORK_EXCEPTION")],
        (89.995, 120, "time", "bounded")),
    "time: the client said how long the broken request had waited": (
        DEFAULTS,
        [line(0, MAX - 1, 7, error="NETWORK_EXCEPTION"),
         Sign("c", "connection_failure", at(-0.1), correlation_id=7, elapsed_ms=700, node=2,
              origin="app.log")],
        (120 - 0.005 - 0.8, 120, "time", "bounded")),
    "attempts: the announced one and those left, backoff doubling to its ceiling": (
        FIVE, [line(0, 4, 1)],
        # 500 ms -20 %, then four of 1 s -20 %; at the latest each waits for its time-out
        (0.4 + 4 * 0.8, 120, "attempts", "bounded")),
    "attempts: 0 left is one more try, not yet a loss": (
        FIVE, [line(0, 4, 1), line(1, 3, 2), line(2, 2, 3), line(3, 1, 4), line(4, 0, 5)],
        (4.8, 4 + 31, "attempts", "bounded")),
    "attempts: a moved leader is tried at once": (
        FIVE, [line(0, 0, 5, error="NOT_LEADER_OR_FOLLOWER")],
        (0, 31, "attempts", "partly")),
    "attempts: before 2.1 there is no other axis, and backoff is fixed": (
        OLD, [line(0, 2, 1)],
        (0.3, 90.3, "attempts", "bounded")),
    "time comes first though attempts are finite": (
        replace(SHORT, retries=1000), [line(0, 999, 1)],
        (19.995, 20, "time", "bounded")),
    "attempts known, time not": (
        NO_TIMEOUT, [line(0, 1, 1)],
        (0.8 * 2, 62, "attempts", "partly")),
    "nothing known, default retries": (
        None, [line(0, MAX - 1, 1)],
        (None, None, "unknown", "unknown")),
    "earlier lines are missing: it may be much older": (
        DEFAULTS, [line(0, MAX - 3, 1)],
        # two backoffs at least; at most two backoffs and two request time-outs and linger
        (120 - 0.12 - 0.24 - 60 - 0.005, 120 - 0.08 - 0.16, "time", "partly")),
    "a split keeps the age of the whole batch": (
        FIVE, [line(0, 5, 1, kind="split_retry"), line(60, 4, 2)],
        (119.995, 120, "time", "bounded")),
}  # fmt: skip


@pytest.mark.parametrize("case", ENDS)
def test_when_it_ends(case: str) -> None:
    config, lines, expected = ENDS[case]
    got = next(b for b in budgets_of(lines, [config] if config else []) if b.topic)
    found = (seconds(got.exhausts_at_earliest), seconds(got.exhausts_at_latest))
    assert (*found, got.exhausted_by, got.confidence) == (
        *(None if e is None else pytest.approx(e, abs=0.002) for e in expected[:2]),
        *expected[2:],
    )


def test_the_broker_behind_it_is_that_of_the_cancelled_request() -> None:
    cancelled = Sign("c", "connection_failure", at(-0.1), correlation_id=7, elapsed_ms=700, node=2,
                     origin="app.log")  # fmt: skip
    budgets = budgets_of([line(0, MAX - 1, 7, error="NETWORK_EXCEPTION"), cancelled], [DEFAULTS])
    assert {b.node for b in budgets} == {2}


def test_the_parts_of_a_split_batch_end_with_it() -> None:
    split, part = budgets_of(
        [line(0, 2**31 - 1, 1, kind="split_retry"), line(60, MAX - 1, 2)], [DEFAULTS]
    )
    assert part.exhausts_at_latest == split.exhausts_at_latest == at(120)


def test_a_batch_that_queued_behind_burning_ones_has_less_time() -> None:
    ahead = [line(n, MAX - 1 - n, n + 1) for n in range(100)]
    behind = line(100.5, MAX - 1, 999)
    budget = next(b for b in budgets_of([*ahead, behind], [DEFAULTS]) if b.opened_at == at(100.5))
    assert seconds(budget.exhausts_at_earliest) == pytest.approx(120 - 0.005)
    assert seconds(budget.exhausts_at_latest) == 220.5


def test_what_is_not_known_is_said_with_what_would_settle_it() -> None:
    budget = budgets_of([line(0, MAX - 1, 1)])[0]
    assert budget.unknown is not None
    assert "delivery.timeout.ms is not known" in budget.unknown
    assert "ProducerConfig block" in budget.unknown
    assert "by 12:02:00" in budget.unknown
    assert state_of(budget, at(1)) is BudgetState.UNKNOWN


def test_records_at_stake_from_metrics_are_records_per_retry_line() -> None:
    lines = [line(n + 0.5, MAX - 1 - n, n + 1) for n in range(20)]
    retried = [CounterSample(f"r{n}", at(n - 5), at(n), 5 * 12.0) for n in range(0, 30, 5)]
    assert budgets_of(lines, [DEFAULTS], retried=retried)[0].records_at_stake == 12


BURNING = [line(n, MAX - 1 - n, n + 1) for n in range(0, 120)]
STATES = [
    # lines, settings, errors, as of -> state
    ("just begun", BURNING[:2], DEFAULTS, (), 5, "burning"),
    ("a quarter gone", BURNING[:41], DEFAULTS, (), 41, "critical"),
    ("one line, and no more when due", BURNING[:1], DEFAULTS, (), 40, "quiet"),
    ("one line is never critical", BURNING[:1], DEFAULTS, (), 30, "burning"),
    ("past its end", BURNING, DEFAULTS, (), 121, "ended_unknown"),
    ("past its end, quiet before", BURNING[:1], DEFAULTS, (), 121, "ended_unknown"),
    ("proven lost", BURNING, DEFAULTS, counter(120), 150, "exhausted"),
    ("asked before it was proven", BURNING, DEFAULTS, counter(120), 100, "critical"),
    ("proven well", BURNING[:5], DEFAULTS, counter(), 150, "recovered"),
    ("few attempts", SPENT[:1], FIVE, (), 1, "critical"),
    ("short timeout, just begun", BURNING[:2], SHORT, (), 2, "burning"),
    ("short timeout, a quarter gone", BURNING[:6], SHORT, (), 6, "critical"),
    ("settings unknown", BURNING[:6], None, (), 6, "unknown"),
]


@pytest.mark.parametrize(
    ("lines", "config", "errors", "as_of", "expected"),
    [s[1:] for s in STATES],
    ids=[s[0] for s in STATES],
)
def test_state(lines, config, errors, as_of, expected) -> None:
    budget = budgets_of(lines, [config] if config else [], errors)[0]
    assert state_of(budget, at(as_of)) == expected


def test_when_it_becomes_critical() -> None:
    burning = budgets_of(BURNING, [DEFAULTS])[0]
    assert seconds(critical_at(burning)) == pytest.approx(119.995 - 85)
    assert critical_at(budgets_of(BURNING[:1], [DEFAULTS])[0]) is None
    assert critical_at(budgets_of(BURNING, [])[0]) is None


def test_the_most_urgent_comes_first() -> None:
    found = [
        *budgets_of(BURNING[:41], [DEFAULTS]),
        *budgets_of([line(40, 1, 1, partition=5)], [FIVE]),
        *budgets_of([line(39, MAX - 1, 1, partition=6)], [DEFAULTS]),
    ]
    ordered = sorted(found, key=lambda b: urgency(b, at(41)))
    assert [b.partition for b in ordered] == [5, 3, 6]


def open_budget(lines: list[Sign], config: RetrySettings) -> dict[datetime, Budget]:
    return {b.opened_at: b for b in budgets_of(lines, [config])}


@settings(max_examples=40, deadline=None)
@given(st.integers(0, 10_000), st.integers(1, 6), st.sampled_from([DEFAULTS, FIVE, NO_TIMEOUT]))
def test_a_budget_never_grows_without_a_new_batch(seed, batches, config) -> None:
    """Line by line: attempts only fall, the late end never moves later.

    The early end never moves earlier. It moves later only by a line of its own, only where attempts
    end first, and by no more than that retry took beyond its quickest: time that is spent.
    """
    signs, _ = simulate(seed, batches, config)
    before: dict[datetime, Budget] = {}
    for count in range(1, len(signs) + 1):
        now = open_budget(signs[:count], config)
        assert before.keys() <= now.keys()
        for opened_at, old in before.items():
            new = now[opened_at]
            assert (new.attempts_left or 0) <= (old.attempts_left or 0)
            assert new.exhausts_at_latest <= old.exhausts_at_latest
            later = new.exhausts_at_earliest - old.exhausts_at_earliest
            assert timedelta(0) <= later <= spent_beyond_the_quickest(old, new, config)
        before = now


def spent_beyond_the_quickest(old: Budget, new: Budget, config: RetrySettings) -> timedelta:
    """By how much the retries between two states of a budget were slower than they could be."""
    if new.last_at == old.last_at or old.exhausted_by != "attempts":
        return timedelta(0)
    left_before, left = old.attempts_left, new.attempts_left
    quickest = backoffs(config, config.retries - left_before, left_before - left).lowest
    printed = timedelta(microseconds=10)  # instants are kept to the microsecond
    return new.last_at - old.last_at - timedelta(milliseconds=quickest) + printed


@settings(max_examples=30, deadline=None)
@given(st.integers(0, 10_000), st.integers(1, 6), st.randoms(use_true_random=False))
def test_the_order_of_the_evidence_does_not_matter(seed, batches, rng) -> None:
    signs, _ = simulate(seed, batches, DEFAULTS)
    signs = [*signs, expiry(119.9, 119.95), expiry(200, 119.95)]
    signs += [
        Sign(f"{kind}{second}", kind, at(second), "orders", 3, error="NotEnoughReplicasException",
             origin="app.log")
        for second in (90.0, 125.0, 260.0)
        for kind in ("send_failed", "invalid_metadata", "sequence_reset", "dropped_at_close")
    ]  # fmt: skip
    errors = counter(120, 200, until=400)
    expected = budgets_of(signs, [DEFAULTS], errors)
    rng.shuffle(signs)
    rng.shuffle(errors)
    assert budgets_of(signs, [DEFAULTS], errors) == expected
