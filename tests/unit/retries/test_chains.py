"""Which retry lines are one batch: named cases and properties."""

from __future__ import annotations

from datetime import timedelta

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from acktrail.retries.backoff import backoff, backoffs
from acktrail.retries.chains import chains_of
from acktrail.retries.signs import NO_LEADER, RetrySettings, Sign
from tests.unit.retries.retry_lines import DEFAULTS, FIVE, MAX, NOON, line, simulate

# Each case: settings, lines as (second, attempts left, correlation id, extras) and the chains
# expected, as lists of (second, attempts left).
CASES = {
    "one batch of five": (FIVE, [(0, 4, 1), (0.6, 3, 2), (1.7, 2, 3)], [[0, 0.6, 1.7]]),
    "4 3 2 1 0 4 3 is two batches": (
        FIVE,
        [(0, 4, 1), (1, 3, 2), (2, 2, 3), (3, 1, 4), (4, 0, 5), (5, 4, 6), (6, 3, 7)],
        [[0, 1, 2, 3, 4], [5, 6]],
    ),
    "the same without knowing the settings": (
        None,
        [(0, 4, 1), (1, 3, 2), (2, 2, 3), (3, 1, 4), (4, 0, 5), (5, 4, 6), (6, 3, 7)],
        [[0, 1, 2, 3, 4], [5, 6]],
    ),
    "two interleaved at the default": (
        DEFAULTS,
        [(0, MAX - 1, 1), (0.05, MAX - 1, 2), (0.1, MAX - 2, 3), (0.15, MAX - 2, 4)],
        [[0, 0.1], [0.05, 0.15]],
    ),
    "interleaved at different ages": (
        DEFAULTS,
        [
            (0, MAX - 1, 1),
            (0.1, MAX - 2, 2),
            (0.2, MAX - 1, 3),
            (0.3, MAX - 3, 4),
            (0.31, MAX - 2, 5),
        ],
        [[0, 0.1, 0.3], [0.2, 0.31]],
    ),
    "an answered batch does not take the next one's lines": (
        DEFAULTS,
        [(0, MAX - 1, 1), (60, MAX - 1, 2), (60.1, MAX - 2, 3)],
        [[0], [60, 60.1]],
    ),
    "a restart: correlation ids fall": (
        DEFAULTS,
        [(0, MAX - 1, 900), (0.1, MAX - 2, 901), (0.3, MAX - 3, 12)],
        [[0, 0.1], [0.3]],
    ),
    "the clock steps back": (
        DEFAULTS,
        [(0, MAX - 1, 100), (0.1, MAX - 2, 101), (-3599.7, MAX - 3, 102)],
        [[-3599.7], [0, 0.1]],
    ),
    "the clock steps forward past the timeout": (
        DEFAULTS,
        [(0, MAX - 1, 100), (0.1, MAX - 2, 101), (3600.3, MAX - 3, 102)],
        [[0, 0.1], [3600.3]],
    ),
    "lines are missing in the middle": (
        DEFAULTS,
        [(0, MAX - 1, 1), (3, MAX - 5, 9)],
        [[0, 3]],
    ),
    "too soon for the missing lines": (
        DEFAULTS,
        [(0, MAX - 1, 1), (0.05, MAX - 9, 9)],
        [[0], [0.05]],
    ),
    "a first line never fills a gap": (
        FIVE,
        [(0, 4, 1), (1, 4, 2)],
        [[0], [1]],
    ),
    "two processes share a client id, not a file": (
        DEFAULTS,
        [
            (0, MAX - 1, 1000, {"origin": "a.log"}),
            (0.01, MAX - 1, 50, {"origin": "b.log"}),
            (0.1, MAX - 2, 51, {"origin": "b.log"}),
            (0.11, MAX - 2, 1001, {"origin": "a.log"}),
        ],
        [[0, 0.11], [0.01, 0.1]],
    ),
    "several partitions of one request": (
        DEFAULTS,
        [
            (0, MAX - 1, 7, {"partition": 1}),
            (0, MAX - 1, 7, {"partition": 2}),
            (0.1, MAX - 2, 8, {"partition": 1}),
            (0.1, MAX - 2, 8, {"partition": 2}),
        ],
        [[0, 0.1], [0, 0.1]],
    ),
    "a split is apart": (
        FIVE,
        [(0, 4, 1), (0.5, 5, 2, {"kind": "split_retry"}), (0.6, 3, 3)],
        [[0, 0.6], [0.5]],
    ),
    "no answer for 30 s, twice, beside a quick one": (
        DEFAULTS,
        [
            (0, MAX - 1, 1, {"error": "REQUEST_TIMED_OUT"}),
            (30, MAX - 1, 3, {"error": "NOT_LEADER_OR_FOLLOWER"}),
            (30.1, MAX - 2, 4, {"error": "REQUEST_TIMED_OUT"}),
        ],
        [[0, 30.1], [30]],
    ),
}


