"""The lake: Delta tables, written here by delta-rs, with positions in the same commit as rows.

Agents append rows and positions: both become visible, or neither. A position is a Delta `txn`
action: the application id names one source, the version says how far it has been read. Every
attempt, retries included, reloads the table and requires the position to be where the batch
began, because delta-rs refuses only a *concurrent* commit of the same application id.

The same class is the control plane of the Spark jobs: versions, what was added since, what a job
has consumed. It never starts a JVM.
"""

from __future__ import annotations

import json
import random
import time
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import pyarrow as pa
from deltalake import CommitProperties, DeltaTable, Transaction, write_deltalake
from deltalake.exceptions import CommitFailedError, DeltaError, TableNotFoundError

from acktrail.contracts import Table
from acktrail.contracts.arrow import conform, schema
from acktrail.errors import (
    ConfigError,
    ContractError,
    LakeBusy,
    LakeDamaged,
    PositionConflict,
    UnsupportedTable,
)
from acktrail.lake_damage import (
    check_entry,
    commit_seal,
    explained,
    first_to_check,
    read_entry,
    refuse_damaged_log,
)

ATTEMPTS = 40
"""How often a commit is tried against other writers before LakeBusy."""

_FEATURES = {
    "appendOnly",
    "invariants",
    "changeDataFeed",
    "checkConstraints",
    "generatedColumns",
    "timestampNtz",
}


@dataclass(frozen=True)
class Position:
    """One source's position: moved from *began* (None: never read before) to *reached*."""

    app_id: str
    began: int | None
    reached: int


@dataclass(frozen=True)
class Added:
    """Files added to a table after a version: what a job must look at."""

    version: int
    """The table's version when this was read."""
    files: tuple[str, ...]
    """Paths relative to the table, of add actions with dataChange=true, still in the table."""
    partitions: tuple[Mapping[str, str | None], ...]
    """Distinct partition values of files added *or removed* since."""
    complete: bool
    """False where the log no longer reaches back to the version: rebuild."""
    rows: int = 0
    """Rows in those files, as their statistics say."""


