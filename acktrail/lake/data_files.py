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
from collections.abc import Iterator
from datetime import UTC, datetime
from typing import Any
from urllib.parse import quote

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq
from deltalake.transaction import AddAction

from acktrail.contracts import Table
from acktrail.lake.store import Store

LONGEST_BOUND = 64
"""Bounds of texts are cut to this many characters."""
_FIRST_SURROGATE, _AFTER_SURROGATES = 0xD800, 0xE000

Partition = dict[str, str | None]


def write_files(table: Table, rows: pa.Table, store: Store) -> list[AddAction]:
    """Write *rows* below *store*, the table's; no rows, no file."""
    return [_write(table, part, values, store) for values, part in _partitions(table, rows)]


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


def _write(table: Table, rows: pa.Table, values: Partition, store: Store) -> AddAction:
    folder = "/".join(f"{name}={_in_path(value)}" for name, value in values.items())
    name = f"{folder}{'/' if folder else ''}part-{uuid.uuid4()}.snappy.parquet"
    store.make_directory(folder)
    with store.files().open_output_stream(name) as stream:
        pq.write_table(rows, stream, compression="snappy")
        size = int(stream.tell())
    return AddAction(
        path=name,
        size=size,
        partition_values=values,
        modification_time=int(time.time() * 1000),
        data_change=True,
        stats=json.dumps(_statistics(table, rows), allow_nan=False),
    )


def _in_path(value: str | None) -> str:
    """As Hive names a partition's folder: no value leads out of it."""
    return "__HIVE_DEFAULT_PARTITION__" if value is None else quote(value, safe="")


def has_bounds(table: Table) -> bool:
    """Whether files of *table* are found by the bounds of their columns too.

    Silver is found by its hour or day: bounds would cost a third of a write. What lies in buckets
    is found by offsets and instants.
    """
    return table.layer != "silver" or table.partition == ("bucket",)


def _statistics(table: Table, rows: pa.Table) -> dict[str, Any]:
    if not has_bounds(table):
        return {"numRecords": rows.num_rows}
    if table.layer != "silver":
        return statistics(rows)
    is_one = (pa.types.is_integer, pa.types.is_timestamp)
    return statistics(rows.select([f.name for f in rows.schema if any(k(f.type) for k in is_one)]))


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
