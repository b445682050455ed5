"""Small rows of gold tables, written as Spark would have, and the checks asked about them."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

from deltalake import write_deltalake

from acktrail.alerts.finding import CheckResult
from acktrail.contracts import Table
from acktrail.contracts.arrow import rows
from acktrail.lake import Lake
from expectations.policy_suites import policy_and_suites
from expectations.stale import NOTHING_WAITS, Waiting
from expectations.validate import Asked, validate

NOW = datetime(2026, 1, 31, 12, 0, tzinfo=UTC)
_EMPTY: dict[str, Any] = {
    "string": "",
    "long": 0,
    "double": 0.0,
    "boolean": False,
    "timestamp": NOW,
    "strings": [],
    "longs": [],
    "binary": b"",
    "attributes": [],
    "structs": [],
}


def ago(seconds: float) -> datetime:
    return NOW - timedelta(seconds=seconds)


def row(table: Table, **facts: Any) -> dict[str, Any]:
    """A row of *table*: *facts*, and something empty in every other required column."""
    filled: dict[str, Any] = {}
    for column in table.columns:
        if column.required:
            first = next(iter(column.values)).value if column.values else _EMPTY[column.kind]
            filled[column.name] = first
    for name in table.partition:  # an empty partition value would be read back as null
        filled[name] = "2026-01-31" if name == "day" else "2026-01-31T11"
    if "cluster" in table.names:
        filled["cluster"] = "east"
    return {**filled, **facts}


def write(lake: Lake, table: Table, *records: Mapping[str, Any], mode: str = "append") -> None:
    """Put *records* into *table* as another engine would; `overwrite` replaces all of it."""
    write_deltalake(
        lake.path(table),
        rows(table, records),
        mode=mode,  # type: ignore[arg-type]
        schema_mode="overwrite" if mode == "overwrite" else None,  # comments of columns may differ
        partition_by=list(table.partition) or None,
    )


def ask(
    lake: Lake,
    policy_file: Path | None = None,
    runbooks: str = "runbooks",
    docs: Path | None = None,
    tables: Collection[str] | None = None,
    waiting: Waiting = NOTHING_WAITS,
) -> list[CheckResult]:
    """The results of all checks at NOW (on *tables* alone, where given)."""
    policy, suites = policy_and_suites(policy_file)
    chosen = [s for s in suites if tables is None or s.table.name in tables]
    return validate(chosen, lake, Asked(NOW, policy, runbooks, waiting), docs)


def budget(**facts: Any) -> dict[str, Any]:
    """A chain of retries that ends in half a minute unless *facts* say otherwise."""
    from acktrail.contracts.gold import RETRY_BUDGETS

    usual = {
        "host": "app-1",
        "client_id": "checkout",
        "topic": "payments",
        "partition": 3,
        "opened_at": ago(80),
        "last_at": ago(5),
        "quiet_at": ago(-60),
        "exhausts_at_earliest": ago(-30),
        "exhausts_at_latest": ago(-40),
        "exhausted_by": "time",
        "delivery_timeout_ms": 120_000,
        "error": "NOT_ENOUGH_REPLICAS",
        "opened_hour": "2026-01-31T11",
        "confidence": "bounded",
    }
    return row(RETRY_BUDGETS, **{**usual, **facts})
