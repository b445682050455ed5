"""Housekeeping of the tables Spark writes: compaction and retention."""

from __future__ import annotations

from typing import TYPE_CHECKING

from acktrail.contracts import Table
from acktrail.lake import Lake

if TYPE_CHECKING:
    from pyspark.sql import SparkSession


def optimize(session: SparkSession, lake: Lake, table: Table) -> dict[str, int]:
    """Compact small files; the rows stay as they are."""
    done = session.sql(f"OPTIMIZE delta.`{lake.path(table)}`").collect()[0]["metrics"]
    return {"files_added": int(done.numFilesAdded), "files_removed": int(done.numFilesRemoved)}


def expire(
    session: SparkSession, lake: Lake, table: Table, column: str, limit: str
) -> dict[str, int]:
    """Delete rows whose partition *column* lies before *limit*."""
    where = f"`{column}` < '{limit}'"
    done = session.sql(f"DELETE FROM delta.`{lake.path(table)}` WHERE {where}").collect()[0]
    return {"rows_deleted": int(done["num_affected_rows"])}
