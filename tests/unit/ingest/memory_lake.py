"""A lake in memory that keeps the promise of `Lake.append`: rows and positions, or neither."""

from __future__ import annotations

import time
from collections.abc import Sequence
from typing import Any

import pyarrow as pa

from acktrail.contracts import Table
from acktrail.errors import PositionConflict
from acktrail.lake import Position


class MemoryLake:
    def __init__(self) -> None:
        self.rows: list[dict[str, Any]] = []
        self.moved: dict[str, int] = {}
        self.notes: list[str] = []

    def append(
        self, _table: Table, rows: pa.Table, positions: Sequence[Position] = (), note: str = ""
    ) -> int:
        for p in positions:
            if self.moved.get(p.app_id) != p.began:
                raise PositionConflict(f"{p.app_id}: {self.moved.get(p.app_id)} is not {p.began}")
        self.rows.extend(rows.to_pylist())
        self.moved.update((p.app_id, p.reached) for p in positions)
        self.notes.append(note)
        return len(self.notes)

    def open(self, _table: Table) -> MemoryLake:
        return self

    def history(self, limit: int) -> list[dict[str, Any]]:
        newest = reversed(self.notes[-limit:])
        return [{"note": note, "timestamp": time.time() * 1000} for note in newest]

    def position(self, _table: Table, app_id: str) -> int | None:
        return self.moved.get(app_id)

    def standing(self, _table: Table) -> MemoryStanding:
        return MemoryStanding(dict(self.moved))

    def positions(self, _table: Table, app_ids: Sequence[str]) -> dict[str, int | None]:
        return {a: self.moved.get(a) for a in app_ids}


class MemoryStanding:
    """Where sources stood when it was asked for, as a version of a table says it."""

    def __init__(self, moved: dict[str, int]) -> None:
        self._moved = moved

    def of(self, app_id: str) -> int | None:
        return self._moved.get(app_id)
