"""A world's evidence as bronze rows."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from typing import Any

import pyarrow as pa

from acktrail.audit.wire import row_of_report
from acktrail.contracts import Table
from acktrail.contracts.arrow import rows
from acktrail.contracts.bronze import (
    AUDIT_REPORTS,
    CLUSTER_CONFIGS,
    CLUSTER_STATES,
    GROUP_OFFSETS,
)
from acktrail.lake import Change, Lake
from acktrail.lake.data_files import write_files
from tests.worlds.evidence import START_MS, TOPIC, Evidence

EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
READ_AT = EPOCH + timedelta(milliseconds=START_MS + 3_600_000)
TABLES = (AUDIT_REPORTS, CLUSTER_STATES, GROUP_OFFSETS, CLUSTER_CONFIGS)


def bronze(worlds: dict[str, Evidence]) -> dict[str, pa.Table]:
    """Rows of each bronze table for *worlds*, each a cluster by its name."""
    made: dict[str, list[dict[str, Any]]] = {table.name: [] for table in TABLES}
    for cluster, evidence in worlds.items():
        stamp = {"cluster": cluster, "source": "world", "read_at": READ_AT, "day": "2027-01-15"}
        made["audit_reports"] += [
            row_of_report(r, cluster, "world", _instant(r.received_ms) or READ_AT)
            for r in evidence.reports
        ]
        made["cluster_states"] += [
            {
                "topic": TOPIC, "topic_id": s.topic_id, "partition": s.partition,
                "at": _instant(s.at_ms), "earliest_offset": s.earliest, "latest_offset": s.latest,
                "leader_epoch": s.epoch, "leader": s.leader, "isr": list(s.isr),
                "after_at": _instant(s.after_ms), **stamp,
            }
            for s in evidence.states
        ]  # fmt: skip
        made["group_offsets"] += [
            {
                "group": c.group, "topic": TOPIC, "topic_id": c.topic_id,
                "partition": c.partition, "at": _instant(c.at_ms), "committed_offset": c.offset,
                "metadata": c.metadata, "members": c.members, "group_state": c.state,
                "after_at": _instant(c.after_ms), **stamp,
            }
            for c in evidence.commits
        ]  # fmt: skip
        made["cluster_configs"] += [
            {
                "entity_kind": c.kind, "entity": c.entity, "at": _instant(c.at_ms),
                "settings": dict(c.settings), "after_at": _instant(c.after_ms), **stamp,
            }
            for c in evidence.configs
        ]  # fmt: skip
    return {table.name: rows(table, made[table.name]) for table in TABLES}


def put_rows(lake: Lake, table: Table, found: pa.Table) -> None:
    """Rows as they are: in whatever order they come, their receipts are the same."""
    lake.create(table)
    if found.num_rows:
        lake.put(table, write_files(table, found, lake.at(table)), Change())


def _instant(ms: int | None) -> datetime | None:
    return None if ms is None else EPOCH + timedelta(milliseconds=ms)
