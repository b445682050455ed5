"""Rows out of Arrow batches: in order, and grouped by key where they come sorted."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from itertools import groupby
from operator import itemgetter
from typing import Any

import pyarrow as pa

Row = dict[str, Any]


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
