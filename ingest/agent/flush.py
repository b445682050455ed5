"""Batches gathered into one commit per table: a flush."""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass, field

import pyarrow as pa

from acktrail.contracts import Table
from acktrail.lake import Position
from ingest.source import Batch


@dataclass
class Flush:
    """What the next commit to one table will hold."""

    table: Table
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


class FlushBuffer:
    """Everything polled and not yet committed."""

    def __init__(self) -> None:
        self._flushes: dict[str, Flush] = {}
        self.since: float | None = None
        """When the oldest batch came."""

    def add(self, batch: Batch, now: float) -> None:
        """Keep *batch* for the next flush of its table."""
        self._flushes.setdefault(batch.table.name, Flush(batch.table)).add(batch)
        if self.since is None:
            self.since = now

    @property
    def size(self) -> int:
        """Bytes of all rows."""
        return sum(flush.size for flush in self._flushes.values())

    def flushes(self) -> list[Flush]:
        """One per table, in the order their first batches came."""
        return list(self._flushes.values())

    def done(self, flush: Flush) -> None:
        """*flush* is in the lake."""
        del self._flushes[flush.table.name]
        if not self._flushes:
            self.since = None
