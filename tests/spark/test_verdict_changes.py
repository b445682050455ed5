"""The difference between two states of `loss_events`, while other drivers commit to it."""

from __future__ import annotations

from datetime import UTC, datetime
from pathlib import Path

import pyarrow as pa

from acktrail.contracts.arrow import rows
from acktrail.contracts.gold import LOSS_EVENTS, VERDICT_CHANGES
from acktrail.lake import Lake
from pipelines import runner
from pipelines.registry import jobs_named

NOW = datetime(2026, 1, 31, 7, tzinfo=UTC)
(CHANGES,) = jobs_named(("verdict_changes",))


def loss(first_seq: int) -> pa.Table:
    row = {
        "cluster": "c", "session": "s", "topic": "t", "group": "", "client_id": "p",
        "first_seq": first_seq, "last_seq": first_seq, "count": 1, "first_at": NOW, "last_at": NOW,
        "state": "lost_after_ack", "told": False, "cause": "unknown", "confidence": "none",
        "because": "It is gone.", "evidence": [], "reason": "absent",
        "bucket": "00",
    }  # fmt: skip
    return rows(LOSS_EVENTS, [row])


def test_a_verdict_that_comes_during_a_run_is_noted_once(spark, tmp_path: Path) -> None:
    lake = Lake(tmp_path)
    lake.append(LOSS_EVENTS, loss(1))

    def while_another_driver_commits():
        Lake(tmp_path).append(LOSS_EVENTS, loss(2))
        return spark

    runner.run(CHANGES, lake, while_another_driver_commits, NOW)
    runner.run(CHANGES, lake, lambda: spark, NOW)
    noted = lake.read(VERDICT_CHANGES, columns=["first_seq"]).column("first_seq").to_pylist()
    assert sorted(noted) == [1, 2]
