"""Which tables each table is made from: the inputs of every job, without the jobs.

`tests/laws/test_lineage.py` holds this list to `pipelines/registry.py`.
"""

from __future__ import annotations

from acktrail.contracts import table_named
from acktrail.contracts.table import Table

_INPUTS: dict[str, tuple[str, ...]] = {
    "producer_events": ("log_records",),
    "consumer_events": ("log_records",),
    "broker_events": ("log_records",),
    "unread_records": ("log_records",),
    "client_configs": ("log_records",),
    "client_metrics": ("metric_samples",),
    "broker_metrics": ("metric_samples",),
    "client_sightings": ("producer_events", "client_configs", "client_metrics", "audit_reports"),
    "clients": ("client_sightings",),
    "retry_budgets": (
        *("producer_events", "client_configs", "client_metrics"),
        *("cluster_states", "audit_reports"),
    ),
    "audit_parts": ("audit_reports",),
    "audit_blocks": ("audit_parts",),
    "delivery_ledger": (
        *("audit_blocks", "audit_parts", "client_sightings"),
        *("cluster_states", "group_offsets", "cluster_configs"),
    ),
    "loss_events": (
        *("delivery_ledger", "producer_events", "consumer_events", "broker_events"),
        *("client_configs", "cluster_states", "cluster_configs"),
    ),
    "loss_incidents": ("loss_events",),
    "verdict_changes": ("loss_events",),
    "producer_reliability": (
        *("delivery_ledger", "producer_events", "client_metrics", "broker_metrics"),
    ),
    "offset_accounts": ("cluster_states", "group_offsets", "audit_parts"),
    "coverage": ("audit_reports", "metric_samples", "log_records", "cluster_states"),
}
MADE: tuple[Table, ...] = tuple(table_named(name) for name in _INPUTS)
"""Every table that a job writes, inputs before what is made from them."""


def inputs_of(table: Table) -> tuple[Table, ...]:
    """What the job that writes *table* reads; nothing for a table that no job writes."""
    return tuple(table_named(name) for name in _INPUTS.get(table.name, ()))


def line_of(table: Table) -> frozenset[str]:
    """*table* and every table it is made from, directly or through others."""
    found = {table.name}
    for source in inputs_of(table):
        found |= line_of(source)
    return frozenset(found)
