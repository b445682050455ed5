"""The fleet view: who burns on which broker, how fast, and in one sentence."""

from __future__ import annotations

from datetime import timedelta
from typing import Any

import pytest

from acktrail.retries.budget import budgets_of
from acktrail.retries.burn import Growth, Rate, Rates, rates
from acktrail.retries.fleet import Burning, Level, Measured, fronts_of
from tests.unit.retries.retry_lines import DEFAULTS, FIVE, MAX, NOON, line

AS_OF = NOON + timedelta(seconds=49)
MINUTE = timedelta(minutes=1)


def burning(client: str, node: int, error: str = "NOT_ENOUGH_REPLICAS") -> Burning:
    lines = [line(n, MAX - 1 - n, n + 1, error=error) for n in range(49)]
    lines = [type(s)(**{**s.__dict__, "node": node}) for s in lines]
    return Burning("c", "app1", client, budgets_of(lines, [DEFAULTS])[0])


def grown(who: str, metric: str, minutes_ago: float, by: float, **more: Any) -> Growth:
    """A total of *who* grew *by* so much within a minute."""
    at = AS_OF - timedelta(minutes=minutes_ago)
    more = {"host": "app1", "elapsed": MINUTE, **more}
    return Growth("c", who, metric, at, by, **more)


def each_minute(who: str, metric: str, last: range, by: float, **more: Any) -> list[Growth]:
    return [grown(who, metric, n, by, **more) for n in last]


def test_fourteen_producers_on_one_broker_are_one_sentence() -> None:
    fleet = [burning(f"orders-{n}", 2) for n in range(14)]
    below = Level("c", "2", "under-min-isr-partitions", AS_OF, 3)
    fronts = fronts_of(fleet, Measured(levels=[below]), AS_OF)
    assert [f.sentence for f in fronts] == [
        "14 producers retry on broker 2, NOT_ENOUGH_REPLICAS, the first may give up in 71 s, "
        "3 partitions under min ISR"
    ]
    assert fronts[0].critical == 14


def test_each_broker_and_error_is_a_front_and_the_first_to_exhaust_is_on_top() -> None:
    soon = Burning("c", "", "batch", budgets_of([line(48, 1, 1)], [FIVE])[0])
    fronts = fronts_of([burning("a", 2), burning("b", 3), soon], Measured(), AS_OF)
    assert [(f.broker, tuple(p.name for p in f.producers)) for f in fronts] == [
        (None, ("batch",)),
        (2, ("a@app1",)),
        (3, ("b@app1",)),
    ]


def test_what_is_over_does_not_burn() -> None:
    assert fronts_of([burning("a", 2)], Measured(), NOON + timedelta(minutes=3)) == []
    assert fronts_of([burning("a", 2)], Measured(), NOON - timedelta(minutes=3)) == []


RETRY, ERROR = "record-retry-total", "record-error-total"
FAILED, ANSWERED = "failed-produce-requests-total", "request-errors-total"
BURN = {
    # growth -> per second and seconds measured, over five minutes and an hour
    "all of both windows": (
        [*each_minute("a", RETRY, range(5), 60), *each_minute("a", RETRY, range(5, 60), 6)],
        Rates(Rate(1.0, 300), Rate(63 / 360, 3600))),
    "two minutes at 10/s are 10/s, of two minutes": (
        each_minute("a", RETRY, range(2), 600), Rates(Rate(10.0, 120), Rate(10.0, 120))),
    "nothing": ([], Rates(None, None)),
    "nothing in the short window": (
        each_minute("a", RETRY, range(30, 32), 60), Rates(None, Rate(1.0, 120))),
    "a growth that began before the window counts in part": (
        [grown("a", RETRY, 1, 600, elapsed=timedelta(minutes=10))],
        Rates(Rate(1.0, 240), Rate(1.0, 600))),
    "two series of one target over the same time": (
        [*each_minute("a", RETRY, range(5), 60), *each_minute("a", RETRY, range(5), 30)],
        Rates(Rate(1.5, 300), Rate(1.5, 300))),
}  # fmt: skip


@pytest.mark.parametrize("case", BURN)
def test_burn_over_five_minutes_and_an_hour(case: str) -> None:
    growth, expected = BURN[case]
    got = rates(growth, AS_OF)
    for found, wanted in ((got.short, expected.short), (got.long, expected.long)):
        assert (found is None) == (wanted is None)
        if found is not None and wanted is not None:
            assert found.per_s == pytest.approx(wanted.per_s)
            assert found.measured_s == pytest.approx(wanted.measured_s)


