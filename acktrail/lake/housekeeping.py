"""Housekeeping of the lake: few small files, a retention per table, no reader disturbed.

What delta-rs commits to is kept by it here, the rest by Spark (pipelines/upkeep.py), since no table
is ever written or optimized by two engines. Optimizing rewrites files with
dataChange=false, so that jobs know nothing new came.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta

from deltalake import DeltaTable
from deltalake.exceptions import CommitFailedError
from pyarrow import fs

from acktrail.contracts import TABLES, Table
from acktrail.errors import LakeBusy
from acktrail.lake import Lake
from acktrail.lake.data_files import files_below
from acktrail.window import day_of, hour_of

VACUUM_HOURS = 7 * 24
"""Files no version names any more are kept this long, so that no reader loses one it reads."""
LOG_ENTRIES = 2_000
"""So many of its newest versions a table can be read at; every look at it lists its whole log."""
_ENTRY = re.compile(r"(\d{20})\.(?:json|crc|checkpoint\.parquet)\Z")


@dataclass(frozen=True)
class TableSize:
    """What a table holds."""

    table: str
    layer: str
    version: int | None
    rows: int
    files: int
    bytes: int


def sizes(lake: Lake) -> Iterator[TableSize]:
    """Every table with its version, rows, files and bytes, from the logs alone."""
    import pyarrow as pa

    for table in TABLES:
        delta = lake.open(table)
        if delta is None:
            yield TableSize(table.name, table.layer, None, 0, 0, 0)
            continue
        actions = pa.table(delta.get_add_actions(flatten=False))
        yield TableSize(
            table.name,
            table.layer,
            int(delta.version()),
            sum(int(n or 0) for n in actions.column("num_records").to_pylist()),
            actions.num_rows,
            sum(int(n or 0) for n in actions.column("size_bytes").to_pylist()),
        )


def optimize(
    lake: Lake, table: Table, delta: DeltaTable, partitions: Sequence[str]
) -> dict[str, int]:
    """Compact the small files in *partitions* of a delta-rs table and write a checkpoint.

    As *delta* knows them: what was written since stays as it is.
    """
    chosen = [(table.partition[0], "in", list(partitions))] if table.partition else None
    try:
        done = delta.optimize.compact(partition_filters=chosen)
    except CommitFailedError as error:
        raise LakeBusy(f"{table.name}: a writer came between; run again. ({error})") from error
    compacted = lake.open(table)
    if compacted is not None:
        compacted.create_checkpoint()
    return {
        "files_added": int(done["numFilesAdded"]),
        "files_removed": int(done["numFilesRemoved"]),
    }


def shorten_log(lake: Lake, table: Table, needed: int | None) -> int:
    """Remove old entries of the table's log, up to a checkpoint; how many.

    Kept are LOG_ENTRIES, and all from version *needed* on. The oldest go first: whatever ends this
    leaves a log that begins at a checkpoint, or a little before.
    """
    newest = lake.version(table)
    if newest is None:
        return 0
    limit = newest - LOG_ENTRIES if needed is None else min(newest - LOG_ENTRIES, needed)
    if limit <= 0:
        return 0
    place = files_below(lake.path(table), lake.storage_options)
    names = (info.base_name for info in place.get_file_info(fs.FileSelector("_delta_log")))
    old = removable(names, limit)
    for name in old:
        place.delete_file(f"_delta_log/{name}")
    return len(old)


def removable(names: Iterable[str], limit: int) -> list[str]:
    """Of the files of a log those that nobody needs who reads it from version *limit* on."""
    entries = sorted((int(found.group(1)), name) for name in names if (found := _ENTRY.match(name)))
    checkpoints = [version for version, name in entries if name.endswith(".checkpoint.parquet")]
    base = max((version for version in checkpoints if version <= limit), default=0)
    return [name for version, name in entries if version < base]


def expires(table: Table, as_of: datetime) -> tuple[str, str] | None:
    """The partition column and the first text of it still kept; None without a time partition."""
    limit = as_of - timedelta(days=table.retention_days)
    column = table.partition[0] if table.partition else ""
    if column == "day":
        return column, day_of(limit)
    if column in ("hour", "opened_hour"):
        return column, hour_of(limit)
    return None


def has_expired(lake: Lake, table: Table, column: str, limit: str) -> bool:
    """Whether any partition is past its retention, from the log alone."""
    whole = lake.added(table, None)
    return whole is not None and any((v.get(column) or "~") < limit for v in whole.partitions)


def expire(lake: Lake, table: Table, column: str, limit: str) -> dict[str, int]:
    """Delete rows of a delta-rs table whose partition *column* lies before *limit*."""
    delta = lake.open(table)
    if delta is None:
        return {"rows_deleted": 0}
    try:
        done = delta.delete(f"{column} < '{limit}'")
    except CommitFailedError as error:
        raise LakeBusy(f"{table.name}: a writer came between; run again. ({error})") from error
    return {"rows_deleted": int(done.get("num_deleted_rows") or 0)}


def vacuum(lake: Lake, table: Table) -> dict[str, int]:
    """Remove files no version of the last week names; the engine does not matter here."""
    delta = lake.open(table)
    if delta is None:
        return {}
    # Full: what a killed agent or task has left behind stands in no version at all.
    gone = delta.vacuum(retention_hours=VACUUM_HOURS, dry_run=False, full=True)
    return {"files_deleted": len(gone)}
