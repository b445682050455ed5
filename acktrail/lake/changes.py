"""What was added to a table since a version: read from its log, not from its rows."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace

import pyarrow as pa
from deltalake import DeltaTable

from acktrail.lake.entries import Action

Values = Mapping[str, str | None]
"""Partition values of a file."""


@dataclass(frozen=True)
class Added:
    """Files added to a table after a version: what a job must look at."""

    version: int
    """The table's version when this was read."""
    files: Mapping[str, Values]
    """Paths relative to the table, of add actions with dataChange=true, still in the table; and
    their partitions."""
    partitions: tuple[Values, ...]
    """Distinct partition values of files added *or removed* since."""
    complete: bool
    """False where the log no longer reaches back to the version: rebuild."""
    rows: int
    """Rows in those files, as their statistics say."""
    standing: Mapping[str, Values]
    """Every file of that version, old and new."""
    standing_rows: int


def added_since(
    delta: DeltaTable, since: int | None, entry: Callable[[int], Sequence[Action] | None]
) -> Added:
    """What was added after version *since* (None: everything); *entry* reads one log entry."""
    newest = int(delta.version())
    actions = pa.table(delta.get_add_actions(flatten=False))
    current, rows = _files(actions), _rows_by_file(actions)
    total = sum(rows.values())
    whole = Added(newest, current, _distinct(current.values()), True, total, current, total)
    if since is None:
        return whole
    if since > newest:
        return replace(whole, complete=False)
    files: dict[str, Values] = {}
    touched: list[Values] = []
    for version in range(since + 1, newest + 1):
        written = entry(version)
        if written is None:
            return replace(whole, complete=False)
        for kind, action in written:
            if kind not in ("add", "remove") or not action.get("dataChange", True):
                continue
            touched.append(action.get("partitionValues") or {})
            if kind == "add":
                files[action["path"]] = touched[-1]
            else:
                files.pop(action["path"], None)
    # A file that was compacted away took its rows into one with dataChange=false, which is
    # not in this list: only the whole table has them all.
    if not files.keys() <= current.keys():
        return replace(whole, complete=False)
    count = sum(rows.get(file, 0) for file in files)
    return Added(newest, files, _distinct(touched), True, count, current, total)


def _files(actions: pa.Table) -> dict[str, Values]:
    paths = actions.column("path").to_pylist()
    if "partition" in actions.column_names:
        values = actions.column("partition").to_pylist()
    else:
        values = [{}] * len(paths)
    return {
        str(path): {str(k): None if v is None else str(v) for k, v in (value or {}).items()}
        for path, value in zip(paths, values, strict=True)
    }


def _rows_by_file(actions: pa.Table) -> dict[str, int]:
    counts = actions.column("num_records").to_pylist()
    return {
        str(path): int(count or 0)
        for path, count in zip(actions.column("path").to_pylist(), counts, strict=True)
    }


def _distinct(values: Iterable[Values]) -> tuple[Values, ...]:
    seen = {tuple(sorted(v.items())): v for v in values}
    return tuple(seen[k] for k in sorted(seen, key=str))