def test_a_front_is_joined_with_its_own_broker_and_clients_only() -> None:
    measured = Measured(
        clients=[
            *each_minute("a", RETRY, range(5), 60),
            *each_minute("z", RETRY, range(5), 9000),
        ],
        brokers=[
            *each_minute("2", FAILED, range(5), 120),
            *each_minute("3", FAILED, range(5), 9000),
            *each_minute("2", ANSWERED, range(5), 180, error="NOT_ENOUGH_REPLICAS"),
            *each_minute("2", ANSWERED, range(5), 6, error="NOT_LEADER_OR_FOLLOWER"),
            *each_minute("2", ANSWERED, range(5), 0, error="UNKNOWN_SERVER_ERROR"),
            *each_minute("2", ANSWERED, range(5), 9000, error="NONE"),
        ],
        levels=[Level("c", "3", "under-min-isr-partitions", AS_OF, 9)],
    )
    (front,) = fronts_of([burning("a", 2)], measured, AS_OF)
    assert front.brokers == ("2",)
    assert per_s(front.retries) == pytest.approx(1.0)
    assert per_s(front.failed_produce) == pytest.approx(2.0)
    assert [(code, per_s(r)) for code, r in front.answers.items()] == [
        ("NOT_ENOUGH_REPLICAS", pytest.approx(3.0)),
        ("NOT_LEADER_OR_FOLLOWER", pytest.approx(0.1)),
    ]
    assert front.under_min_isr is None


def per_s(rates: Rates) -> float | None:
    return None if rates.short is None else rates.short.per_s


def test_an_error_that_began_a_minute_ago_is_measured_as_long_as_its_broker() -> None:
    brokers = [
        *each_minute("2", ANSWERED, range(60), 600, error="NONE"),
        grown("2", ANSWERED, 0, 300, error="NOT_ENOUGH_REPLICAS"),
    ]
    (front,) = fronts_of([burning("a", 2)], Measured(brokers=brokers), AS_OF)
    answered = front.answers["NOT_ENOUGH_REPLICAS"]
    assert answered.short is not None
    assert (answered.short.per_s, answered.short.measured_s) == (pytest.approx(1.0), 300)


def test_a_client_id_of_another_host_is_another_producer() -> None:
    measured = Measured(
        clients=[
            *each_minute("producer-1", RETRY, range(5), 60, host="app1"),
            *each_minute("producer-1", RETRY, range(5), 9000, host="app2"),
            *each_minute("producer-1", ERROR, range(5), 6, host="app1"),
        ]
    )
    (front,) = fronts_of([burning("producer-1", 2)], measured, AS_OF)
    (producer,) = front.producers
    assert (producer.name, per_s(producer.retries)) == ("producer-1@app1", pytest.approx(1.0))
    assert per_s(front.errors) == pytest.approx(0.1)


def test_the_only_host_of_a_client_id_is_known_by_any_name() -> None:
    measured = Measured(clients=each_minute("a", RETRY, range(5), 60, host="10.0.0.7"))
    (front,) = fronts_of([burning("a", 2)], measured, AS_OF)
    assert per_s(front.producers[0].retries) == pytest.approx(1.0)


def test_the_fastest_burning_producer_is_on_top_and_unmeasured_ones_are_unknown() -> None:
    measured = Measured(
        clients=[*each_minute("a", RETRY, range(5), 60), *each_minute("b", RETRY, range(5), 90)]
    )
    (front,) = fronts_of([burning(name, 2) for name in "abz"], measured, AS_OF)
    assert [(p.client_id, per_s(p.retries)) for p in front.producers] == [
        ("b", pytest.approx(1.5)),
        ("a", pytest.approx(1.0)),
        ("z", None),
    ]
    assert per_s(front.retries) == pytest.approx(2.5)


def test_a_front_without_a_broker_says_whose_metrics_it_has() -> None:
    unknown = Burning("c", "", "batch", budgets_of([line(48, 1, 1)], [FIVE])[0])
    measured = Measured(
        brokers=[
            *each_minute("2", FAILED, range(5), 60),
            *each_minute("10.0.0.3:7071", FAILED, range(5), 60),
        ],
        levels=[
            Level("c", b, "under-min-isr-partitions", AS_OF, n) for b, n in (("2", 4), ("3", 1))
        ],
    )
    (front,) = fronts_of([unknown], measured, AS_OF)
    assert front.brokers == ("10.0.0.3:7071", "2", "3")
    assert per_s(front.failed_produce) == pytest.approx(2.0)
    assert front.sentence.endswith("4 partitions under min ISR on broker 2")
