"""Housekeeping of tables: compaction and retention, each by the engine that writes the table."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING

from acktrail.contracts import Table
from acktrail.lake import Lake, Values, housekeeping
from pipelines.job import Job

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

NOTHING = {"files_added": 0, "files_removed": 0}
"""What compaction did where there was nothing to do."""


def optimize(
    spark: Callable[[], SparkSession], lake: Lake, table: Table, jobs: Sequence[Job]
) -> dict[str, int]:
    """Put small files together where all of *jobs* have read them, and shorten the table's log.

    The rows stay as they are.
    """
    done = _compact(spark, lake, table, jobs)
    removed = housekeeping.shorten_log(lake, table, needed(lake, table, jobs))
    return done | {"log_entries_removed": removed}


def needed(lake: Lake, table: Table, jobs: Sequence[Job]) -> int | None:
    """The first version of the table's log that a job still asks for; None where none does.

    A reader asks for all since it read last; a writer for its own last note.
    """
    asked = [lake.note(job.output, job.name) for job in jobs if table in job.inputs]
    versions = [note.consumed.get(table.name) for note in asked if note is not None]
    written = [lake.note(table, job.name) for job in jobs if job.output == table]
    versions += [note.version for note in written if note is not None]
    return min((version for version in versions if version is not None), default=None)


def _compact(
    spark: Callable[[], SparkSession], lake: Lake, table: Table, jobs: Sequence[Job]
) -> dict[str, int]:
    delta = lake.open(table)  # before it is asked what was read: later files are not in it
    partitions = settled(lake, table, jobs)
    if delta is None or not partitions:
        return NOTHING
    if table.writer == "delta-rs":
        return housekeeping.optimize(lake, table, delta, partitions)
    where = f" WHERE {_any_of(table.partition[0], partitions)}" if table.partition else ""
    session = spark()
    from pipelines.writing import FAILURES, refuse_overtaken

    try:
        told = session.sql(f"OPTIMIZE delta.`{lake.path(table)}`{where}").collect()
    except FAILURES as error:
        refuse_overtaken(table, error)
        raise
    done = told[0]["metrics"]
    return {"files_added": int(done.numFilesAdded), "files_removed": int(done.numFilesRemoved)}


def settled(lake: Lake, table: Table, jobs: Sequence[Job]) -> tuple[str, ...]:
    """Partitions of several files that every job has read; of a table without any, ("",).

    A file put together with others tells no job what in it is new: one that had not read it would
    have to make its table anew.
    """
    files = Counter(_partition(table, values) for values in lake.files(table).values())
    unread: set[str | None] = set()
    for job in jobs:
        if table in job.inputs:
            since = (lake.consumed(job.output, job.name) or {}).get(table.name)
            added = lake.added(table, since) if since is not None else None
            if added is not None:
                unread |= {_partition(table, values) for values in added.partitions}
    return tuple(sorted(p for p, n in files.items() if n > 1 and p is not None and p not in unread))


def _any_of(column: str, texts: Sequence[str]) -> str:
    from pipelines.spark_schema import quoted

    return f"`{column}` IN ({', '.join(map(quoted, texts))})"


def _partition(table: Table, values: Values) -> str | None:
    return values.get(table.partition[0]) if table.partition else ""


def expire(
    session: SparkSession, lake: Lake, table: Table, column: str, limit: str
) -> dict[str, int]:
    """Delete rows whose partition *column* lies before *limit*."""
    where = f"`{column}` < '{limit}'"
    done = session.sql(f"DELETE FROM delta.`{lake.path(table)}` WHERE {where}").collect()[0]
    return {"rows_deleted": int(done["num_affected_rows"])}
