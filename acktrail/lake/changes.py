"""What was added to a table since a version: read from its log, not from its rows."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from json import loads
from typing import TYPE_CHECKING, Any

import pyarrow as pa

from acktrail.lake.entries import Action, is_migration
from acktrail.lake.replacement import Values

if TYPE_CHECKING:
    from acktrail.lake.table_snapshots import Snapshot

MOST_COUNTED = 1_000
"""So many commits are looked at to say how many rows a job has not read."""


@dataclass(frozen=True)
class AddedFiles:
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
    standing: Mapping[str, Values]
    """Every file of that version, old and new."""
    row_counts: Mapping[str, int]
    """Rows in each file of that version, as their statistics say."""

    @property
    def rows(self) -> int:
        """Rows in the added files."""
        return sum(self.row_counts.get(path, 0) for path in self.files)

    @property
    def standing_rows(self) -> int:
        """Rows in the whole table."""
        return sum(self.row_counts.values())


def added_since(
    snapshot: Snapshot, since: int | None, entry: Callable[[int], Sequence[Action] | None]
) -> AddedFiles:
    """What was added after version *since* (None: everything); *entry* reads one log entry."""
    newest, current, rows = snapshot.version, snapshot.files, snapshot.row_counts
    whole = AddedFiles(newest, current, _distinct(current.values()), True, current, rows)
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
        if is_migration(written):
            files = _migrated(files, written)
            continue
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
    return AddedFiles(newest, files, _distinct(touched), True, current, rows)


def _migrated(unread: Mapping[str, Values], written: Sequence[Action]) -> dict[str, Values]:
    """Where the rows of the *unread* files are after a migration: in files of their partitions.

    A migration replaces every file. Rows beside them count as unread too, which costs a fold only
    that their partition is made again.
    """
    partitions = {_key(values) for values in unread.values()}
    added = {a["path"]: a.get("partitionValues") or {} for kind, a in written if kind == "add"}
    return {path: values for path, values in added.items() if _key(values) in partitions}


@dataclass(frozen=True)
class UnreadFiles:
    """What a job has not read of one of its inputs."""

    rows: int
    """Rows of the files that were added and are still there; 0 where rows only went."""
    counted: bool
    """Whether *rows* is all of them: of a very long log only the first commits are counted."""
    since: datetime | None
    """When the first of it was committed; None where the log no longer has that commit."""


def unread_since(
    newest: int, since: int | None, entry: Callable[[int], Sequence[Action] | None]
) -> UnreadFiles | None:
    """What came after version *since* (None: everything) up to *newest*; None if nothing did.

    Compacting commits (dataChange=false), migrations and commits without files bring nothing to
    read.
    """
    rows: dict[str, int] = {}
    first: datetime | None = None
    lost = changed = False
    begin = 0 if since is None else since + 1
    last = newest if newest - begin < MOST_COUNTED else begin + MOST_COUNTED
    for version in range(begin, newest + 1):
        if version > last and (changed or lost):
            break
        written = entry(version)
        if written is None:
            lost = True
            continue
        if is_migration(written):
            continue
        moved = [(k, a) for k, a in written if k in ("add", "remove") and a.get("dataChange", True)]
        for kind, action in moved:
            if kind == "add":
                rows[action["path"]] = _stated_rows(action)
            else:
                rows.pop(action["path"], None)
        if moved and not changed:
            changed, first = True, _committed_at(written)
    if not changed and not lost:
        return None
    return UnreadFiles(sum(rows.values()), last == newest and not lost, None if lost else first)


def _stated_rows(add: Mapping[str, Any]) -> int:
    return int(loads(add.get("stats") or "{}").get("numRecords") or 0)


def _committed_at(actions: Sequence[Action]) -> datetime | None:
    for kind, said in actions:
        if kind == "commitInfo" and said.get("timestamp") is not None:
            return datetime.fromtimestamp(int(said["timestamp"]) / 1000, UTC)
    return None


def partition_texts(actions: pa.Table) -> dict[str, Values]:
    """Path, as the log spells it, to partition values: of every file in *actions* of delta-rs."""
    paths = actions.column("path").to_pylist()
    if "partition" in actions.column_names:
        values = actions.column("partition").to_pylist()
    else:
        values = [{}] * len(paths)
    return {
        str(path): {str(k): None if v is None else str(v) for k, v in (value or {}).items()}
        for path, value in zip(paths, values, strict=True)
    }


def rows_by_file(actions: pa.Table) -> dict[str, int]:
    """Path to the number of rows that its statistics state: of every file in *actions*."""
    counts = actions.column("num_records").to_pylist()
    return {
        str(path): int(count or 0)
        for path, count in zip(actions.column("path").to_pylist(), counts, strict=True)
    }


def _key(values: Values) -> tuple[tuple[str, str | None], ...]:
    return tuple(sorted(values.items()))


def _distinct(values: Iterable[Values]) -> tuple[Values, ...]:
    seen = {_key(v): v for v in values}
    return tuple(seen[k] for k in sorted(seen, key=str))