@pytest.mark.parametrize("case", CASES)
def test_chains(case: str) -> None:
    config, lines, expected = CASES[case]
    signs = [
        line(second, left, correlation, **(extra[0] if extra else {}))
        for second, left, correlation, *extra in lines
    ]
    got = chains_of(signs, [config] if config else [])
    seconds = [[(s.at - NOON).total_seconds() for s in chain.signs] for chain in got]
    assert sorted(seconds) == sorted(expected)


def test_connection_failures_of_two_brokers_are_two_chains() -> None:
    signs = [
        Sign(f"k{n}", "connection_failure", NOON + timedelta(seconds=n), node=1 + n % 2)
        for n in range(6)
    ]
    assert [len(c.signs) for c in chains_of(signs, [DEFAULTS])] == [3, 3]


def test_a_batch_that_cannot_be_sent_is_kept_waiting_by_connection_failures() -> None:
    lost = line(0, MAX - 1, 1, error="NETWORK_EXCEPTION")
    refused = [
        Sign(f"k{n}", "connection_failure", NOON + timedelta(seconds=n), node=2)
        for n in range(1, 90)
    ]
    chain = next(c for c in chains_of([lost, *refused], [DEFAULTS]) if c.first is lost)
    assert chain.quiet_at >= NOON + timedelta(seconds=100)
    assert len(chain.companions) == 89


def no_leader(second: float, partition: int = 3, node: int | None = None) -> Sign:
    key, at = f"cluster/{partition}/{second}", NOON + timedelta(seconds=second)
    return Sign(key, NO_LEADER, at, topic="orders", partition=partition, node=node)


LEADERLESS = [
    # case, answers that there is no leader -> quiet after
    ("nobody was asked", [], 30.12),
    ("another partition has none", [no_leader(10, partition=4)], 30.12),
    ("none for a moment", [no_leader(5)], 50.0),
    ("none for as long as it lives", [no_leader(n) for n in range(10, 200, 30)], 145.0),
    ("none again, when it was quiet already", [no_leader(60)], 30.12),
]


@pytest.mark.parametrize(
    ("answers", "quiet"), [c[1:] for c in LEADERLESS], ids=[c[0] for c in LEADERLESS]
)
def test_a_batch_without_a_leader_waits_without_a_word(answers, quiet) -> None:
    retry = line(0, MAX - 1, 1, error="NETWORK_EXCEPTION")
    (chain,) = chains_of([retry, *answers], [DEFAULTS])
    assert (chain.quiet_at - NOON).total_seconds() == pytest.approx(quiet)


CUT_OFF = [
    # case, answers that a partition of a broker has no leader -> quiet after
    ("nobody was asked", [], 12.0),
    ("a partition of another broker", [no_leader(10, node=1)], 12.0),
    ("one of its partitions, asked every 30 s", [no_leader(n, node=2) for n in (30, 60)], 105.0),
    ("for as long as it lives", [no_leader(n, node=2) for n in range(10, 200, 30)], 145.0),
    ("long after the last failure", [no_leader(50, node=2)], 12.0),
]


@pytest.mark.parametrize(
    ("answers", "quiet"), [c[1:] for c in CUT_OFF], ids=[c[0] for c in CUT_OFF]
)
def test_a_client_cut_off_from_a_broker_waits_while_nobody_leads_its_partitions(
    answers, quiet
) -> None:
    """As seen with real clients: between two batches, a broker that stops leaves no retry line."""
    failure = Sign("k", "connection_failure", NOON, node=2)
    (chain,) = chains_of([failure, *answers], [DEFAULTS])
    assert (chain.quiet_at - NOON).total_seconds() == pytest.approx(quiet)


