"""Rows of a table, by Arrow: files that cannot hold what is asked for are not opened.

delta-rs's own dataset takes a bound that is missing in one file (an infinite value has none) for a
bound that nothing meets, and leaves the file out.
"""

from __future__ import annotations

import re
from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import reduce
from itertools import product
from math import prod
from operator import and_, or_
from typing import Any
from urllib.parse import unquote

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.dataset as ds
from deltalake.exceptions import DeltaError

from acktrail.contracts import Table
from acktrail.contracts.arrow import schema
from acktrail.lake.damage import explained
from acktrail.lake.guard import refuse_outdated, stored_schema
from acktrail.lake.replacement import Values
from acktrail.lake.store import Store
from acktrail.lake.table_snapshots import Snapshot

MOST_CASES = 8
"""Of a file, nulls in more columns than three are not told apart."""


@dataclass(frozen=True)
class Where:
    """Rows that are asked for, and what that says of their partition alone.

    Files of other partitions are left out all at once; by *rows*, which is about other columns too,
    each file is looked at on its own, which is slow for thousands.
    """

    rows: ds.Expression
    parts: ds.Expression

    def __and__(self, other: Where | ds.Expression) -> Where:
        """The rows that meet both."""
        if isinstance(other, Where):
            return Where(self.rows & other.rows, self.parts & other.parts)
        return Where(self.rows & other, self.parts)


@dataclass(frozen=True)
class Rows:
    """Rows of one version of a table, or of some of its files; read when they are asked for."""

    table: Table
    store: Store
    seen: Snapshot
    files: Collection[str] | None = None
    """Paths as the log spells them; None: all."""

    def read(self, *columns: str, where: ds.Expression | None = None) -> pa.Table:
        """The *columns* of the rows for which *where* holds."""
        return read_rows(self.table, self.store, self.seen, where, columns, self.files)

    def has(self, column: str) -> bool:
        """Whether the table has *column* already; a contract may have grown it since."""
        return column in stored_schema(self.seen.delta).names

    def reaching(self, least: Mapping[str, Any], *, nulls: bool = False) -> Rows:
        """Without files in which every column of *least* is below its value, by the log's bounds.

        With *nulls*, a file with nulls in one of the columns is kept. All files at once: `where`
        looks at the bounds of each on its own, which is slow for thousands.
        """
        kept = _reaching(self.seen.actions, least, nulls)
        if self.files is not None:
            kept &= set(self.files)
        return replace(self, files=kept)


def read_rows(
    table: Table,
    store: Store,
    seen: Snapshot,
    where: ds.Expression | None = None,
    columns: Sequence[str] | None = None,
    files: Collection[str] | None = None,
) -> pa.Table:
    """Rows of *table* as they were *seen*; of *files* only, where given."""
    wanted = list(columns) if columns is not None else list(table.names)
    refuse_outdated(table, store.path, seen.delta, wanted)
    try:
        data = dataset(seen, store, files, where)
        present = [name for name in wanted if name in data.schema.names]
        found = data.to_table(filter=where, columns=present)
    except (DeltaError, OSError, pa.ArrowInvalid) as error:
        raise explained(table, store.path, error) from error
    # A table written before its contract grew a column reads as if it were null there.
    for name in wanted:
        if name not in present:
            kind = schema(table).field(name).type
            found = found.append_column(name, pa.nulls(found.num_rows, kind))
    return found.select(wanted)


def read_batches(
    table: Table,
    store: Store,
    seen: Snapshot,
    where: Where | ds.Expression | None,
    columns: Sequence[str],
) -> Iterator[pa.Table]:
    """As *read_rows*, a part at a time: memory stays bounded however many rows there are."""
    files = None
    if isinstance(where, Where):
        listed = _in_partitions(seen.actions, where.parts, list(table.partition))
        files = [str(path) for path in listed.column("path").to_pylist()]
        where = where.rows
    refuse_outdated(table, store.path, seen.delta, columns)
    kinds = pa.schema([schema(table).field(name) for name in columns])
    try:
        data = dataset(seen, store, files, where)
        present = [name for name in columns if name in data.schema.names]
        absent = [name for name in columns if name not in present]
        scanner = data.scanner(columns=present, filter=where, batch_size=1 << 16)
        for batch in scanner.to_batches():
            if batch.num_rows:
                found = {name: batch.column(name) for name in present}
                missing = {n: pa.nulls(batch.num_rows, kinds.field(n).type) for n in absent}
                yield pa.table({**missing, **found}).select(list(columns))
    except (DeltaError, OSError, pa.ArrowInvalid) as error:
        raise explained(table, store.path, error) from error


def _reaching(files: pa.Table, least: Mapping[str, Any], nulls: bool) -> set[str]:
    kept: Any = pa.repeat(pa.scalar(False), files.num_rows)
    for name, value in least.items():
        high = _bounds(files, "max", name)
        missing = _bounds(files, "null_count", name)
        if high is None or missing is None:
            return {str(path) for path in files.column("path").to_pylist()}
        reaches: Any = pc.greater_equal(high, pa.scalar(value, high.type))
        kept = pc.or_(kept, pc.fill_null(reaches, True))
        if nulls:
            some: Any = pc.greater(missing, pa.scalar(0))
            kept = pc.or_(kept, pc.fill_null(some, True))
    return {str(path) for path in files.filter(kept).column("path").to_pylist()}


