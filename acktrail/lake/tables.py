"""All tables under one URI: append with positions, read, and what jobs need to know."""

from __future__ import annotations

import random
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pyarrow as pa
from deltalake import CommitProperties, DeltaTable, Schema, Transaction
from deltalake.exceptions import CommitFailedError, DeltaError, TableNotFoundError
from deltalake.transaction import AddAction

from acktrail.contracts import TABLES, Table
from acktrail.contracts.arrow import conform, schema
from acktrail.crashpoints import crash_point
from acktrail.errors import ConfigError, LakeBusy, LakeDamaged
from acktrail.lake.changes import AddedFiles, UnreadFiles, Values, added_since, unread_since
from acktrail.lake.damage import (
    check_entry,
    commit_seal,
    explained,
    first_to_check,
    is_left_behind,
    refuse_damaged_log,
)
from acktrail.lake.data_files import write_files
from acktrail.lake.entries import actions_of, noted
from acktrail.lake.guard import (
    columns_to_add,
    guard,
    outdated_columns,
    refuse_other_writer,
    refuse_outdated,
)
from acktrail.lake.positions import Position, Standing, require_positions

if TYPE_CHECKING:
    from acktrail.lake.migration import Convert

ATTEMPTS = 40
"""How often a commit is tried against other writers before LakeBusy."""
CHECKPOINT_EVERY = 20
"""Commits between checkpoints: every commit reads the log back to the last one."""


@dataclass(frozen=True)
class Change:
    """What a commit does beside adding files."""

    positions: Sequence[Position] = ()
    said: Mapping[str, str] = field(default_factory=dict)
    """Written beside the commit."""
    replaced: Sequence[tuple[str, str, str]] | None = None
    """Conditions on partitions whose files go (column, operator, text); empty: all, None: none."""


