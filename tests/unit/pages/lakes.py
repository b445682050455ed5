"""Lakes for pages: rows of any table, with values that are many, odd, missing or hostile."""

from __future__ import annotations

import random
from collections.abc import Callable, Mapping
from datetime import UTC, datetime, timedelta
from typing import Any

import pyarrow as pa
from deltalake import write_deltalake

from acktrail.contracts import TABLES, Table
from acktrail.contracts.arrow import schema
from acktrail.contracts.table import Column
from acktrail.lake import Lake
from acktrail.window import day_of, hour_of

UNTIL = datetime(2026, 1, 31, 12, 0, tzinfo=UTC)
SINCE = UNTIL - timedelta(hours=6)
READ = (
    *("loss_incidents", "loss_events", "delivery_ledger", "retry_budgets", "producer_reliability"),
    *("verdict_changes", "coverage", "check_results", "source_states", "unread_records"),
    *("client_metrics", "broker_metrics", "broker_events", "producer_events", "consumer_events"),
    *("client_configs", "clients", "cluster_states", "cluster_configs", "group_offsets"),
    *("audit_reports", "audit_blocks"),
)
"""The tables that pages read."""
Make = Callable[[Column, random.Random], Any]


def tables() -> list[Table]:
    """The tables that pages read."""
    return [table for table in TABLES if table.name in READ]


def write(lake: Lake, table: Table, data: pa.Table) -> None:
    """Spark writes most of these tables; a test may stand in for it in a lake of its own."""
    write_deltalake(
        lake.path(table), data, partition_by=list(table.partition) or None, mode="append"
    )


def rows(table: Table, number: int, make: Make, chosen: random.Random) -> pa.Table:
    """*number* rows of *table*; each value is made by *make*."""
    columns = {}
    for column in table.columns:
        values = [make(column, chosen) for _ in range(number)]
        columns[column.name] = pa.array(values, schema(table).field(column.name).type)
    return pa.table(columns, schema=schema(table))


def moment(chosen: random.Random) -> datetime:
    """A time about the window."""
    return SINCE + timedelta(seconds=chosen.uniform(-3600, 7 * 3600))


def ordinary(column: Column, chosen: random.Random) -> Any:
    """A value that may be there, or be missing where that is allowed."""
    if not column.required and chosen.random() < 0.2:
        return None
    return _value(column, chosen, [f"name-{chosen.randrange(40)}"])


def nulls(column: Column, chosen: random.Random) -> Any:
    """Nothing wherever nothing is allowed."""
    return _value(column, chosen, [""]) if column.required else None


def hostile(texts: list[str]) -> Make:
    """Hostile texts in every text that a log, a client or an operator may choose."""
    return lambda column, chosen: _value(column, chosen, texts)


def _value(column: Column, chosen: random.Random, texts: list[str]) -> Any:
    at = moment(chosen)
    if column.name in ("hour", "opened_hour", "day"):
        return day_of(at) if column.name == "day" else hour_of(at)
    if column.name == "bucket":
        return "x00.0"
    if column.values is not None:
        return chosen.choice([value.value for value in column.values])
    if column.name in CHOICES:
        return chosen.choice(CHOICES[column.name])
    by_kind: Mapping[str, Callable[[], Any]] = {
        "string": lambda: chosen.choice(texts),
        "long": lambda: chosen.randrange(0, 5000),
        "double": lambda: chosen.uniform(0, 9),
        "boolean": lambda: chosen.random() < 0.5,
        "timestamp": lambda: at,
        "binary": lambda: b"",
        "strings": lambda: [chosen.choice(texts) for _ in range(2)],
        "longs": lambda: [chosen.randrange(3) for _ in range(2)],
        "attributes": lambda: [(chosen.choice(texts), chosen.choice(texts))],
        "structs": list,
    }
    return by_kind[column.kind]()


CHOICES = {
    "metric": ["record-error-total", "record-retry-total", "failed-produce-requests-total"],
    "kind": ["audit", "logs", "metrics", "cluster", "retry", "truncation", "unclean_election"],
    "ended_by": ["recovered", "exhausted", "restarted", None],
    "role": ["producer"],
    "entity_kind": ["topic"],
    "group": ["", "billing"],
    "check_run": ["one", "two"],
}