def _bounds(files: pa.Table, kind: str, name: str) -> Any:
    """What the log has of *kind* for the column *name*, for each file; None: nothing."""
    if kind not in files.column_names:
        return None
    column = files.column(kind)
    known = name in [field.name for field in column.type.fields]
    return pc.struct_field(column, name) if known else None


def files_with(seen: Snapshot, store: Store, where: ds.Expression | None) -> dict[str, Values]:
    """The files that may hold rows for which *where* holds, by partition and bounds in the log.

    And those with rows of which it may not be known, for a null.
    """
    if where is None:
        return dict(seen.files)
    found = dataset(seen, store, None, where).get_fragments(filter=where)
    kept = {fragment.path for fragment in found}
    files = {path: values for path, values in seen.files.items() if unquote(path) in kept}
    open_too = where | where.is_null()
    there = dataset(seen, store, files, where, each_case=True).get_fragments(filter=open_too)
    kept = {fragment.path for fragment in there}
    return {path: values for path, values in files.items() if unquote(path) in kept}


def dataset(
    seen: Snapshot,
    store: Store,
    wanted: Collection[str] | None = None,
    where: ds.Expression | None = None,
    *,
    each_case: bool = False,
) -> ds.Dataset:
    """All files of the table at *store*, or those *wanted*, each with what its log entry shows.

    *wanted* are paths as the log spells them. Bounds are given of the columns in *where* only.
    With *each_case*, a file is there several times: for its rows with nulls in these, and without.
    Arrow draws nothing from "within these bounds or null". Such a dataset is not to be read.
    """
    place = store.files()
    layout = ds.ParquetFileFormat(
        default_fragment_scan_options=ds.ParquetFragmentScanOptions(pre_buffer=True)
    )
    listed = seen.actions
    if wanted is not None:
        listed = listed.filter(pc.is_in(listed.column("path"), pa.array(list(wanted), pa.string())))
    names = stored_schema(seen.delta).names
    mentioned = _mentioned(names, where)
    listed = _in_partitions(listed, where, mentioned)
    fragments = [
        layout.make_fragment(unquote(str(path)), filesystem=place, partition_expression=holds)
        for path, cases in zip(
            listed.column("path").to_pylist(), _holds(listed, mentioned, each_case), strict=True
        )
        for holds in cases
    ]
    return ds.FileSystemDataset(fragments, stored_schema(seen.delta), layout, place)


def _mentioned(names: Sequence[str], where: ds.Expression | None) -> list[str]:
    """The columns that *where* may be about."""
    try:
        words = set(re.findall(r"\w+", str(where)))
    except UnicodeDecodeError:  # a long value is printed cut, possibly inside a character
        return list(names)
    return [name for name in names if name in words]


def _in_partitions(
    files: pa.Table, where: ds.Expression | None, mentioned: Sequence[str]
) -> pa.Table:
    """Those of *files* for which *where* may hold, where it is about their partition alone.

    All at once: of thousands of files, each on its own would cost a millisecond.
    """
    partition = _by_column(files, "partition")
    if where is None or not mentioned or not set(mentioned) <= partition.keys():
        return files
    texts = {name: pa.array(values, pa.string()) for name, values in partition.items()}
    numbered = pa.table({**texts, "_number": range(files.num_rows)})
    return files.take(numbered.filter(where).column("_number"))


def _holds(
    files: pa.Table, mentioned: Sequence[str], each_case: bool
) -> Iterator[list[ds.Expression]]:
    """What is true of every row of each of *files*, as far as *mentioned* names the columns.

    One case, or several, of which one is true of every row.
    """
    partition = _by_column(files, "partition")
    least, greatest = (_by_column(files, name, mentioned) for name in ("min", "max"))
    nulls = _by_column(files, "null_count", mentioned)
    for number in range(files.num_rows):
        known = [[_is(name, values[number])] for name, values in partition.items()]
        for name, lows in least.items():
            low, high = lows[number], greatest[name][number] if name in greatest else None
            if low is not None and high is not None:
                no_nulls = name in nulls and nulls[name][number] == 0
                known.append(_between(name, low, high, no_nulls))
        if not each_case or prod(map(len, known)) > MOST_CASES:
            known = [[reduce(or_, cases)] for cases in known]
        yield [reduce(and_, case, ds.scalar(True)) for case in product(*known)]


def _by_column(
    files: pa.Table, kind: str, mentioned: Sequence[str] | None = None
) -> dict[str, list[Any]]:
    """What the log has of *kind* for each column, a value for each file."""
    if kind not in files.column_names:
        return {}
    column = files.column(kind)
    names = [field.name for field in column.type.fields]
    return {
        name: pc.struct_field(column, name).to_pylist()
        for name in names
        if mentioned is None or name in mentioned
    }


def _is(name: str, value: Any) -> ds.Expression:
    return ds.field(name).is_null() if value is None else ds.field(name) == ds.scalar(value)


def _between(name: str, low: Any, high: Any, no_nulls: bool) -> list[ds.Expression]:
    inside = (ds.field(name) >= ds.scalar(low)) & (ds.field(name) <= ds.scalar(high))
    return [inside] if no_nulls else [inside, ds.field(name).is_null()]
