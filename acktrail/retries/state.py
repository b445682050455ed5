"""The state of a retry budget at a given time: decided here and nowhere else.

`acktrail budgets`, the check `retry_budget_left`, its alerts and the lab's score all call
`state_of`, with the thresholds that the policy has for the cluster, topic and client.
"""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime, timedelta
from enum import StrEnum
from typing import Final, Protocol

ATTEMPTS: Final = "attempts"
"""Value of `exhausted_by`: the client runs out of attempts before it runs out of time."""

RUNNING_OUT: Final = "retries_running_out"
"""State of a finding and an alert about chains that are critical."""

SHARE = 0.75
"""The warning before a delivery timeout is at most this share of it, however short it is."""


class BudgetState(StrEnum):
    """The state of a budget at one time; the most urgent first."""

    EXHAUSTED = "exhausted"
    CRITICAL = "critical"
    BURNING = "burning"
    UNKNOWN = "unknown"
    """It is retried, and the settings that decide for how long are not known."""
    QUIET = "quiet"
    """The next line was due and did not come: answered, or waiting without a line."""
    ENDED_UNKNOWN = "ended_unknown"
    """It is over, answered before or not: its time has passed, or its client was closed."""
    RESTARTED = "restarted"
    RECOVERED = "recovered"


_BY_NAME = {state.value: state for state in BudgetState}


@dataclass(frozen=True)
class Thresholds:
    """When a budget is critical; a policy file sets them under these names."""

    attempts_left: float = 1
    """With so many attempts left or fewer."""
    retry_warning_s: float = 85
    """So many seconds before the earliest possible end; see also SHARE."""


DEFAULTS = Thresholds()


class BudgetRow(Protocol):
    """What the decision needs of a row of `retry_budgets`."""

    @property
    def opened_at(self) -> datetime:
        """First line."""

    @property
    def quiet_at(self) -> datetime:
        """When the next line was due at the latest."""

    @property
    def attempts_left(self) -> float | None:
        """The lowest number that was printed."""

    @property
    def delivery_timeout_ms(self) -> float | None:
        """The client's setting."""

    @property
    def exhausts_at_earliest(self) -> datetime | None:
        """Earliest possible end of the budget."""

    @property
    def exhausts_at_latest(self) -> datetime | None:
        """Latest possible end of the budget."""

    @property
    def exhausted_by(self) -> str:
        """The axis that ends first."""

    @property
    def ended_at(self) -> datetime | None:
        """Proven end."""

    @property
    def ended_by(self) -> str | None:
        """How it ended."""


def state_of(chain: BudgetRow, as_of: datetime, thresholds: Thresholds = DEFAULTS) -> BudgetState:
    """The state of *chain* at *as_of*, which is not before it opened."""
    if chain.ended_at is not None and chain.ended_at <= as_of:
        return _BY_NAME.get(chain.ended_by or "", BudgetState.ENDED_UNKNOWN)
    if chain.exhausts_at_latest is not None and as_of >= chain.exhausts_at_latest:
        return BudgetState.ENDED_UNKNOWN
    if as_of >= chain.quiet_at:
        return BudgetState.QUIET
    warned = _warned_at(chain, thresholds)
    if warned is not None and as_of >= warned:
        return BudgetState.CRITICAL
    return BudgetState.UNKNOWN if chain.exhausts_at_earliest is None else BudgetState.BURNING


def critical_at(chain: BudgetRow, thresholds: Thresholds = DEFAULTS) -> datetime | None:
    """The first instant at which *chain* is critical; None where it never is."""
    first = _warned_at(chain, thresholds)
    if first is None or state_of(chain, first, thresholds) is not BudgetState.CRITICAL:
        return None
    return first


def urgency(
    chain: BudgetRow, as_of: datetime, thresholds: Thresholds = DEFAULTS
) -> tuple[int, datetime, datetime]:
    """Sort key: the most urgent first."""
    order = list(BudgetState).index(state_of(chain, as_of, thresholds))
    return (order, chain.exhausts_at_earliest or chain.quiet_at, chain.opened_at)


def _warned_at(chain: BudgetRow, thresholds: Thresholds) -> datetime | None:
    """From when on few attempts or little time are left; not before the chain opened."""
    if chain.attempts_left is not None and chain.attempts_left <= thresholds.attempts_left:
        return chain.opened_at
    end = chain.exhausts_at_earliest
    if end is None:
        return None
    warning_s = max(0.0, thresholds.retry_warning_s)
    if chain.exhausted_by != ATTEMPTS and chain.delivery_timeout_ms is not None:
        warning_s = min(warning_s, chain.delivery_timeout_ms * SHARE / 1000)
    if warning_s >= (end - chain.opened_at).total_seconds():
        return chain.opened_at
    return end - timedelta(seconds=warning_s)