class Lake:
    """All tables under one URI (a directory or an object store)."""

    def __init__(self, uri: str | Path, storage_options: Mapping[str, str] | None = None) -> None:
        self.uri = str(uri).rstrip("/")
        self.storage_options = dict(storage_options or {})
        self._checked: dict[str, int] = {}
        if not self.uri:
            raise ConfigError("The lake's URI is empty. Give --lake URI, or set `lake.uri`.")

    def path(self, table: Table) -> str:
        """Where *table* lives: layer/name under the lake."""
        return f"{self.uri}/{table.layer}/{table.name}"

    # -- agents ---------------------------------------------------------------------------------

    def append(
        self, table: Table, rows: pa.Table, positions: Sequence[Position] = (), note: str = ""
    ) -> int:
        """Append *rows* and move *positions* in one atomic commit; the new version.

        PositionConflict when another writer has moved one of the positions: nothing is written.
        """
        _refuse_other_writer(table)
        fitting = conform(table, rows)
        if not fitting.num_rows and not positions:
            return self.version(table) or 0
        transactions = [Transaction(p.app_id, p.reached) for p in positions]
        for attempt in range(ATTEMPTS):
            delta = self._create_or_open(table)
            _require_positions(table, delta, positions)
            seal = commit_seal(int(delta.version()), len(transactions))
            # A crash before the next line leaves the table as it was; a crash inside it leaves at
            # worst data files that no commit names; after it, rows and positions are both there.
            try:
                write_deltalake(
                    delta,
                    fitting,
                    mode="append",
                    schema_mode="merge",
                    commit_properties=CommitProperties(
                        app_transactions=transactions or None,
                        custom_metadata=seal | ({"note": note} if note else {}),
                        max_commit_retries=0,
                    ),
                )
            except CommitFailedError:
                _back_off(attempt)
                continue
            except (DeltaError, OSError) as error:
                raise explained(table, self.path(table), error) from error
            return self.version(table) or 0
        raise LakeBusy(
            f"{table.name}: {ATTEMPTS} commits in a row were overtaken by other writers. "
            "Nothing was written; flush less often (`agent.flush_s`) or run fewer agents."
        )

    def position(self, table: Table, app_id: str) -> int | None:
        """How far *app_id* has been read into *table*; None where it never was."""
        delta = self.open(table)
        return None if delta is None else _position(delta, app_id)

    def positions(self, table: Table, app_ids: Sequence[str]) -> dict[str, int | None]:
        """As *position*, for many at once."""
        delta = self.open(table) if app_ids else None
        return {a: None if delta is None else _position(delta, a) for a in app_ids}

    # -- reading and control --------------------------------------------------------------------

    def open(self, table: Table) -> DeltaTable | None:
        """The table, guarded and fitting its contract; None where it does not exist yet."""
        path = self.path(table)
        try:
            if not self._is_table(table, path):
                return None
            delta = DeltaTable(path, storage_options=self.storage_options or None)
            _guard(table, path, delta)
            self._check_log(table, path, int(delta.version()))
        except TableNotFoundError:
            return None
        except (DeltaError, OSError) as error:
            raise explained(table, path, error) from error
        return delta

    def _is_table(self, table: Table, path: str) -> bool:
        """Whether the table was made; what another writer is just making is waited for."""
        for last in (False, False, False, True):
            if DeltaTable.is_deltatable(path, self.storage_options or None):
                return True
            try:
                refuse_damaged_log(table, path)
            except LakeDamaged:
                if last:
                    raise
                time.sleep(0.2)
            else:
                return False
        return False

    def _check_log(self, table: Table, path: str, newest: int) -> None:
        """Check entries of the log not checked before: LakeDamaged names the broken one."""
        if table.writer != "delta-rs":
            return
        first = self._checked.get(table.name, -1) + 1
        if not first:
            first = newest if "://" in path else first_to_check(path)
        for version in range(first, newest + 1):
            check_entry(table, path, version, newest, self._commit(table, version))
            self._checked[table.name] = version

    def exists(self, table: Table) -> bool:
        """Whether the table has been written."""
        return self.open(table) is not None

    def version(self, table: Table) -> int | None:
        """The table's newest version; None where it does not exist yet."""
        delta = self.open(table)
        return None if delta is None else int(delta.version())

    def read(
        self,
        table: Table,
        where: Any = None,
        columns: Sequence[str] | None = None,
    ) -> pa.Table:
        """Rows of *table*, empty if never written; *where* is a pyarrow.dataset expression."""
        delta = self.open(table)
        wanted = list(columns) if columns is not None else list(table.names)
        if delta is None:
            return schema(table).empty_table().select(wanted)
        try:
            data = delta.to_pyarrow_dataset(filesystem=_native(self.path(table)))
            present = [name for name in wanted if name in data.schema.names]
            found = data.to_table(filter=where, columns=present)
        except (DeltaError, OSError, pa.ArrowInvalid) as error:
            raise explained(table, self.path(table), error) from error
        # A table written before its contract grew a column reads as if it were null there.
        for name in wanted:
            if name not in present:
                kind = schema(table).field(name).type
                found = found.append_column(name, pa.nulls(found.num_rows, kind))
        return found.select(wanted)

    def added(self, table: Table, since: int | None) -> Added | None:
        """What was added after version *since* (None: everything); None if not written yet."""
        delta = self.open(table)
        if delta is None:
            return None
        newest = int(delta.version())
        current = _current_files(delta)
        rows = _rows_by_file(delta)
        whole = Added(
            newest, tuple(sorted(current)), _distinct(current.values()), True, sum(rows.values())
        )
        if since is None:
            return whole
        if since > newest:
            return replace(whole, complete=False)
        files: dict[str, Mapping[str, str | None]] = {}
        touched: list[Mapping[str, str | None]] = []
        for version in range(since + 1, newest + 1):
            actions = self._commit(table, version)
            if actions is None:
                return replace(whole, complete=False)
            for kind, action in actions:
                if kind not in ("add", "remove") or not action.get("dataChange", True):
                    continue
                touched.append(action.get("partitionValues") or {})
                if kind == "add":
                    files[action["path"]] = touched[-1]
                else:
                    files.pop(action["path"], None)
        # A file that was compacted away took its rows into one with dataChange=false, which is
        # not in this list: only the whole table has them all.
        kept = tuple(sorted(f for f in files if f in current))
        if len(kept) < len(files):
            return replace(whole, complete=False)
        return Added(newest, kept, _distinct(touched), True, sum(rows.get(f, 0) for f in kept))

    def has_data(self, table: Table) -> bool:
        """Whether the table holds any file."""
        delta = self.open(table)
        return delta is not None and bool(_current_files(delta))

    def consumed(self, table: Table, job: str) -> dict[str, int] | None:
        """Input versions the last run of *job* has consumed; None where unknown: rebuild."""
        delta = self.open(table)
        if delta is None:
            return None
        for limit in (20, None):  # nearly always among the newest commits
            for commit in delta.history(limit):
                noted = _noted(commit.get("userMetadata"))
                if noted.get("job") == job:
                    return {str(k): int(v) for k, v in noted.get("consumed", {}).items()}
        return None

    def _commit(self, table: Table, version: int) -> list[tuple[str, dict[str, Any]]] | None:
        """The actions of one commit, or None where its file is gone."""
        from pyarrow import fs

        path = f"{self.path(table)}/_delta_log/{version:020d}.json"
        try:
            if "://" in path:
                filesystem, inner = fs.FileSystem.from_uri(path)
                with filesystem.open_input_stream(inner) as stream:
                    text = stream.read().decode()
            else:
                text = Path(path).read_text(encoding="utf-8")
        except FileNotFoundError:
            return None
        actions = read_entry(text)
        if actions is None:
            raise LakeDamaged(
                f"{table.name}: the log entry {path} is cut short or overwritten.\n"
                "Restore this file from a backup."
            )
        return actions

    def _create_or_open(self, table: Table) -> DeltaTable:
        delta = self.open(table)
        if delta is not None:
            return delta
        try:
            DeltaTable.create(
                self.path(table),
                schema=schema(table),
                mode="ignore",
                partition_by=list(table.partition) or None,
                name=table.name,
                description=table.doc,
                storage_options=self.storage_options or None,
                # Tried again, a lost race would declare the table a second time, as version 1.
                commit_properties=CommitProperties(max_commit_retries=0),
            )
        except (DeltaError, OSError) as error:
            # Two agents may create at once: whoever comes second opens what the first made.
            if not DeltaTable.is_deltatable(self.path(table), self.storage_options or None):
                raise explained(table, self.path(table), error) from error
        opened = self.open(table)
        if opened is None:
            raise LakeDamaged(f"{table.name}: could not be created at {self.path(table)}.")
        return opened


