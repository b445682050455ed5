"""Data files: rows as Parquet, one file per partition, and what the log will say of each.

Written by Arrow and committed by delta-rs: its own writer loads a query engine for what is an
append, 20 MB of an agent's memory. Until a commit names a file it is not part of the table; one
that a crash left behind is removed by `acktrail lake vacuum`.
"""

from __future__ import annotations

import json
import math
import sys
import time
import uuid
from collections.abc import Iterator, Mapping
from datetime import UTC, datetime
from pathlib import Path
from typing import Any
from urllib.parse import quote

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq
from deltalake.fs import DeltaStorageHandler
from deltalake.transaction import AddAction
from pyarrow import fs

from acktrail.contracts import Table

LONGEST_BOUND = 64
"""Bounds of texts are cut to this many characters."""
_FIRST_SURROGATE, _AFTER_SURROGATES = 0xD800, 0xE000

Partition = dict[str, str | None]


def native_files(path: str) -> fs.FileSystem | None:
    """Arrow's own files below a local *path*; None for an object store.

    delta-rs reads through Python objects on Arrow's threads, and a process that ends while one of
    them is let go is aborted (SIGABRT instead of its exit code, in four of ten short commands).
    """
    if "://" in path:
        return None
    return fs.SubTreeFileSystem(str(Path(path).absolute()), fs.LocalFileSystem())


def files_below(path: str, storage_options: Mapping[str, str]) -> fs.FileSystem:
    """The files below *path*, a directory or a place in an object store."""
    place = native_files(path)
    return place or fs.PyFileSystem(DeltaStorageHandler(path, dict(storage_options)))


def write_files(
    table: Table, rows: pa.Table, path: str, storage_options: Mapping[str, str]
) -> list[AddAction]:
    """Write *rows* below *path*, the table's; no rows, no file."""
    place = files_below(path, storage_options)
    return [_write(table, part, values, place) for values, part in _partitions(table, rows)]


def _partitions(table: Table, rows: pa.Table) -> Iterator[tuple[Partition, pa.Table]]:
    """The rows of each partition, without the column that its value stands for."""
    if not rows.num_rows:
        return
    if not table.partition:
        yield {}, rows
        return
    name = table.partition[0]
    column, inner = rows.column(name), rows.drop_columns([name])
    found: list[Any] = pc.unique(column).to_pylist()
    for value in sorted(found, key=str):
        if len(found) == 1:  # nearly always: an agent writes what it read today
            yield {name: value}, inner
        else:
            yield {name: value}, inner.filter(_equals(column, value))


def _equals(column: Any, value: str | None) -> Any:
    same = pc.is_null(column) if value is None else pc.equal(column, pa.scalar(value))
    return pc.fill_null(same, False)


def _write(table: Table, rows: pa.Table, values: Partition, place: fs.FileSystem) -> AddAction:
    folder = "/".join(f"{name}={_in_path(value)}" for name, value in values.items())
    name = f"{folder}{'/' if folder else ''}part-{uuid.uuid4()}.snappy.parquet"
    if folder:
        place.create_dir(folder, recursive=True)
    pq.write_table(rows, name, filesystem=place, compression="snappy")
    return AddAction(
        path=name,
        size=int(place.get_file_info(name).size),
        partition_values=values,
        modification_time=int(time.time() * 1000),
        data_change=True,
        stats=json.dumps(_statistics(table, rows), allow_nan=False),
    )


def _in_path(value: str | None) -> str:
    """As Hive names a partition's folder: no value leads out of it."""
    return "__HIVE_DEFAULT_PARTITION__" if value is None else quote(value, safe="")


def _statistics(table: Table, rows: pa.Table) -> dict[str, Any]:
    # Silver is found by partition: bounds of every column would cost a third of a write.
    return {"numRecords": rows.num_rows} if table.layer == "silver" else statistics(rows)


def statistics(rows: pa.Table) -> dict[str, Any]:
    """What readers skip files by: rows, nulls, least and greatest value of each plain column."""
    least: dict[str, Any] = {}
    greatest: dict[str, Any] = {}
    nulls: dict[str, int] = {}
    for name, column in zip(rows.column_names, rows.columns, strict=True):
        if pa.types.is_nested(column.type):
            continue
        nulls[name] = column.null_count
        if pa.types.is_binary(column.type) or _has_nan(column):
            continue
        found: Any = pc.min_max(column).as_py()
        low, high = _low(found["min"]), _high(found["max"])
        if low is not None and high is not None:
            least[name], greatest[name] = low, high
    return {
        "numRecords": rows.num_rows,
        "minValues": least,
        "maxValues": greatest,
        "nullCount": nulls,
    }


def _has_nan(column: pa.ChunkedArray[Any]) -> bool:
    """NaN lies between no bounds."""
    return pa.types.is_floating(column.type) and bool(pc.any(pc.is_nan(column)).as_py())


def _low(value: Any) -> Any:
    return value[:LONGEST_BOUND] if isinstance(value, str) else _exactly(value)


def _high(value: Any) -> Any:
    """As *value*, or for a long text a shorter one that is greater."""
    if not isinstance(value, str):
        return _exactly(value)
    if len(value) <= LONGEST_BOUND:
        return value
    kept = value[:LONGEST_BOUND].rstrip(chr(sys.maxunicode))
    following = ord(kept[-1]) + 1 if kept else None
    if following == _FIRST_SURROGATE:
        following = _AFTER_SURROGATES
    return None if following is None else kept[:-1] + chr(following)


def _exactly(value: Any) -> Any:
    """As the log writes it; None for what it cannot write."""
    if isinstance(value, datetime):
        return value.astimezone(UTC).strftime("%Y-%m-%dT%H:%M:%S.%fZ")
    if isinstance(value, float) and not math.isfinite(value):
        return None
    return value
