"""Checks that were renamed: the one table of former names.

Policy files, open alerts, `check_results` and runbook addresses with a former name stay valid.
"""

from __future__ import annotations

from typing import Final

RENAMED: Final = {
    "books_to_balance": "ledger_balances",
    "restarts_to_redeliver_few": "redeliveries_within_bounds",
    "retries_not_about_to_run_out": "retry_budget_left",
}
"""Former name to current name. An entry is never removed: alerts and history keep the name."""


def current_name(check: str) -> str:
    """The name that *check*, which may be a former name, has now."""
    return RENAMED.get(check, check)


def names_of(check: str) -> tuple[str, ...]:
    """The current name *check*, then its former ones."""
    return (check, *(former for former, current in RENAMED.items() if current == check))
