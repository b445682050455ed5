"""Batches of one producer, topic, error and state are one line; no batch is left out."""

from __future__ import annotations

from collections import Counter
from dataclasses import replace
from datetime import timedelta

from hypothesis import given
from hypothesis import strategies as st

from acktrail.retries.fleet import Burning
from acktrail.retries.producer_budgets import by_producer
from acktrail.retries.state import BudgetState, urgency
from tests.unit.retries.retry_lines import NOON
from tests.unit.retries.test_budget_state import budgets

CLIENTS = st.tuples(st.sampled_from("ab"), st.sampled_from(("", "h1")), st.sampled_from("xy"))
BURNING = st.lists(st.builds(lambda c, b: Burning(*c, b), CLIENTS, budgets()), max_size=30)
TIMES = st.integers(-30, 300).map(lambda s: NOON + timedelta(seconds=s))


@given(BURNING, TIMES, st.randoms())
def test_every_batch_is_in_one_line_and_the_most_urgent_is_on_top(found, as_of, random) -> None:
    lines = by_producer(found, as_of)
    counted = Counter(
        (b.cluster, b.host, b.client_id, b.budget.topic, b.budget.error, b.state(as_of))
        for b in found
    )
    got = {(x.cluster, x.host, x.client_id, x.topic, x.error, x.state): x.batches for x in lines}
    assert got == counted
    assert all(line.what_to_do for line in lines)
    if found:
        first = min(found, key=lambda b: urgency(b.budget, as_of, b.thresholds))
        assert lines[0].state is first.state(as_of)
    mixed = list(found)
    random.shuffle(mixed)
    assert Counter(by_producer(mixed, as_of)) == Counter(lines)


@given(budgets(), TIMES)
def test_what_is_not_known_is_not_counted_as_nothing(budget, as_of) -> None:
    known = Burning("c", "h", "p", replace(budget, records_at_stake=3, attempts_left=2))
    unknown = Burning("c", "h", "p", replace(budget, records_at_stake=None, attempts_left=None))
    (alone,) = by_producer([unknown], as_of)
    assert (alone.records_at_stake, alone.attempts_left) == (None, None)
    together = by_producer([known, unknown, known], as_of)
    assert sum(line.records_at_stake or 0 for line in together) == 6
    if BudgetState.CRITICAL not in {line.state for line in together}:
        assert len(together) == 1
