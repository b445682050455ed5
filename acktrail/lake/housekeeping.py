"""Housekeeping of the lake: few small files, a retention per table, no reader disturbed.

Compaction rewrites files with dataChange=false, so that jobs know nothing new came.
"""

from __future__ import annotations

import re
from collections.abc import Collection, Iterable, Iterator
from dataclasses import dataclass, replace
from datetime import datetime, timedelta

import pyarrow as pa
from deltalake import DeltaTable
from deltalake.transaction import AddAction

from acktrail.contracts import TABLES, Table
from acktrail.contracts.arrow import conform
from acktrail.lake import Change, Lake, ReplaceBefore, RewriteFiles
from acktrail.lake.changes import partition_texts
from acktrail.lake.damage import explaining
from acktrail.lake.data_files import write_files
from acktrail.lake.entries import LOG
from acktrail.lake.rows import dataset
from acktrail.lake.table_snapshots import Snapshot
from acktrail.window import day_of, hour_of

VACUUM_HOURS = 7 * 24
"""Files no version names any more are kept this long, so that no reader loses one it reads."""
FILE_BYTES = 64 << 20
"""Compaction makes files of about this size, and leaves larger ones alone."""
NOTHING = {"files_added": 0, "files_removed": 0}
"""What compaction did where there was nothing to do."""
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


def compact(lake: Lake, table: Table, files: Collection[str]) -> dict[str, int]:
    """Put the small ones of *files* together by partition, in one commit; write a checkpoint.

    *files* are paths as the log spells them: what was written since they were listed stays apart.
    Overtaken: another writer has rewritten or removed one of the files.
    """
    delta = lake.open(table)
    bins = [] if delta is None else _bins(delta, files)
    if delta is None or not bins:
        return dict(NOTHING)
    written: list[AddAction] = []
    for paths in bins:
        with explaining(table, lake.path(table)):
            rows = dataset(Snapshot.of(delta), lake.at(table), paths).to_table()
            written += write_files(table, _fitting(table, rows), lake.at(table))
    moved = [replace(file, data_change=False) for file in written]
    gone = frozenset(path for paths in bins for path in paths)
    lake.put(table, moved, Change(replaced=RewriteFiles(gone)))
    compacted = lake.open(table)
    if compacted is not None:
        with explaining(table, lake.path(table)):
            compacted.create_checkpoint()
    return {"files_added": len(moved), "files_removed": len(gone)}


def _bins(delta: DeltaTable, wanted: Collection[str]) -> list[list[str]]:
    """Files to be put together, at most FILE_BYTES at a time: two or more small ones each."""
    actions = pa.table(delta.get_add_actions(flatten=False))
    sizes = [int(size or 0) for size in actions.column("size_bytes").to_pylist()]
    small: dict[str | None, list[tuple[str, int]]] = {}
    for (path, values), size in zip(partition_texts(actions).items(), sizes, strict=True):
        if path in wanted and size < FILE_BYTES:
            small.setdefault(next(iter(values.values()), None), []).append((path, size))
    return [paths for files in small.values() for paths in _filled(files) if len(paths) > 1]


def _filled(files: Iterable[tuple[str, int]]) -> Iterator[list[str]]:
    paths: list[str] = []
    total = 0
    for path, size in files:
        if paths and total + size > FILE_BYTES:
            yield paths
            paths, total = [], 0
        paths.append(path)
        total += size
    yield paths


def _fitting(table: Table, rows: pa.Table) -> pa.Table:
    """*rows* with the columns of *table*; those that its contract has grown since are null."""
    return conform(table, rows.select([name for name in rows.column_names if name in table.names]))


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
    store = lake.at(table)
    with explaining(table, store.path):
        old = removable(store.names(LOG), limit)
        store.delete(f"{LOG}/{name}" for name in old)
    return len(old)


def removable(names: Iterable[str], limit: int) -> list[str]:
    """Of the files of a log those that nobody needs who reads it from version *limit* on."""
    entries = sorted((int(found.group(1)), name) for name in names if (found := _ENTRY.match(name)))
    checkpoints = [version for version, name in entries if name.endswith(".checkpoint.parquet")]
    base = max((version for version in checkpoints if version <= limit), default=0)
    return [name for version, name in entries if version < base]


def first_kept(table: Table, as_of: datetime) -> str | None:
    """The first partition that the table's retention keeps; None without a time partition."""
    limit = as_of - timedelta(days=table.retention_days)
    column = table.partition[0] if table.partition else ""
    if column == "day":
        return day_of(limit)
    if column in ("hour", "opened_hour"):
        return hour_of(limit)
    return None


def expire(lake: Lake, table: Table, limit: str) -> dict[str, int]:
    """Delete the rows of partitions before *limit*."""
    whole = lake.added(table, None)
    before = ReplaceBefore(limit)
    gone = [] if whole is None else [f for f, v in whole.files.items() if before.covers(v)]
    if whole is None or not gone:
        return {"rows_deleted": 0}
    lake.put(table, [], Change(replaced=before))
    return {"rows_deleted": sum(whole.row_counts[path] for path in gone)}


def vacuum(lake: Lake, table: Table) -> dict[str, int]:
    """Remove files no version of the last week names."""
    delta = lake.open(table)
    if delta is None:
        return {}
    # Full: what a killed agent or task has left behind stands in no version at all.
    with explaining(table, lake.path(table)):
        gone = delta.vacuum(retention_hours=VACUUM_HOURS, dry_run=False, full=True)
    return {"files_deleted": len(gone)}
