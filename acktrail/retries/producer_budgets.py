"""The budgets of one producer, topic and error as one line: batches of one fault share a remedy."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from datetime import datetime

from acktrail.retries.fleet import BURNING, Burning
from acktrail.retries.remedy import remedy
from acktrail.retries.state import BudgetState, urgency

OVER = frozenset({BudgetState.RECOVERED, BudgetState.RESTARTED, BudgetState.ENDED_UNKNOWN})
"""States that need nobody any more."""
_AFTERWARDS = {
    BudgetState.EXHAUSTED: "Given up. Audits show which messages were lost: `acktrail losses`.",
    BudgetState.QUIET: "Nothing now: its next retry was due and did not come.",
    BudgetState.RESTARTED: "The client started again: what it still held is gone.",
    BudgetState.ENDED_UNKNOWN: "Its time is over; only an audit can show how it ended.",
    BudgetState.RECOVERED: "Nothing: all were acknowledged.",
}


@dataclass(frozen=True)
class ProducerBudgets:
    """The batches of one producer and topic that meet one error and are in one state."""

    cluster: str
    host: str
    client_id: str
    topic: str
    error: str | None
    state: BudgetState
    batches: int
    partitions: tuple[int, ...]
    brokers: tuple[int, ...]
    records_at_stake: int | None
    """Of the batches for which it is known; None where it is known of none."""
    attempts_left: int | None
    """The fewest."""
    exhausts_at_earliest: datetime | None
    """The first possible end."""
    what_to_do: str


def by_producer(found: Iterable[Burning], as_of: datetime) -> list[ProducerBudgets]:
    """One entry per producer, topic, error and state at *as_of*, the most urgent first."""
    groups: dict[tuple[object, ...], list[Burning]] = {}
    for one in sorted(found, key=lambda b: urgency(b.budget, as_of, b.thresholds)):
        budget = one.budget
        client = (one.cluster, one.host, one.client_id)
        key = (*client, budget.topic, budget.error, one.state(as_of))
        groups.setdefault(key, []).append(one)
    return [_together(members, as_of) for members in groups.values()]


def _together(members: Sequence[Burning], as_of: datetime) -> ProducerBudgets:
    first, budgets = members[0], [m.budget for m in members]
    state = first.state(as_of)
    return ProducerBudgets(
        cluster=first.cluster,
        host=first.host,
        client_id=first.client_id,
        topic=first.budget.topic,
        error=first.budget.error,
        state=state,
        batches=len(members),
        partitions=tuple(sorted({b.partition for b in budgets if b.topic and b.partition >= 0})),
        brokers=tuple(sorted({b.node for b in budgets if b.node is not None})),
        records_at_stake=known_sum(b.records_at_stake for b in budgets),
        attempts_left=min(
            (b.attempts_left for b in budgets if b.attempts_left is not None), default=None
        ),
        exhausts_at_earliest=min(
            (b.exhausts_at_earliest for b in budgets if b.exhausts_at_earliest), default=None
        ),
        what_to_do=(remedy(first.budget.error) if state in BURNING else _AFTERWARDS[state]),
    )


def known_sum(values: Iterable[int | None]) -> int | None:
    """The sum of what is known; None where nothing is."""
    known = [value for value in values if value is not None]
    return sum(known) if known else None
