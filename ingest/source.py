"""The contract of every source: open, poll batches, and let the lake remember the position.

A source never writes. It hands over batches; the loop commits each batch's rows and positions in
one Delta commit. After a crash the source is opened again and asks the lake where it was.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from typing import Protocol

import pyarrow as pa

from acktrail.contracts import Table
from acktrail.lake import Lake, Position

NOT_EVIDENCE = "not_evidence"
"""Dropped: a log line in which no pattern's words stand."""


@dataclass(frozen=True)
class Batch:
    """Rows for one table, and how far each source position is moved by them.

    received = rows written + everything in *dropped*: the loop counts, and a test asserts it.
    """

    table: Table
    rows: pa.Table
    positions: tuple[Position, ...]
    received: int
    dropped: Mapping[str, int] = field(default_factory=dict)


@dataclass
class Flush:
    """What the next commit to one table will hold."""

    table: Table
    since: float = 0.0
    """When its first batch came."""
    batches: list[Batch] = field(default_factory=list)
    rows: list[pa.Table] = field(default_factory=list)
    size: int = 0
    received: int = 0
    dropped: Counter[str] = field(default_factory=Counter)
    _moves: dict[str, Position] = field(default_factory=dict)

    def add(self, batch: Batch) -> None:
        """One more batch; its positions go on where those before it ended."""
        self.batches.append(batch)
        if batch.rows.num_rows:
            self.rows.append(batch.rows)
            self.size += batch.rows.nbytes
        self.received += batch.received
        self.dropped.update(batch.dropped)
        for move in batch.positions:
            before = self._moves.get(move.app_id)
            began = move.began if before is None else before.began
            self._moves[move.app_id] = Position(move.app_id, began, move.reached)

    @property
    def positions(self) -> tuple[Position, ...]:
        """From where the first batch began to where the last one ended."""
        return tuple(self._moves.values())

    def data(self) -> pa.Table:
        """All rows."""
        return pa.concat_tables(self.rows) if self.rows else self.batches[0].rows


@dataclass(frozen=True)
class Health:
    """What a source can say of itself: lag in its own unit, and notes for a person."""

    lag: float | None = None
    lag_unit: str = ""
    notes: tuple[str, ...] = ()
    position: str = ""
    """How far it has been read, in words."""
    unread: tuple[str, ...] = ()
    """What the settings name and is not there or cannot be opened: paths, topics. While one is so,
    the source may miss all of its evidence; a check fails when it stays so."""
    once_fails: bool = False
    """Whether a run with --once ends with an error while anything is unread."""


class Source(Protocol):
    """One source of evidence."""

    name: str

    def open(self, lake: Lake) -> None:
        """Learn from the lake where this source was left. May raise SourceUnavailable."""

    def poll(self, timeout_s: float) -> Iterable[Batch]:
        """What is new, in bounded batches; nothing if nothing is. May raise SourceUnavailable."""

    def committed(self, batch: Batch) -> None:
        """The batch is in the lake: forget what was kept for it."""

    def health(self) -> Health:
        """Position, lag and notes, cheap to ask; also right after open(), before any poll."""

    def close(self) -> None:
        """Let go of files and connections."""