def test_batches_behind_a_burning_one_are_not_quiet() -> None:
    """As seen with real clients: the first is retried, those in flight behind it print once."""
    head = [line(n, MAX - 1 - n, n + 10) for n in range(60)]
    behind = [line(0.01 * n, MAX - 1, n) for n in range(1, 4)]
    chains = chains_of([*head, *behind], [DEFAULTS])
    assert len(chains) == 4
    assert all(c.quiet_at > NOON + timedelta(seconds=85) for c in chains)


def test_a_batch_answered_long_ago_is_quiet_although_another_burns() -> None:
    answered = line(0, MAX - 1, 1)
    burning = [line(60 + n, MAX - 1 - n, n + 10) for n in range(30)]
    chain = chains_of([answered, *burning], [DEFAULTS])[0]
    assert chain.quiet_at < NOON + timedelta(seconds=40)


def test_an_unreachable_bootstrap_address_holds_no_batch() -> None:
    assert chains_of([Sign("k", "connection_failure", NOON, node=-1)], [DEFAULTS]) == []


WAITS = [
    # (version, backoff, highest), attempt -> lowest, highest
    (("3.6.2", 100, None), 1, 100, 100),
    (("3.6.2", 100, None), 9, 100, 100),
    (("3.9.0", 100, None), 1, 80, 120),
    (("3.9.0", 100, None), 2, 160, 240),
    (("3.9.0", 100, None), 9, 800, 1000),
    (("3.9.0", 500, 1000), 2, 800, 1000),
    (("3.9.0", 500, 500), 3, 500, 500),
    ((None, 100, None), 3, 100, 480),
    ((None, None, None), 1, 80, 120),
]


@pytest.mark.parametrize(("client", "attempt", "low", "high"), WAITS)
def test_backoff(client, attempt, low, high) -> None:
    version, first, ceiling = client
    config = RetrySettings(
        "x", client_version=version, retry_backoff_ms=first, retry_backoff_max_ms=ceiling
    )
    wait = backoff(config, attempt)
    assert (wait.lowest, wait.highest) == (pytest.approx(low), pytest.approx(high))


@given(st.integers(1, 80), st.integers(0, 120))
def test_backoffs_add_up(first: int, count: int) -> None:
    one_by_one = [backoff(DEFAULTS, n) for n in range(first, first + count)]
    total = backoffs(DEFAULTS, first, count)
    assert total.lowest == pytest.approx(sum(w.lowest for w in one_by_one))
    assert total.highest == pytest.approx(sum(w.highest for w in one_by_one))


@settings(max_examples=60, deadline=None)
@given(st.integers(0, 10_000), st.integers(1, 12), st.sampled_from([DEFAULTS, FIVE]))
def test_as_many_chains_as_batches_and_every_line_in_one(seed, batches, config) -> None:
    signs, lengths = simulate(seed, batches, config)
    chains = chains_of(signs, [config])
    assert len(chains) == batches
    assert sorted(s.key for c in chains for s in c.signs) == sorted(s.key for s in signs)
    assert sum(len(c.signs) for c in chains) == sum(lengths)
    for chain in chains:
        numbers = [s.attempts_left for s in chain.signs]
        assert numbers == list(range(numbers[0], numbers[0] - len(numbers), -1))
        correlations = [s.correlation_id for s in chain.signs]
        assert correlations == sorted(correlations)


@settings(max_examples=40, deadline=None)
@given(st.integers(0, 10_000), st.integers(1, 8), st.randoms(use_true_random=False))
def test_the_order_of_the_lines_does_not_matter(seed, batches, rng) -> None:
    signs, _ = simulate(seed, batches, DEFAULTS)
    shuffled = [*signs, *signs[:2]]
    rng.shuffle(shuffled)
    assert [c.signs for c in chains_of(shuffled, [DEFAULTS])] == [
        c.signs for c in chains_of(signs, [DEFAULTS])
    ]
