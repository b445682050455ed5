"""Rows of an input as a frame of Spark: few by Arrow in the driver, many by Spark's tasks.

Spark takes 5 to 10 ms of CPU to open a file, whatever is in it, and opens it for every place of a
plan that reads it. Arrow takes 1 to 2 ms, once; but a row that is sent costs more than one that
Spark reads itself.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING
from urllib.parse import unquote

from acktrail.contracts import Table
from acktrail.lake import Lake, Snapshot, Values

if TYPE_CHECKING:
    import pyarrow.dataset as ds
    from pyspark.sql import DataFrame, SparkSession

FILES_LISTED = 1_000
FILES_LISTED_REMOTE = 100
"""A table of at most so many files is read by their names, as the control plane lists them:
Delta's own listing is a Spark job or two (1.2 s a table against 0.1 s). Beyond that Delta's index
is the cheaper one; on an object store each name costs a request."""

FEW_ROWS = 500
"""Files with fewer rows than this, on average, are read by Arrow and sent to Spark as rows."""
SENT_BYTES = 8 << 20
"""Where all of them together are not more than this."""


def frame_of(
    session: SparkSession, lake: Lake, table: Table, seen: Snapshot, where: ds.Expression | None
) -> DataFrame:
    """The rows of *table* as *seen* that may matter: those for which *where* holds, and others."""
    from acktrail.lake.rows import files_with

    files = files_with(seen, lake.at(table), where)
    most = FILES_LISTED_REMOTE if lake.store.is_remote else FILES_LISTED
    if len(files) > most and not _are_few(seen, files):
        whole = session.read.format("delta").option("versionAsOf", seen.version)
        return whole.load(lake.path(table))
    return frame_of_files(session, lake, table, seen, files, where)


def frame_of_files(
    session: SparkSession,
    lake: Lake,
    table: Table,
    seen: Snapshot,
    files: Mapping[str, Values],
    where: ds.Expression | None = None,
) -> DataFrame:
    """The rows of *files*, of the table as *seen*, that may matter."""
    from pipelines.spark_schema import no_rows, struct

    if not files:
        return no_rows(session, table)
    if _are_few(seen, files):
        return _sent(session, lake, table, seen, files, where)
    paths = [f"{lake.path(table)}/{unquote(name)}" for name in files]
    reader = session.read.schema(struct(table)).option("basePath", lake.path(table))
    return reader.parquet(*paths)


def _are_few(seen: Snapshot, files: Mapping[str, Values]) -> bool:
    counts, sizes = seen.row_counts, seen.sizes
    few_rows = sum(counts[path] for path in files) < FEW_ROWS * len(files)
    return few_rows and sum(sizes[path] for path in files) <= SENT_BYTES


def _sent(
    session: SparkSession,
    lake: Lake,
    table: Table,
    seen: Snapshot,
    files: Mapping[str, Values],
    where: ds.Expression | None,
) -> DataFrame:
    from acktrail.lake.rows import read_rows
    from pipelines.spark_schema import loose, no_rows

    # Where a null leaves it open whether a row matters, it is read.
    wanted = None if where is None else where | where.is_null()
    rows = read_rows(table, lake.at(table), seen, wanted, files=files)
    if not rows.num_rows:
        return no_rows(session, table)
    return session.createDataFrame(rows, loose(table))
