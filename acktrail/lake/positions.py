"""How far each source has been read: Delta `txn` actions, in the same commit as the rows."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

from deltalake import DeltaTable

from acktrail.contracts import Table
from acktrail.errors import PositionConflict


@dataclass(frozen=True)
class Position:
    """One source's position: moved from *began* (None: never read before) to *reached*."""

    app_id: str
    began: int | None
    reached: int


@dataclass(frozen=True)
class Standing:
    """Where every source stands, in one version of a table; None: the table does not exist."""

    delta: DeltaTable | None

    def of(self, app_id: str) -> int | None:
        """Where *app_id* stands; None where it has not been read. 0 is a position."""
        version = None if self.delta is None else self.delta.transaction_version(app_id)
        return None if version is None else int(version)


def require_positions(table: Table, delta: DeltaTable, positions: Iterable[Position]) -> None:
    """PositionConflict where one does not stand where its batch began."""
    standing = Standing(delta)
    for p in positions:
        found = standing.of(p.app_id)
        if found != p.began:
            raise PositionConflict(
                f"{table.name}: the source {p.app_id} is at {found}, but this batch began at "
                f"{p.began}. Another agent reads the same source: stop one of them. "
                "Nothing was written."
            )
