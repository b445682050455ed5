"""A world's evidence as bronze rows."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta

import pyarrow as pa

from acktrail.audit.wire import row_of_report
from acktrail.contracts.arrow import rows
from acktrail.contracts.bronze import (
    AUDIT_REPORTS,
    CLUSTER_CONFIGS,
    CLUSTER_STATES,
    GROUP_OFFSETS,
)
from tests.worlds.world import LAG_MS, START_MS, TOPIC, Evidence

EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
READ_AT = EPOCH + timedelta(milliseconds=START_MS + 3_600_000)
TABLES = (AUDIT_REPORTS, CLUSTER_STATES, GROUP_OFFSETS, CLUSTER_CONFIGS)


def bronze(worlds: dict[str, Evidence]) -> dict[str, pa.Table]:
    """Rows of each bronze table for *worlds*, each a cluster by its name."""
    made: dict[str, list[dict]] = {table.name: [] for table in TABLES}
    for cluster, evidence in worlds.items():
        stamp = {"cluster": cluster, "source": "world", "read_at": READ_AT, "day": "2027-01-15"}
        made["audit_reports"] += [
            row_of_report(r, cluster, "world", READ_AT) for r in evidence.reports
        ]
        made["cluster_states"] += [
            {
                "topic": TOPIC, "topic_id": s.topic_id, "partition": s.partition,
                "at": _instant(s.at_ms), "earliest_offset": s.earliest, "latest_offset": s.latest,
                "leader_epoch": s.epoch, **stamp,
            }
            for s in evidence.states
        ]  # fmt: skip
        made["group_offsets"] += [
            {
                "group": c.group, "topic": TOPIC, "topic_id": "t1", "partition": c.partition,
                "at": _instant(c.at_ms), "committed_offset": c.offset, "metadata": c.metadata,
                **stamp,
            }
            for c in evidence.commits
        ]  # fmt: skip
        policy = "compact" if evidence.compacted else "delete"
        for kind, entity, settings in (
            ("topic", TOPIC, {"cleanup.policy": policy}),
            ("broker", "1", {"replica.lag.time.max.ms": str(LAG_MS)}),
        ):
            made["cluster_configs"].append(
                {
                    "entity_kind": kind, "entity": entity, "at": _instant(START_MS),
                    "settings": settings, **stamp,
                }
            )  # fmt: skip
    return {table.name: rows(table, made[table.name]) for table in TABLES}


def _instant(ms: int) -> datetime:
    return EPOCH + timedelta(milliseconds=ms)
