"""All tables under one URI: append with positions, read, and what jobs need to know."""

from __future__ import annotations

import contextlib
import random
import threading
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pyarrow as pa
from deltalake import CommitProperties, DeltaTable, Schema
from deltalake.exceptions import CommitFailedError, DeltaError, TableNotFoundError
from deltalake.transaction import AddAction

from acktrail.contracts import TABLES, Table
from acktrail.contracts.arrow import conform, schema
from acktrail.contracts.bronze import AUDIT_REPORTS
from acktrail.crashpoints import crash_point
from acktrail.errors import AcktrailError, ConfigError, LakeBusy, LakeDamaged
from acktrail.lake.changes import (
    AddedFiles,
    UnreadFiles,
    added_since,
    unread_since,
)
from acktrail.lake.commit import Change, commit, is_ours
from acktrail.lake.damage import (
    check_entry,
    commit_seal,
    explained,
    first_to_check,
    is_left_behind,
    refuse_damaged_log,
)
from acktrail.lake.data_files import has_bounds, write_files
from acktrail.lake.entries import Note, actions_of, entries_of, last_note
from acktrail.lake.guard import (
    columns_to_add,
    guard,
    outdated_columns,
)
from acktrail.lake.positions import Position, Standing, require_positions
from acktrail.lake.receipts import ReceivedRows, has_receipts, newest_receipt
from acktrail.lake.replacement import Values
from acktrail.lake.safe_commits import require_safe_commits
from acktrail.lake.store import Store
from acktrail.lake.table_snapshots import Snapshot, Snapshots

if TYPE_CHECKING:
    from acktrail.lake.migration import Convert

ATTEMPTS = 40
"""How often a commit is tried against other writers before LakeBusy."""
BOUNDED_COLUMNS = 32
Adds = Callable[[DeltaTable], tuple[Sequence[AddAction], Sequence[Position]]]
"""The files that a commit on top of this version adds, and the receipts it moves."""
CHECKPOINT_EVERY = 20
"""Commits between checkpoints: every commit reads the log back to the last one."""


