"""Rows of a table, by Arrow: files that cannot hold what is asked for are not opened.

delta-rs's own dataset takes a bound that is missing in one file (an infinite value has none) for a
bound that nothing meets, and leaves the file out.
"""

from __future__ import annotations

from collections.abc import Mapping
from functools import reduce
from operator import and_
from typing import Any
from urllib.parse import unquote

import pyarrow as pa
import pyarrow.dataset as ds
from deltalake import DeltaTable

from acktrail.lake.data_files import files_below
from acktrail.lake.guard import stored_schema


def dataset(delta: DeltaTable, path: str, storage_options: Mapping[str, str]) -> ds.Dataset:
    """All files of *delta*, the table at *path*, each with what the log says of it."""
    place = files_below(path, storage_options)
    layout = ds.ParquetFileFormat(
        default_fragment_scan_options=ds.ParquetFragmentScanOptions(pre_buffer=True)
    )
    files = pa.table(delta.get_add_actions(flatten=False)).to_pylist()
    fragments = [
        layout.make_fragment(
            unquote(file["path"]), filesystem=place, partition_expression=_holds(file)
        )
        for file in files
    ]
    return ds.FileSystemDataset(fragments, stored_schema(delta), layout, place)


def _holds(file: Mapping[str, Any]) -> ds.Expression:
    """What is true of every row of *file*."""
    known = [_is(name, value) for name, value in (file.get("partition") or {}).items()]
    least, greatest = file.get("min") or {}, file.get("max") or {}
    nulls = file.get("null_count") or {}
    for name, low in least.items():
        high = greatest.get(name)
        if low is not None and high is not None:
            known.append(_between(name, low, high, nulls.get(name) == 0))
    return reduce(and_, known, ds.scalar(True))


def _is(name: str, value: Any) -> ds.Expression:
    return ds.field(name).is_null() if value is None else ds.field(name) == ds.scalar(value)


def _between(name: str, low: Any, high: Any, no_nulls: bool) -> ds.Expression:
    inside = (ds.field(name) >= ds.scalar(low)) & (ds.field(name) <= ds.scalar(high))
    return inside if no_nulls else inside | ds.field(name).is_null()
