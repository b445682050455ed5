"""Which chains of retries are about to run out, asked at one moment."""

from __future__ import annotations

import pandas as pd
import pytest
from gold_rows import NOW, ago, budget

from acktrail.contracts.arrow import rows
from acktrail.contracts.gold import RETRY_BUDGETS
from expectations.domain.retries import ExpectRetryBudgetLeft

NO_TIME = {"exhausts_at_earliest": None, "exhausts_at_latest": None}
CASES = {
    # what                                       facts                                     warns
    "half a minute before the early end": ({}, True),
    "between the early and the late end": ({"exhausts_at_earliest": ago(5)}, True),
    "long before the early end": ({"exhausts_at_earliest": ago(-100)}, False),
    "a short budget, more than a quarter left": (
        {"delivery_timeout_ms": 20_000, "exhausts_at_earliest": ago(-16)},
        False,
    ),
    "a short budget, a quarter gone": (
        {"delivery_timeout_ms": 20_000, "exhausts_at_earliest": ago(-14)},
        True,
    ),
    "surely over": ({"exhausts_at_latest": ago(1), "exhausts_at_earliest": ago(9)}, False),
    "recovered": ({"ended_at": ago(1), "ended_by": "recovered"}, False),
    "recovers later than we ask": ({"ended_at": ago(-1), "ended_by": "recovered"}, True),
    "gone quiet": ({"quiet_at": ago(1)}, False),
    "opens later than we ask": ({"opened_at": ago(-1)}, False),
    "time unknown, one attempt left": ({**NO_TIME, "attempts_left": 1}, True),
    "time unknown, many attempts left": ({**NO_TIME, "attempts_left": 9}, False),
    "nothing known": (NO_TIME, False),
}


def frame(*records):
    return rows(RETRY_BUDGETS, records).to_pandas()


@pytest.mark.parametrize("case", CASES)
def test_a_chain_warns_while_it_can_still_be_saved(case):
    facts, warns = CASES[case]
    expectation = ExpectRetryBudgetLeft(as_of=NOW.isoformat())
    assert bool(expectation.findings(frame(budget(**facts)))) is warns


def test_many_batches_on_one_error_are_one_finding_with_all_their_keys():
    chains = [budget(partition=p, client_id=f"c{p % 3}") for p in range(70)]
    (found,) = ExpectRetryBudgetLeft(as_of=NOW.isoformat()).findings(frame(*chains))
    assert (found.count, len(found.keys), found.clients) == (70, 50, ("c0", "c1", "c2"))
    assert found.starts_at == ago(80)
    assert "in 30 s" in found.because


def test_a_topic_may_have_its_own_threshold():
    strict = ({"topic": "pay*", "retry_warning_s": 10.0}, {"retry_warning_s": 85.0})
    expectation = ExpectRetryBudgetLeft(as_of=NOW.isoformat(), limits=strict)
    found = expectation.findings(frame(budget(), budget(topic="orders")))
    assert [f.topic for f in found] == ["orders"]


def test_no_rows_are_no_findings():
    assert ExpectRetryBudgetLeft(as_of=NOW.isoformat()).findings(frame()) == []
    assert isinstance(frame(), pd.DataFrame)


def test_a_leader_that_lacks_replicas_is_not_the_broker_behind_it():
    expectation = ExpectRetryBudgetLeft(as_of=NOW.isoformat())
    for error, behind in (("NOT_ENOUGH_REPLICAS", ()), ("REQUEST_TIMED_OUT", ("2",))):
        (found,) = expectation.findings(frame(budget(error=error, node=2)))
        assert found.brokers == behind
