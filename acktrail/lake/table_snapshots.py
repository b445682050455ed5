"""Tables as they were last looked at: as long as nobody commits, a second look loads nothing.

A run asks for the same few tables a hundred times. Loading one replays its log, and listing it
reads every file name, so both are kept until the log has grown. Only for looking: a commit changes
the object it is made with, and loads one of its own.
"""

from __future__ import annotations

import threading
from collections.abc import Mapping
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any

import pyarrow as pa
from deltalake import DeltaTable

from acktrail.lake.changes import partition_texts, rows_by_file
from acktrail.lake.entries import entry_name
from acktrail.lake.replacement import Values
from acktrail.lake.store import Store


@dataclass(frozen=True)
class Snapshot:
    """One version of a table."""

    delta: DeltaTable
    version: int
    told: dict[Any, Any] = field(default_factory=dict, compare=False)
    """What its log was asked before, with the answer: the log up to a version does not change."""

    @classmethod
    def of(cls, delta: DeltaTable) -> Snapshot:
        """The version that *delta* was loaded at."""
        return cls(delta, int(delta.version()))

    @cached_property
    def actions(self) -> pa.Table:
        """The log's entry of every file, as delta-rs lists them."""
        return pa.table(self.delta.get_add_actions(flatten=False))

    @cached_property
    def files(self) -> Mapping[str, Values]:
        """Path to partition values of every file."""
        return partition_texts(self.actions)

    @cached_property
    def row_counts(self) -> Mapping[str, int]:
        """Rows in each file, as their statistics say."""
        return rows_by_file(self.actions)

    @cached_property
    def sizes(self) -> Mapping[str, int]:
        """Bytes of each file."""
        paths, sizes = (self.actions.column(n).to_pylist() for n in ("path", "size_bytes"))
        return {str(path): int(size or 0) for path, size in zip(paths, sizes, strict=True)}


class Snapshots:
    """The newest snapshot of each table that was looked at."""

    def __init__(self) -> None:
        self._kept: dict[str, tuple[Snapshot, str]] = {}
        self._lock = threading.Lock()

    def newest(self, name: str, store: Store) -> Snapshot | None:
        """The kept snapshot of the table *name*, if it is still the newest; None: load it."""
        with self._lock:
            kept = self._kept.get(name)
        if kept is None:
            return None
        snapshot, text = kept
        try:
            # The same entry, not one of a table that was made again; and none after it.
            same = store.read_text(entry_name(snapshot.version)) == text
            if same and not store.exists(entry_name(snapshot.version + 1)):
                return snapshot
        except OSError:
            pass
        with self._lock:
            self._kept.pop(name, None)
        return None

    def keep(self, name: str, store: Store, delta: DeltaTable) -> Snapshot:
        """The snapshot of a table that was loaded just now."""
        snapshot = Snapshot.of(delta)
        try:
            text = store.read_text(entry_name(snapshot.version))
        except OSError:  # the log was shortened up to its checkpoint: not kept, so loaded again
            return snapshot
        with self._lock:
            self._kept[name] = (snapshot, text)
        return snapshot
