"""Rows out of Arrow batches, in order and grouped by key; and instants out of columns."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from datetime import UTC, datetime, timedelta
from itertools import groupby
from operator import itemgetter
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.dataset as ds

Row = dict[str, Any]
_INSTANT = pa.timestamp("us", tz="UTC")


def rows_of(batches: Iterable[pa.RecordBatch]) -> Iterator[Row]:
    """Every row of *batches* as a dict."""
    for batch in batches:
        names = batch.schema.names
        for values in zip(*(column.to_pylist() for column in batch.columns), strict=True):
            yield dict(zip(names, values, strict=True))


def by_key(rows: Iterable[Row], key: Sequence[str]) -> Iterator[tuple[tuple[Any, ...], list[Row]]]:
    """Rows that follow each other with the same *key*, together."""
    for found, same in groupby(rows, key=itemgetter(*key)):
        yield found, list(same)


def hours_in(instants: Any, minutes: int = 60) -> set[datetime]:
    """The distinct hours of a column of instants, or its spans of *minutes*."""
    starts = pc.unique(pc.floor_temporal(instants, minutes, unit="minute"))
    return {at.astimezone(UTC) for at in starts.to_pylist() if at is not None}


def hour_named(text: str) -> datetime | None:
    """The start of the hour that a partition is named after; None for one without a time."""
    try:
        return datetime.strptime(text, "%Y-%m-%dT%H").replace(tzinfo=UTC)
    except ValueError:
        return None


def within_hours(
    column: str, keys: Iterable[str], *, before: int = 0, after: int = 0, of: Any = _INSTANT
) -> Any:
    """That *column* lies between the first and the last of the hours *keys*, or near to them.

    So many hours *before* the first and *after* the last count too. *of* is the column's type:
    an instant, or a number of milliseconds.
    """
    hours = [hour for key in keys if (hour := hour_named(key)) is not None]
    if not hours:
        return ds.scalar(False)
    first = min(hours) - timedelta(hours=before)
    last = max(hours) + timedelta(hours=after + 1)
    instants: Any = pa.array([first, last], _INSTANT)
    if pa.types.is_integer(of):
        instants = pc.cast(instants, pa.timestamp("ms", tz="UTC")).cast(of)
    low, high = instants
    return (ds.field(column) >= low) & (ds.field(column) < high)
