"""The retry budgets of a window, the most urgent first, in bounded memory."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import datetime

import pyarrow.compute as pc

from acktrail.answers.budgets import burning_of
from acktrail.answers.inquiry import Inquiry, both
from acktrail.answers.many import grouped, top
from acktrail.contracts.gold import RETRY_BUDGETS
from acktrail.lake import Lake
from acktrail.policy.model import Policy
from acktrail.retries.fleet import Burning
from acktrail.retries.state import BudgetState, urgency

ALIVE = (
    BudgetState.EXHAUSTED,
    BudgetState.CRITICAL,
    BudgetState.BURNING,
    BudgetState.UNKNOWN,
    BudgetState.QUIET,
)
"""States that a person may have to act on."""


@dataclass(frozen=True)
class Budgets:
    """Chains of retries."""

    listed: list[Burning] = field(default_factory=list)
    left_out: int = 0
    ended: Mapping[str, int] = field(default_factory=dict)
    """How chains of the window had ended when it was asked, with their number."""
    as_of: datetime | None = None

    def by_state(self) -> dict[BudgetState, int]:
        """The states of those listed, with their number."""
        found: dict[BudgetState, int] = {}
        if self.as_of is not None:
            for one in self.listed:
                state = one.state(self.as_of)
                found[state] = found.get(state, 0) + 1
        return found


def budgets(lake: Lake, asked: Inquiry, policy: Policy, most: int) -> Budgets:
    """The chains opened in the window: those that go on first, then those that ended last."""
    as_of = min(asked.until, asked.as_of)
    where = asked.at(RETRY_BUDGETS, "opened_at")
    over = (pc.field("ended_at") <= as_of) | (pc.field("exhausts_at_latest") <= as_of)
    going_on = both(where, ~over | over.is_null())
    columns = RETRY_BUDGETS.names
    key = [(name, "ascending") for name in RETRY_BUDGETS.grain]
    alive = top(
        lake, RETRY_BUDGETS, going_on, columns, [("exhausts_at_earliest", "ascending"), *key], most
    )
    done = top(
        lake, RETRY_BUDGETS, both(where, over), columns, [("ended_at", "descending"), *key], most
    )
    past = both(where, pc.field("ended_at") <= as_of)
    ended = grouped(lake, RETRY_BUDGETS, past, ("ended_by",), [("events", "sum")])
    judged = [*burning_of(alive.rows, policy), *burning_of(done.rows, policy)]
    listed = sorted(judged, key=lambda b: urgency(b.budget, as_of, b.thresholds))[:most]
    return Budgets(
        listed=listed,
        left_out=alive.of + done.of - len(listed),
        ended={r["ended_by"] or "unknown": r["row_count"] for r in ended.to_pylist()},
        as_of=as_of,
    )
