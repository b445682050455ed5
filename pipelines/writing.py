"""Commit a job's rows with its run number and consumed versions, all in one commit."""

from __future__ import annotations

import json
import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from py4j.protocol import Py4JJavaError
from pyspark.errors import PySparkException

from acktrail.contracts import Table
from acktrail.errors import ContractError, LakeBusy
from acktrail.lake import Lake
from pipelines.job import Job
from pipelines.spark_schema import conform, quoted, struct

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession


FAILURES = (PySparkException, Py4JJavaError)
"""How Spark fails: some of it reaches Python as it left the JVM."""
_COMPLAINT = re.compile(r"\[USER_RAISED_EXCEPTION\] (.*?) SQLSTATE", re.DOTALL)
"""What `conform` says of a wrong value, wherever Spark has wrapped it."""


_OVERTAKEN = re.compile(r"DELTA_CONCURRENT_\w+|\bConcurrent\w+Exception")


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
    """What a commit wrote and what the job dropped."""

    rows: int
    dropped: Mapping[str, int] = field(default_factory=dict)
    touched: int = 0


def partitions(table: Table, keys: frozenset[str]) -> Target:
    """Replace the partitions called *keys*."""
    column = table.partition[0]
    listed = ", ".join(quoted(key) for key in sorted(keys))
    condition = f"`{column}` IN ({listed})" if keys else "false"
    return Target(condition=condition, touched=len(keys))


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
    rows = conform(job.output, frame)
    if target.condition is not None:
        rows = rows.where(target.condition)
    writer = (
        rows.write.format("delta")
        .mode("append" if target.append else "overwrite")
        .option("txnAppId", job.name)
        .option("txnVersion", str(run))
        .option("userMetadata", note(job, run, consumed))
    )
    if target.condition is not None:
        writer = writer.option("replaceWhere", target.condition)
    try:
        writer.save(lake.path(job.output))
    except FAILURES as error:
        complaint = _COMPLAINT.search(str(error))
        if complaint is None:
            refuse_overtaken(job.output, error)
            raise
        raise ContractError(
            f"{job.name}: {complaint[1]}. Nothing was written.\n"
            "Change the transform, or the table in acktrail/contracts, but not only one of them."
        ) from error
    return Written(_rows_written(lake, job.output), touched=target.touched)


def refuse_overtaken(table: Table, error: Exception) -> None:
    """LakeBusy where another commit came between; else nothing."""
    if _OVERTAKEN.search(str(error)) is not None:
        raise LakeBusy(
            f"{table.name}: another writer came between; nothing was written, run again."
        ) from error


def note(job: Job, run: int, consumed: Mapping[str, int]) -> str:
    """What a run's commit says of itself."""
    return json.dumps({"job": job.name, "run": run, "consumed": dict(consumed)}, sort_keys=True)


def _rows_written(lake: Lake, table: Table) -> int:
    """From the commit's own metrics: no second pass over the rows."""
    opened = lake.open(table)
    if opened is None:
        return 0
    metrics = opened.history(1)[0].get("operationMetrics") or {}
    return int(metrics.get("numOutputRows", 0))