def _noted(metadata: str | None) -> dict[str, Any]:
    """What a job wrote beside its commit; empty for commits of others."""
    try:
        noted = json.loads(metadata or "{}")
    except ValueError:
        return {}
    return noted if isinstance(noted, dict) else {}


def _native(path: str) -> Any:
    """Arrow's own reader for a local *path*; None: delta-rs's, for an object store.

    delta-rs reads through Python objects on Arrow's threads, and a process that ends while one of
    them is let go is aborted (SIGABRT instead of its exit code, in four of ten short commands).
    """
    from pyarrow import fs

    if "://" in path:
        return None
    return fs.SubTreeFileSystem(str(Path(path).absolute()), fs.LocalFileSystem())


def _position(delta: DeltaTable, app_id: str) -> int | None:
    version = delta.transaction_version(app_id)
    return None if version is None else int(version)


def _require_positions(table: Table, delta: DeltaTable, positions: Iterable[Position]) -> None:
    for p in positions:
        found = _position(delta, p.app_id)
        if found != p.began:
            raise PositionConflict(
                f"{table.name}: the source {p.app_id} stands at {found}, but this batch began at "
                f"{p.began}. Another agent reads the same source: stop one of them. "
                "Nothing was written."
            )


def _current_files(delta: DeltaTable) -> dict[str, Mapping[str, str | None]]:
    """Path to partition values of every file in the table now."""
    actions = pa.table(delta.get_add_actions(flatten=False))
    paths = actions.column("path").to_pylist()
    if "partition" in actions.column_names:
        values = actions.column("partition").to_pylist()
    else:
        values = [{}] * len(paths)
    return {
        str(path): {str(k): None if v is None else str(v) for k, v in (value or {}).items()}
        for path, value in zip(paths, values, strict=True)
    }


