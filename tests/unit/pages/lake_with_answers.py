"""A lake with a little of every answer, written as the jobs would have."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from acktrail.contracts.gold import DELIVERY_LEDGER, LOSS_INCIDENTS, RETRY_BUDGETS
from acktrail.contracts.runs import CHECK_RESULTS, COVERAGE, RUNS
from acktrail.lake import Lake
from tests.unit.expectations.gold_rows import ago, budget, row, write


def lost(ids: int, topic: str = "payments") -> dict[str, Any]:
    return row(
        LOSS_INCIDENTS, incident=f"i-{topic}", topic=topic, ids=ids, ended_at=ago(60),
        state="lost_after_ack", cause="truncated",
    )  # fmt: skip


def ledger(**facts: Any) -> dict[str, Any]:
    return row(DELIVERY_LEDGER, **{"topic": "payments", "sent": 9, "last_at": ago(60), **facts})


def result(check: str, table: str, outcome: str, age: float) -> dict[str, Any]:
    times = {"as_of": ago(age), "checked_at": ago(age), "check_run": f"{age}"}
    found = row(CHECK_RESULTS, check=check, grade="fail", outcome=outcome, **times)
    return {**found, "table": table}


def lake_with_answers(place: Path) -> Lake:
    """Five lost messages, a budget that ends in 30 s, a failed check, and evidence 30 s old."""
    lake = Lake(place)
    write(lake, LOSS_INCIDENTS, lost(5))
    write(
        lake,
        DELIVERY_LEDGER,
        ledger(delivered=4, lost_after_ack=5),
        ledger(group="billing", delivered=7, residual=-2),
    )
    recovered = budget(client_id="fine", ended_at=ago(1), ended_by="recovered")
    write(lake, RETRY_BUDGETS, budget(), recovered)
    write(lake, COVERAGE, row(COVERAGE, source="app", kind="logs", last_at=ago(30)))
    write(lake, RUNS, row(RUNS, job="loss_events", ended_at=ago(120)))
    write(
        lake,
        CHECK_RESULTS,
        result("no_loss_after_ack", "loss_incidents", "fail", 600),
        result("no_loss_after_ack", "loss_incidents", "pass", 60),
        result("books_to_balance", "delivery_ledger", "fail", 60),
    )
    return lake
