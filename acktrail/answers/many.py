"""The first rows of many, and sums over all of them, in bounded memory."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from datetime import UTC, datetime
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from acktrail.contracts import Table
from acktrail.lake import Lake

Row = dict[str, Any]
COUNTED = "row_count"
_TOGETHER = 200_000
"""Rows that are added up at a time."""
Order = Sequence[tuple[str, str]]
"""HourColumns, each `ascending` or `descending`; what is null comes last."""


Measure = tuple[str, str]
"""A column, and what is made of it: `sum`, `min` or `max`."""


@dataclass(frozen=True)
class Top:
    """The first rows in an order, and how many there are."""

    rows: list[Row] = field(default_factory=list)
    of: int = 0

    @property
    def left_out(self) -> int:
        """How many are not among the rows."""
        return self.of - len(self.rows)


def top(
    lake: Lake, table: Table, where: Any, columns: Sequence[str], order: Order, most: int
) -> Top:
    """The first *most* rows by *order*."""
    kept: pa.Table | None = None
    number = 0
    waiting: list[pa.Table] = []
    for batch in lake.batches(table, where, columns):
        number += batch.num_rows
        waiting.append(batch)
        if sum(part.num_rows for part in waiting) > most:
            kept = _first(pa.concat_tables([*([kept] if kept else []), *waiting]), order, most)
            waiting = []
    if waiting:
        kept = pa.concat_tables([*([kept] if kept else []), *waiting])
    rows = [] if kept is None else _first(kept, order, most).to_pylist()
    return Top([in_utc(row) for row in rows], number)


def _first(rows: pa.Table, order: Order, most: int) -> pa.Table:
    keys: list[Any] = list(order)
    first = pc.sort_indices(rows, sort_keys=keys)
    return rows.take(first.slice(0, most))


def numbers(column: Any, missing: float = 0) -> Any:
    """The numbers of *column* for numpy, *missing* for those that are null."""
    filled: Any = pc.fill_null(column, missing)
    return filled.to_numpy()


def in_utc(row: Row) -> Row:
    """*row* with its moments in UTC."""
    return {k: v.astimezone(UTC) if isinstance(v, datetime) else v for k, v in row.items()}


def grouped(
    lake: Lake,
    table: Table,
    where: Any,
    keys: Sequence[str],
    measures: Sequence[Measure],
) -> pa.Table:
    """Each group of *keys* with its *measures*: columns, each with `sum`, `min` or `max`.

    The columns keep their names; a last one, `row_count`, counts. Each column is measured once.
    """
    named = list(dict.fromkeys([*keys, *(name for name, _ in measures)]))
    parts: list[pa.Table] = []
    waiting: list[pa.Table] = []
    for batch in lake.batches(table, where, named):
        waiting.append(batch.append_column(COUNTED, pa.repeat(pa.scalar(1), batch.num_rows)))
        if sum(part.num_rows for part in waiting) >= _TOGETHER:
            parts.append(_sums(pa.concat_tables(waiting), keys, measures))
            waiting = []
    if waiting:
        parts.append(_sums(pa.concat_tables(waiting), keys, measures))
    if not parts:
        return pa.table({name: [] for name in [*keys, *(name for name, _ in measures), COUNTED]})
    return _sums(pa.concat_tables(parts), keys, measures)


def _sums(rows: pa.Table, keys: Sequence[str], measures: Sequence[Measure]) -> pa.Table:
    asked: list[Any] = [*measures, (COUNTED, "sum")]
    # On one thread: with several, the order of groups, and of sums of floats, would vary.
    found = rows.group_by(list(keys), use_threads=False).aggregate(asked)
    names = {f"{name}_{how}": name for name, how in asked}
    return found.rename_columns([names.get(name, name) for name in found.column_names])


def first_of_each(rows: pa.Table, keys: Sequence[str]) -> Any:
    """Of sorted *rows*, which are the first of their *keys*."""
    first = np.zeros(rows.num_rows, dtype=bool)
    first[:1] = True
    for name in keys:
        column = rows[name].combine_chunks()
        codes = column.dictionary_encode().indices.fill_null(-1).to_numpy(zero_copy_only=False)
        first[1:] |= codes[1:] != codes[:-1]
    return first
