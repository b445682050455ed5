"""Every suite, as a list you can read."""

from __future__ import annotations

from acktrail.contracts.gold import RETRY_BUDGETS
from expectations import views
from expectations.domain.retries import ExpectRetriesNotAboutToRunOut
from expectations.suite import Suite, fail

SUITES: tuple[Suite, ...] = (
    Suite(
        RETRY_BUDGETS,
        views.retry_budgets,
        needs="logs",
        checks=(
            fail(
                ExpectRetriesNotAboutToRunOut(),
                "A producer is about to give up on messages that can still be saved.",
            ),
        ),
    ),
)
