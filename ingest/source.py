"""The contract of every source: open, poll batches, and let the lake remember the position.

A source never writes. It hands over batches; the loop commits each batch's rows and positions in
one Delta commit. After a crash the source is opened again and asks the lake where it was.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from typing import Protocol

import pyarrow as pa

from acktrail.contracts import Table
from acktrail.lake import Lake, Position


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