class Lake:
    """All tables under one URI (a directory or an object store)."""

    def __init__(self, uri: str | Path, storage_options: Mapping[str, str] | None = None) -> None:
        if not str(uri).rstrip("/"):
            raise ConfigError("The lake's URI is empty. Give --lake URI, or set `lake.uri`.")
        self.store = Store(str(uri), dict(storage_options or {}))
        self.uri = self.store.path
        self._checked: dict[str, int] = {}
        self._snapshots = Snapshots()
        self._held = threading.local()

    def path(self, table: Table) -> str:
        """Where *table* lives: layer/name under the lake."""
        return self.at(table).path

    def at(self, table: Table) -> Store:
        """As *path*, with what it takes to use that place."""
        return self.store.at(table.layer, table.name)

    # -- agents ---------------------------------------------------------------------------------

    def append(
        self, table: Table, rows: pa.Table, positions: Sequence[Position] = (), note: str = ""
    ) -> int:
        """Append *rows* and move *positions* in one atomic commit; the new version.

        PositionConflict when another writer has moved one of the positions: nothing is written.
        """
        fitting = conform(table, rows)
        if not fitting.num_rows and not positions:
            return self.version(table) or 0
        change = Change(positions, {"note": note} if note else {})
        return self._commit(table, self._writing(table, fitting), change)

    def put(self, table: Table, files: Sequence[AddAction], change: Change) -> int:
        """Make *files*, already written below the table, part of it; the new version.

        PositionConflict as in `append`; Overtaken where another writer has changed what the files
        replace.
        """
        return self._commit(table, lambda _: (files, ()), change)

    def _writing(self, table: Table, rows: pa.Table) -> Adds:
        """How *rows* are written, once; where they have receipts, for each version again."""
        store = self.at(table)

        def write(fitting: pa.Table) -> list[AddAction]:
            files = write_files(table, fitting, store)
            crash_point("lake.files_written")
            return files

        if has_receipts(table):
            return ReceivedRows(rows, store, write).on
        written: list[list[AddAction]] = []

        def once(_: DeltaTable) -> tuple[Sequence[AddAction], Sequence[Position]]:
            if not written:
                written.append(write(rows))
            return written[0], ()

        return once

    def _commit(self, table: Table, adds: Adds, change: Change) -> int:
        store = self.at(table)
        for attempt in range(ATTEMPTS):
            delta = self.create(table)
            require_positions(table, delta, change.positions)
            # A crash before the commit leaves at worst files that no commit names; after it, rows
            # and positions are both there.
            try:
                self._add_columns(table, delta)
                files, receipts = adds(delta)
                whole = replace(change, positions=(*change.positions, *receipts))
                return commit(table, delta, files, whole, partial(actions_of, table, store))
            except CommitFailedError:
                if self._is_committed(table, delta, change):
                    return int(delta.version()) + 1
                _back_off(attempt)
                continue
            except (DeltaError, OSError) as error:
                if self._is_committed(table, delta, change):
                    return int(delta.version()) + 1
                raise explained(table, store.path, error) from error
        raise LakeBusy(
            f"{table.name}: {ATTEMPTS} commits in a row were overtaken by other writers. "
            "Nothing was written; flush less often (`agent.flush_s`) or run fewer agents."
        )

    def _is_committed(self, table: Table, delta: DeltaTable, change: Change) -> bool:
        """Whether a commit that seemed to fail was made: the store's answer may have been lost."""
        try:
            return is_ours(change, actions_of(table, self.at(table), int(delta.version()) + 1))
        except (AcktrailError, DeltaError, OSError):
            return False  # unknown: the caller reports the first error

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
        found = self.look(table)
        return Standing(None if found is None else found.delta)

    def receipt(self, cluster: str) -> int:
        """The newest receipt of the reports of *cluster*, epoch milliseconds; 0: none so far."""
        found = self.look(AUDIT_REPORTS)
        if found is None:
            return 0
        return newest_receipt(found, self.at(AUDIT_REPORTS), cluster) or 0

    # -- reading and control --------------------------------------------------------------------

    def open(self, table: Table) -> DeltaTable | None:
        """The table, guarded and fitting its contract; None where it does not exist yet.

        Columns of a former kind fit too: only what reads their rows refuses them.
        """
        store = self.at(table)
        try:
            delta = self._opened(table, store)
            if delta is None:
                return None
            guard(table, store.path, delta)
            self._check_log(table, store, int(delta.version()))
        except TableNotFoundError:
            return None
        except (DeltaError, OSError) as error:
            raise explained(table, store.path, error) from error
        return delta

    def look(self, table: Table) -> Snapshot | None:
        """As *open*, for looking only: loaded again only after somebody has committed."""
        held: dict[str, Snapshot | None] = getattr(self._held, "snapshots", {})
        if table.name in held:
            return held[table.name]
        store = self.at(table)
        found = self._snapshots.newest(table.name, store)
        if found is None and (delta := self.open(table)) is not None:
            found = self._snapshots.keep(table.name, store, delta)
        held[table.name] = found
        return found

    @contextlib.contextmanager
    def one_look(self) -> Iterator[None]:
        """Within it, this thread sees every table as it was at its first look.

        So the answers of one page agree with each other, and the store is asked once for each
        table. Not for a thread that also writes.
        """
        self._held.snapshots = {}
        try:
            yield
        finally:
            del self._held.snapshots

    def _opened(self, table: Table, store: Store) -> DeltaTable | None:
        if store.is_remote:  # one request less, and other threads go on while it is waited for
            with contextlib.suppress(TableNotFoundError):
                return DeltaTable(store.path, storage_options=store.delta_options)
        if not self._is_table(table, store):
            return None
        return DeltaTable(store.path, storage_options=store.delta_options)

    def _is_table(self, table: Table, store: Store) -> bool:
        """Whether the table was made; what another writer is just making is waited for."""
        for last in (False, False, False, True):
            if DeltaTable.is_deltatable(store.path, store.delta_options):
                return True
            try:
                refuse_damaged_log(table, store)
            except LakeDamaged:
                if last:
                    raise
                time.sleep(0.2)
            else:
                return False
        return False

    def _check_log(self, table: Table, store: Store, newest: int) -> None:
        """Check entries of the log not checked before: LakeDamaged names the broken one."""
        first = self._checked.get(table.name, -1) + 1
        if not first:
            first = first_to_check(store)
        for version, actions in entries_of(table, store, range(first, newest + 1)):
            if actions is not None or not is_left_behind(store, version):
                check_entry(table, store, version, newest, actions)
            self._checked[table.name] = version

    def exists(self, table: Table) -> bool:
        """Whether the table has been written."""
        return self.look(table) is not None

    def is_empty(self) -> bool:
        """Whether no evidence was ever written here, nor anything made of it: no lake, so far.

        Tables of runs do not count: a check of a lake that is not there writes some.
        """
        return not any(self.is_made(table) for table in TABLES if table.layer != "runs")

    def is_made(self, table: Table) -> bool:
        """Whether the table was ever written, without reading its log."""
        try:
            return self._is_table(table, self.at(table))
        except (DeltaError, OSError) as error:
            raise explained(table, self.path(table), error) from error

    def version(self, table: Table) -> int | None:
        """The table's newest version; None where it does not exist yet."""
        found = self.look(table)
        return None if found is None else found.version

    def read(
        self,
        table: Table,
        where: Any = None,
        columns: Sequence[str] | None = None,
    ) -> pa.Table:
        """Rows of *table*, empty if never written; *where* is a pyarrow.dataset expression."""
        from acktrail.lake.rows import read_rows  # an agent reads none, and loads nothing for it

        seen = self.look(table)
        if seen is None:
            wanted = list(columns) if columns is not None else list(table.names)
            return schema(table).empty_table().select(wanted)
        return read_rows(table, self.at(table), seen, where, columns)

    def batches(self, table: Table, where: Any, columns: Sequence[str]) -> Iterator[pa.Table]:
        """As *read*, in parts of bounded size; nothing where the table was never written."""
        from acktrail.lake.rows import read_batches

        seen = self.look(table)
        if seen is not None:
            yield from read_batches(table, self.at(table), seen, where, columns)

    def outdated(self, table: Table) -> list[str]:
        """Columns that an earlier version wrote as another kind; none if not written yet."""
        if not any(column.former for column in table.columns):
            return []
        found = self.look(table)
        return [] if found is None else outdated_columns(table, found.delta)

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

            require_safe_commits(self.store)
            try:
                rewrite(
                    table,
                    delta,
                    self.at(table),
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
        found = self.look(table)
        return None if found is None else self.added_to(table, found, since)

    def added_to(self, table: Table, seen: Snapshot, since: int | None) -> AddedFiles:
        """As *added*, up to the version that was *seen*."""
        store = self.at(table)
        return added_since(seen, since, lambda version: actions_of(table, store, version))

    def unread(self, table: Table, since: int | None) -> UnreadFiles | None:
        """What came to *table* after version *since* (None: everything); None if nothing did."""
        seen = self.look(table)
        if seen is None or seen.version == since:
            return None
        if ("unread", since) not in seen.told:
            entry = partial(actions_of, table, self.at(table))
            seen.told["unread", since] = unread_since(seen.version, since, entry)
        found: UnreadFiles | None = seen.told["unread", since]
        return found

    def files(self, table: Table) -> Mapping[str, Values]:
        """Path to partition values of every file in the table now; none if not written yet."""
        found = self.look(table)
        return {} if found is None else found.files

    def look_at(self, table: Table, version: int) -> Snapshot:
        """The table as it was at *version*."""
        store = self.at(table)
        try:
            return Snapshot.of(DeltaTable(store.path, version, storage_options=store.delta_options))
        except (DeltaError, OSError) as error:
            raise explained(table, store.path, error) from error

    def consumed(self, table: Table, job: str) -> dict[str, int] | None:
        """Input versions the last run of *job* has consumed; None where unknown: rebuild."""
        noted = self.note(table, job)
        return None if noted is None else noted.consumed

    def note(self, table: Table, job: str) -> Note | None:
        """What the last commit of *job* to *table* says beside its rows; None where unknown."""
        seen = self.look(table)
        if seen is None:
            return None
        if ("note", job) not in seen.told:
            entry = partial(actions_of, table, self.at(table))
            seen.told["note", job] = last_note(seen.version, job, entry)
        found: Note | None = seen.told["note", job]
        return found

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
        require_safe_commits(self.store)
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
                storage_options=self.store.delta_options,
                # Tried again, a lost race would declare the table a second time, as version 1.
                commit_properties=CommitProperties(max_commit_retries=0),
            )
        except (DeltaError, OSError) as error:
            # Two agents may create at once: whoever comes second opens what the first made.
            if not DeltaTable.is_deltatable(self.path(table), self.store.delta_options):
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
    if not has_bounds(table):
        properties["delta.dataSkippingNumIndexedCols"] = "0"
    elif len(table.columns) > BOUNDED_COLUMNS:
        # Readers take bounds of the first 32 columns only, unless the table says more.
        properties["delta.dataSkippingNumIndexedCols"] = "-1"
    return properties


def _back_off(attempt: int) -> None:
    time.sleep(random.uniform(0.01, min(1.0, 0.02 * 2**attempt)))
