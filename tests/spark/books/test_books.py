"""The books through Spark: in any slices, corrected by late evidence."""

from __future__ import annotations

import json
import random
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pyarrow as pa

from acktrail.audit.wire import Report, Sighting, encode_sightings
from acktrail.contracts import Table, table_named
from acktrail.contracts.gold import DELIVERY_LEDGER, LOSS_EVENTS, LOSS_INCIDENTS, VERDICT_CHANGES
from acktrail.contracts.vocabulary import Tier
from acktrail.lake import Lake
from acktrail.terminal.output import plain
from pipelines import runner
from pipelines.audit_jobs import AUDIT_JOBS
from tests.worlds.bronze import TABLES, bronze, put_rows
from tests.worlds.evidence import START_MS, TOPIC, ConfigRow, Evidence, StateRow, evidence_of
from tests.worlds.world import World

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

AS_OF = datetime(2027, 1, 15, 9, tzinfo=UTC)
UNSCANNED = range(8, 11)
"""Worlds whose messages without an offset wait for a scan that never comes."""


def run(lake: Lake, spark: SparkSession, names: tuple[str, ...], as_of: datetime = AS_OF) -> None:
    for job in AUDIT_JOBS:
        if job.name in names:
            runner.run(job, lake, lambda: spark, as_of)


LEDGER = ("audit_parts", "audit_blocks", "delivery_ledger")
ALL = (*LEDGER, "loss_events", "loss_incidents", "verdict_changes")


def late_correction() -> tuple[Evidence, Evidence]:
    """Id 3 was acked and a scan did not find it; then the scan's missing part comes in."""
    told = [Sighting("s", TOPIC, q, Tier.ACKED, START_MS, 0, offset=q) for q in range(10)]
    began = START_MS + 60_000

    def scan(seqs: list[int], part: int) -> list[Report]:
        seen = [Sighting("s", TOPIC, q, Tier.IN_LOG, began, 0, offset=q) for q in seqs]
        return received(encode_sightings(seen, "scan", 1, began, first_part=part), began)

    def received(reports: list[Report], at: int) -> list[Report]:
        return [replace(r, received_ms=at, after_ms=START_MS) for r in reports]

    covered = Report(
        reporter="scan", tier=Tier.SCANNED, topic=TOPIC, number=1, reported_ms=began, partition=0,
        part=99, first_offset=0, last_offset=9, records=10, began_ms=began, ended_ms=began,
        closed=True,
    )  # fmt: skip
    first = Evidence(
        [
            *received(encode_sightings(told, "p", 1, START_MS), START_MS),
            *received([covered], began),
            *scan([0, 1, 2, 4, 5, 6, 7, 8, 9], part=1),
        ],
        states=[StateRow(0, START_MS, 0, 0, 0, "", after_ms=0)],
        configs=[ConfigRow("topic", TOPIC, START_MS, (("cleanup.policy", "delete"),))],
    )
    return first, Evidence(scan([3], part=2))


def without_scans(world: World) -> Evidence:
    """The evidence of *world*, if nobody had scanned its topic."""
    return evidence_of(unit for unit in world.lake.units if unit.kind != "scan")


def test_fifty_slices_out_of_order_equal_one_rebuild(spark: SparkSession, tmp_path: Path) -> None:
    worlds: dict[str, Evidence] = {f"w{n}": World(n, steps=25).evidence for n in range(8)}
    worlds |= {f"unscanned{n}": without_scans(World(n, steps=25)) for n in UNSCANNED}
    early, late = late_correction()
    whole = Lake(tmp_path / "whole")
    sliced = Lake(tmp_path / "sliced")
    everything = bronze({**worlds, "late": replace(early, reports=[*early.reports, *late.reports])})
    for table in TABLES:
        put_rows(whole, table, everything[table.name])
    run(whole, spark, ALL)
    # The same in fifty slices, with a run now and then; the correction comes with the last.
    _append(sliced, bronze({"late": early}))
    dealt = _dealt(bronze(worlds), 50, random.Random(7))
    for number, part in enumerate(dealt):
        _append(sliced, part)
        if number in (9, 34):
            run(sliced, spark, ALL, AS_OF + timedelta(minutes=number))
    _append(sliced, bronze({"late": late}), only="audit_reports")
    run(sliced, spark, ALL, AS_OF + timedelta(hours=1))
    for table in (table_named("audit_blocks"), DELIVERY_LEDGER, LOSS_EVENTS, LOSS_INCIDENTS):
        assert _contents(sliced, table) == _contents(whole, table), table.name
    changes = [c for c in sliced.read(VERDICT_CHANGES).to_pylist() if c["cluster"] == "late"]
    changes.sort(key=lambda c: c["changed_at"])
    assert [(c["before_state"], c["after_state"], c["first_seq"]) for c in changes] == [
        (None, "lost_after_ack", 3),
        ("lost_after_ack", None, 3),
    ]


def _append(lake: Lake, part: dict[str, pa.Table], only: str | None = None) -> None:
    for table in TABLES:
        if only in (None, table.name):
            put_rows(lake, table, part[table.name])


def _dealt(
    everything: dict[str, pa.Table], parts: int, chance: random.Random
) -> list[dict[str, pa.Table]]:
    dealt: list[dict[str, pa.Table]] = [{} for _ in range(parts)]
    for name, table in everything.items():
        order = list(range(table.num_rows))
        chance.shuffle(order)
        for i in range(parts):
            dealt[i][name] = table.take(pa.array(order[i::parts], pa.int64()))
    return dealt


def _contents(lake: Lake, table: Table) -> list[str]:
    return sorted(map(_spelt, lake.read(table).to_pylist()))


def _spelt(row: dict[str, Any]) -> str:
    for name, value in row.items():
        if isinstance(value, list) and value and isinstance(value[0], tuple):
            row[name] = dict(value)
    return json.dumps(plain(row), sort_keys=True)