def _rows_by_file(delta: DeltaTable) -> dict[str, int]:
    actions = pa.table(delta.get_add_actions(flatten=False))
    counts = actions.column("num_records").to_pylist()
    return {
        str(path): int(count or 0)
        for path, count in zip(actions.column("path").to_pylist(), counts, strict=True)
    }


def _distinct(
    values: Iterable[Mapping[str, str | None]],
) -> tuple[Mapping[str, str | None], ...]:
    seen = {tuple(sorted(v.items())): v for v in values}
    return tuple(seen[k] for k in sorted(seen, key=str))


def _guard(table: Table, path: str, delta: DeltaTable) -> None:
    """Refuse what delta-rs would read wrongly, and tables that do not fit their contract."""
    protocol = delta.protocol()
    features = {*(protocol.reader_features or ()), *(protocol.writer_features or ())}
    strange = sorted(str(f) for f in features if str(f) not in _FEATURES)
    mapping = delta.metadata().configuration.get("delta.columnMapping.mode", "none")
    if mapping not in ("none", ""):
        strange.append(f"columnMapping ({mapping})")
    if strange:
        raise UnsupportedTable(
            f"{table.name} at {path} uses Delta features we cannot honour: {', '.join(strange)}. "
            "Reading it would be silently wrong. Write the table anew without them "
            "(`acktrail run --rebuild` makes silver and gold again from bronze)."
        )
    found: pa.Schema = pa.schema(delta.schema().to_arrow())  # type: ignore[arg-type]
    for field in found:
        if field.name not in table.names:
            raise ContractError(
                f"{table.name} at {path} has a column {field.name} that the contract does not "
                "know: it was written by a newer acktrail. Upgrade this one."
            )
        wanted = schema(table).field(field.name).type
        if not _same_type(field.type, wanted):
            raise ContractError(
                f"{table.name}.{field.name} at {path} is {field.type}, the contract says {wanted}. "
                "Move the table away and run again: silver and gold are rebuilt from bronze."
            )


def _same_type(found: pa.DataType, wanted: pa.DataType) -> bool:
    if pa.types.is_list(wanted) or pa.types.is_large_list(wanted):
        return bool(
            (pa.types.is_list(found) or pa.types.is_large_list(found))
            and _same_type(found.value_type, wanted.value_type)
        )
    if pa.types.is_map(wanted):
        return bool(pa.types.is_map(found))
    plain = {
        pa.large_string(): pa.string(),
        pa.string_view(): pa.string(),
        pa.large_binary(): pa.binary(),
        pa.binary_view(): pa.binary(),
    }
    return bool(plain.get(found, found) == wanted)


def _refuse_other_writer(table: Table) -> None:
    if table.writer != "delta-rs":
        raise ContractError(
            f"{table.name} is written by Spark alone; a second engine would lose commits."
        )


def _back_off(attempt: int) -> None:
    time.sleep(random.uniform(0.01, min(1.0, 0.02 * 2**attempt)))