@dataclass(frozen=True)
class Note:
    """What a job's commit says beside its rows."""

    version: int
    """The version it made."""
    consumed: dict[str, int]
    """Table to the version that was read."""


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
        refuse_other_writer(table)
        fitting = conform(table, rows)
        if not fitting.num_rows and not positions:
            return self.version(table) or 0
        change = Change(positions, {"note": note} if note else {})
        return self._commit(
            table,
            lambda: write_files(table, fitting, self.path(table), self.storage_options),
            change,
        )

    def put(self, table: Table, files: Sequence[AddAction], change: Change) -> int:
        """Make *files*, already written below the table, part of it; the new version.

        PositionConflict as in `append`.
        """
        refuse_other_writer(table)
        return self._commit(table, lambda: list(files), change)

    def _commit(self, table: Table, write: Callable[[], list[AddAction]], change: Change) -> int:
        files: list[AddAction] | None = None
        for attempt in range(ATTEMPTS):
            delta = self.create(table)
            require_positions(table, delta, change.positions)
            # A crash before the commit leaves at worst files that no commit names; after it, rows
            # and positions are both there.
            try:
                self._add_columns(table, delta)
                if files is None:
                    files = write()
                    crash_point("lake.files_written")
                return _commit(table, delta, files, change)
            except CommitFailedError:
                _back_off(attempt)
                continue
            except (DeltaError, OSError) as error:
                raise explained(table, self.path(table), error) from error
        raise LakeBusy(
            f"{table.name}: {ATTEMPTS} commits in a row were overtaken by other writers. "
            "Nothing was written; flush less often (`agent.flush_s`) or run fewer agents."
        )

    def position(self, table: Table, app_id: str) -> int | None:
        """How far *app_id* has been read into *table*; None where it never was."""
        return self.standing(table).of(app_id)

    def positions(self, table: Table, app_ids: Sequence[str]) -> dict[str, int | None]:
        """As *position*, for many at once."""
        if not app_ids:
            return {}
        standing = self.standing(table)
        return {app_id: standing.of(app_id) for app_id in app_ids}

    def standing(self, table: Table) -> Standing:
        """Where every source stands now: one look at the log, however many are asked for."""
        return Standing(self.open(table))

    # -- reading and control --------------------------------------------------------------------

    def open(self, table: Table) -> DeltaTable | None:
        """The table, guarded and fitting its contract; None where it does not exist yet.

        Columns of a former kind fit too: only what reads their rows refuses them.
        """
        path = self.path(table)
        try:
            if not self._is_table(table, path):
                return None
            delta = DeltaTable(path, storage_options=self.storage_options or None)
            guard(table, path, delta)
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
            actions = actions_of(table, path, version)
            if actions is not None or not is_left_behind(path, version):
                check_entry(table, path, version, newest, actions)
            self._checked[table.name] = version

    def exists(self, table: Table) -> bool:
        """Whether the table has been written."""
        return self.open(table) is not None

    def is_empty(self) -> bool:
        """Whether no evidence was ever written here, nor anything made of it: no lake, so far.

        Tables of runs do not count: a check of a lake that is not there writes some.
        """
        return not any(self.is_made(table) for table in TABLES if table.layer != "runs")

    def is_made(self, table: Table) -> bool:
        """Whether the table was ever written, without reading its log."""
        try:
            return self._is_table(table, self.path(table))
        except (DeltaError, OSError) as error:
            raise explained(table, self.path(table), error) from error

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
        from acktrail.lake.rows import dataset  # an agent that reads no rows loads nothing for it

        delta = self.open(table)
        wanted = list(columns) if columns is not None else list(table.names)
        if delta is None:
            return schema(table).empty_table().select(wanted)
        refuse_outdated(table, self.path(table), delta, wanted)
        try:
            data = dataset(delta, self.path(table), self.storage_options)
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

    def outdated(self, table: Table) -> list[str]:
        """Columns that an earlier version wrote as another kind; none if not written yet."""
        if not any(column.former for column in table.columns):
            return []
        delta = self.open(table)
        return [] if delta is None else outdated_columns(table, delta)

    def migrate(self, table: Table, converters: Mapping[str, Convert]) -> bool:
        """Rewrite outdated columns of *table* by *converters*, in one commit; whether any were.

        Whoever commits in between wins: the table is then looked at again.
        """
        for attempt in range(ATTEMPTS):
            outdated = self.outdated(table)
            delta = self.open(table)
            if not outdated or delta is None:
                return False
            from acktrail.lake.migration import rewrite

            try:
                rewrite(
                    table,
                    delta,
                    self.path(table),
                    self.storage_options,
                    {name: converters[name] for name in outdated},
                )
            except CommitFailedError:
                _back_off(attempt)
                continue
            except (DeltaError, OSError) as error:
                raise explained(table, self.path(table), error) from error
            return True
        raise LakeBusy(f"{table.name}: other writers kept committing; not migrated. Run again.")

    def added(self, table: Table, since: int | None) -> AddedFiles | None:
        """What was added after version *since* (None: everything); None if not written yet."""
        delta = self.open(table)
        if delta is None:
            return None
        path = self.path(table)
        return added_since(delta, since, lambda version: actions_of(table, path, version))

    def unread(self, table: Table, since: int | None) -> UnreadFiles | None:
        """What came to *table* after version *since* (None: everything); None if nothing did."""
        newest = self.version(table)
        if newest is None or newest == since:
            return None
        path = self.path(table)
        return unread_since(newest, since, lambda version: actions_of(table, path, version))

    def files(self, table: Table) -> Mapping[str, Values]:
        """Path to partition values of every file in the table now; none if not written yet."""
        whole = self.added(table, None)
        return {} if whole is None else whole.standing

    def consumed(self, table: Table, job: str) -> dict[str, int] | None:
        """Input versions the last run of *job* has consumed; None where unknown: rebuild."""
        noted = self.note(table, job)
        return None if noted is None else noted.consumed

    def note(self, table: Table, job: str) -> Note | None:
        """What the last commit of *job* to *table* says beside its rows; None where unknown."""
        delta = self.open(table)
        if delta is None:
            return None
        for limit in (20, None):  # nearly always among the newest commits
            for commit in delta.history(limit):
                said = noted(commit.get("userMetadata"))
                if said.get("job") == job:
                    consumed = {str(k): int(v) for k, v in said.get("consumed", {}).items()}
                    return Note(int(commit["version"]), consumed)
        return None

    def _add_columns(self, table: Table, delta: DeltaTable) -> None:
        """A contract that grew a column migrates the table it finds."""
        new = columns_to_add(table, delta)
        if new:
            fields = Schema.from_arrow(pa.schema(new)).fields
            seal = commit_seal(int(delta.version()), positions=0, files=0)
            delta.alter.add_columns(
                fields,
                commit_properties=CommitProperties(custom_metadata=seal, max_commit_retries=0),
            )

    def create(self, table: Table) -> DeltaTable:
        """The table, declared first if it is not there: a version 0 without rows."""
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
                configuration=_properties(table),
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


def _properties(table: Table) -> dict[str, str | None]:
    properties: dict[str, str | None] = {
        "delta.checkpointInterval": str(CHECKPOINT_EVERY),
        # How long checkpoints name files that are no longer part of the table. `lake vacuum` finds
        # them without, and a table written every few seconds would carry a week of them along.
        "delta.deletedFileRetentionDuration": "interval 1 days",
    }
    if table.layer == "silver":
        # Its rows are found by partition: bounds of every column would cost a third of a write.
        properties["delta.dataSkippingNumIndexedCols"] = "0"
    return properties


def _commit(table: Table, delta: DeltaTable, files: list[AddAction], change: Change) -> int:
    """Make *files* and *change* part of the table, or neither; the version that has them.

    CommitFailedError: another writer has made that version.
    """
    read = int(delta.version())
    moved = [Transaction(p.app_id, p.reached) for p in change.positions]
    delta.create_write_transaction(
        list(files),
        mode="append" if change.replaced is None else "overwrite",
        schema=schema(table),
        partition_by=list(table.partition),
        partition_filters=list(change.replaced or ()) or None,
        commit_properties=CommitProperties(
            app_transactions=moved or None,
            custom_metadata={**commit_seal(read, len(moved), len(files)), **change.said},
            max_commit_retries=0,
        ),
    )
    return read + 1


def _back_off(attempt: int) -> None:
    time.sleep(random.uniform(0.01, min(1.0, 0.02 * 2**attempt)))
