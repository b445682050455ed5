"""A lake of the version before named fields: the jobs go on where they were, and lose nothing."""

from __future__ import annotations

from datetime import UTC, datetime
from pathlib import Path
from typing import TYPE_CHECKING

import pyarrow.compute as pc

from acktrail.audit.wire import Sighting, encode_sightings, row_of_report
from acktrail.contracts.arrow import rows
from acktrail.contracts.bronze import AUDIT_REPORTS
from acktrail.contracts.gold import DELIVERY_LEDGER, LOSS_EVENTS
from acktrail.contracts.silver import AUDIT_BLOCKS
from acktrail.contracts.vocabulary import Tier
from pipelines import runner
from pipelines.audit_jobs import AUDIT_JOBS
from pipelines.runner import RunCounts
from tests.spark.books.test_books import ALL
from tests.worlds import former_lake
from tests.worlds.former_lake import answers_now, answers_then

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

    from acktrail.lake import Lake

AS_OF = datetime(2026, 6, 1, 8, tzinfo=UTC)


def run(lake: Lake, spark: SparkSession) -> dict[str, RunCounts]:
    chosen = [job for job in AUDIT_JOBS if job.name in ALL]
    return {job.name: runner.run(job, lake, lambda: spark, AS_OF) for job in chosen}


def of(lake: Lake, table, session: str) -> list[dict]:
    found = lake.read(table, pc.field("session") == session)
    return found.sort_by([(name, "ascending") for name in table.grain]).to_pylist()


def _of_orders(losses: list[dict]) -> list[dict]:
    orders = [row for row in losses if row["topic"] == "orders"]
    return [{k: v for k, v in row.items() if k != "because"} for row in orders]


def test_the_jobs_migrate_and_go_on_where_they_were(spark: SparkSession, tmp_path: Path) -> None:
    lake = former_lake.unpacked(tmp_path)
    assert not lake.read(AUDIT_REPORTS, pc.field("session") == "old-session").num_rows
    done = run(lake, spark)
    assert {name: counts.migrated for name, counts in done.items() if counts.migrated} == {
        "audit_blocks": ("audit_blocks",),
        "delivery_ledger": ("delivery_ledger",),
    }
    assert not any(counts.rebuilt for counts in done.values())
    # Bronze lost rows to retention since: of the jobs, only readers of bronze look again.
    assert {name for name, counts in done.items() if counts.nothing_new} >= {
        "audit_blocks", "loss_incidents", "verdict_changes",
    }  # fmt: skip
    assert answers_now(lake) == answers_then()
    kept = {t.name: of(lake, t, "old-session") for t in (AUDIT_BLOCKS, DELIVERY_LEDGER)}
    assert all(kept.values())

    # A late scan finds one of the lost messages of the new session: only its accounts change.
    at = int(AS_OF.timestamp() * 1000)
    seen = [Sighting("new-session", "payments", 3, Tier.IN_LOG, at, 0, offset=3)]
    late = encode_sightings(seen, "scan-2", 1, at)
    lake.append(
        AUDIT_REPORTS,
        rows(AUDIT_REPORTS, [row_of_report(r, "east", "audits", AS_OF) for r in late]),
    )
    done = run(lake, spark)
    assert not any(counts.migrated or counts.rebuilt for counts in done.values())
    for table in (AUDIT_BLOCKS, DELIVERY_LEDGER):
        assert of(lake, table, "old-session") == kept[table.name], table.name
    now, then = answers_now(lake), answers_then()
    # All incidents are written again, in today's words.
    assert _of_orders(now["losses"]) == _of_orders(then["losses"])
    lost = [e for e in of(lake, LOSS_EVENTS, "new-session") if e["state"] == "lost_after_ack"]
    assert not lost, "that version kept no receipts: what is judged again needs another scan"


def test_a_job_alone_migrates_what_it_reads(spark: SparkSession, tmp_path: Path) -> None:
    lake = former_lake.unpacked(tmp_path)
    (job,) = (job for job in AUDIT_JOBS if job.name == "loss_events")
    assert runner.run(job, lake, lambda: spark, AS_OF).migrated == ("delivery_ledger",)
    assert answers_now(lake) == answers_then()
    assert lake.outdated(AUDIT_BLOCKS) == ["parts"]
