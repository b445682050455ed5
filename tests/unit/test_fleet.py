"""The fleet view: who burns on which broker, how fast, and in one sentence."""

from __future__ import annotations

from datetime import timedelta

import pytest

from pipelines.rules.budget import budgets_of
from pipelines.rules.fleet import Burning, Growth, Level, Rates, fronts_of, rates
from tests.unit.retry_lines import DEFAULTS, FIVE, MAX, NOON, line

AS_OF = NOON + timedelta(seconds=49)


def burning(client: str, node: int, error: str = "NOT_ENOUGH_REPLICAS") -> Burning:
    lines = [line(n, MAX - 1 - n, n + 1, error=error) for n in range(49)]
    lines = [type(s)(**{**s.__dict__, "node": node}) for s in lines]
    return Burning("c", "app1", client, budgets_of(lines, [DEFAULTS])[0])


def grown(who: str, metric: str, minutes_ago: float, by: float, error: str = "") -> Growth:
    return Growth("c", who, metric, AS_OF - timedelta(minutes=minutes_ago), by, error)


def test_fourteen_producers_on_one_broker_are_one_sentence() -> None:
    fleet = [burning(f"orders-{n}", 2) for n in range(14)]
    fronts = fronts_of(
        fleet, [], [], [Level("c", "2", "under-min-isr-partitions", AS_OF, 3)], AS_OF
    )
    assert [f.sentence for f in fronts] == [
        "14 producers burn on broker 2, NOT_ENOUGH_REPLICAS, first exhausts in 71 s, "
        "3 partitions under min ISR"
    ]
    assert fronts[0].critical == 14


def test_each_broker_and_error_is_a_front_and_the_first_to_exhaust_is_on_top() -> None:
    soon = Burning("c", "", "batch", budgets_of([line(48, 1, 1)], [FIVE])[0])
    fronts = fronts_of([burning("a", 2), burning("b", 3), soon], [], [], [], AS_OF)
    assert [(f.broker, f.producers) for f in fronts] == [
        (None, ("batch",)),
        (2, ("a@app1",)),
        (3, ("b@app1",)),
    ]


def test_what_is_over_does_not_burn() -> None:
    assert fronts_of([burning("a", 2)], [], [], [], NOON + timedelta(minutes=3)) == []
    assert fronts_of([burning("a", 2)], [], [], [], NOON - timedelta(minutes=3)) == []


def test_burn_over_five_minutes_and_an_hour() -> None:
    growth = [grown("a", "record-retry-total", 1, 300), grown("a", "record-retry-total", 30, 60)]
    assert rates(growth, AS_OF) == Rates(1.0, 0.1)
    assert rates(growth, AS_OF).rising
    assert rates([], AS_OF) == Rates(None, None)


def test_a_front_is_joined_with_its_own_broker_and_clients_only() -> None:
    front = fronts_of(
        [burning("a", 2)],
        [grown("a", "record-retry-total", 1, 300), grown("z", "record-retry-total", 1, 9000)],
        [
            grown("2", "failed-produce-requests-total", 1, 600),
            grown("3", "failed-produce-requests-total", 1, 9000),
            grown("2", "request-errors-total", 1, 900, "NOT_ENOUGH_REPLICAS"),
            grown("2", "request-errors-total", 1, 9000, "NONE"),
        ],
        [Level("c", "3", "under-min-isr-partitions", AS_OF, 9)],
        AS_OF,
    )[0]
    assert front.retries.short_per_s == pytest.approx(1.0)
    assert front.failed_produce.short_per_s == pytest.approx(2.0)
    assert front.answered_with_error.short_per_s == pytest.approx(3.0)
    assert front.under_min_isr is None
