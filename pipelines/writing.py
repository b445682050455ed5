"""Commit a job's rows with its run number and consumed versions, all in one commit."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import timedelta
from typing import TYPE_CHECKING

from pyspark.errors import PySparkException
from pyspark.sql import Observation
from pyspark.sql import functions as F

from acktrail.contracts import Table
from acktrail.errors import ContractError
from acktrail.lake import Lake
from acktrail.window import Window, day_of, hour_of
from pipelines.job import Job, Map
from pipelines.spark_schema import conform, struct

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

MARKS = ("_dropped", "_dropped_rows", "_further")
"""Columns a map may add for the count; they never reach a table."""


@dataclass(frozen=True)
class Target:
    """Which rows of the output a commit replaces: none (append), those of *condition*, or all."""

    append: bool = False
    condition: str | None = None
    touched: int = 0


APPEND = Target(append=True)
ALL = Target()


@dataclass(frozen=True)
class Written:
    """What a commit wrote and what the transform dropped."""

    rows: int
    dropped: Mapping[str, int] = field(default_factory=dict)
    touched: int = 0


def partitions(table: Table, keys: frozenset[str]) -> Target:
    """Replace the partitions called *keys*."""
    column = table.partition[0]
    listed = ", ".join(_quoted(key) for key in sorted(keys))
    condition = f"`{column}` IN ({listed})" if keys else "false"
    return Target(condition=condition, touched=len(keys))


def _quoted(text: str) -> str:
    escaped = text.replace("\\", "\\\\").replace("'", "\\'")
    return f"'{escaped}'"


def window(table: Table, span: Window) -> Target:
    """Replace what lies in *span*, where the partitions are hours or days; else all."""
    if not table.partition or table.partition[0] not in ("hour", "day", "opened_hour"):
        return ALL
    spell = day_of if table.partition[0] == "day" else hour_of
    column = f"`{table.partition[0]}`"
    last = span.end - timedelta(microseconds=1)
    return Target(condition=f"{column} >= '{spell(span.start)}' AND {column} <= '{spell(last)}'")


def create(session: SparkSession, lake: Lake, table: Table) -> None:
    """Make the table if it is not there; add columns the contract has grown since.

    The control plane declares it: that writes no row, and a second creator finds the first's.
    """
    known = {field.name for field in lake.create(table).schema().fields}
    grown = [f for f in struct(table) if f.name not in known]
    if grown:
        added = ", ".join(f"`{f.name}` {f.dataType.simpleString()}" for f in grown)
        session.sql(f"ALTER TABLE delta.`{lake.path(table)}` ADD COLUMNS ({added})")


def commit(
    lake: Lake,
    job: Job,
    run: int,
    frame: DataFrame,
    target: Target,
    consumed: Mapping[str, int],
) -> Written:
    """Write *frame* to the job's output as *target* says, in one commit."""
    observed, seen = _observe(job, frame, target)
    marks = [m for m in MARKS if m in frame.columns]
    kept = observed.where("`_dropped` IS NULL") if "_dropped" in marks else observed
    rows = conform(job.output, kept.drop(*marks))
    if target.condition is not None:
        rows = rows.where(target.condition)
    note = json.dumps({"job": job.name, "run": run, "consumed": dict(consumed)}, sort_keys=True)
    writer = (
        rows.write.format("delta")
        .mode("append" if target.append else "overwrite")
        .option("txnAppId", job.name)
        .option("txnVersion", str(run))
        .option("userMetadata", note)
    )
    if target.condition is not None:
        writer = writer.option("replaceWhere", target.condition)
    try:
        writer.save(lake.path(job.output))
    except PySparkException as error:
        if error.getCondition() != "USER_RAISED_EXCEPTION":
            raise
        complaint = error.getMessageParameters() or {}
        raise ContractError(
            f"{job.name}: {complaint.get('errorMessage', error)}. Nothing was written.\n"
            "Change the transform, or the table in acktrail/contracts, but not only one of them."
        ) from error
    return Written(_rows_written(lake, job.output), _dropped(seen), target.touched)


def _observe(job: Job, frame: DataFrame, target: Target) -> tuple[DataFrame, Observation | None]:
    """Count drops by reason in the same pass that writes."""
    if not isinstance(job, Map) or "_dropped" not in frame.columns:
        return frame, None
    seen = Observation()
    rows = F.col("_dropped_rows") if "_dropped_rows" in frame.columns else F.lit(1)
    counts = [
        F.sum(F.when(F.col("_dropped") == reason, rows)).alias(reason) for reason in job.reasons
    ]
    unnamed = F.col("_dropped").isNotNull() & ~F.col("_dropped").isin(list(job.reasons))
    counts.append(F.sum(F.when(unnamed, rows)).alias("unnamed"))
    if target.condition is not None:
        outside = F.expr(f"`_dropped` IS NULL AND NOT ({target.condition})")
        counts.append(F.count_if(outside).alias("outside_window"))
    if "_further" in frame.columns:
        counts.append(F.count_if(F.col("_further").isNotNull()).alias("further"))
    return frame.observe(seen, *counts), seen


def _dropped(seen: Observation | None) -> dict[str, int]:
    if seen is None:
        return {}
    return {reason: int(count) for reason, count in seen.get.items() if count}


def _rows_written(lake: Lake, table: Table) -> int:
    """From the commit's own metrics: no second pass over the rows."""
    opened = lake.open(table)
    if opened is None:
        return 0
    metrics = opened.history(1)[0].get("operationMetrics") or {}
    return int(metrics.get("numOutputRows", 0))
