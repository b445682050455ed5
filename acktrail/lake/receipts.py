"""Receipts: the order in which the reports of a cluster reached the lake.

`read_at` of a report is its receipt. Clocks of two agents differ, so a commit moves receipts that
are not after the newest one of their cluster to just after it. The newest one is a Delta `txn`
action of the table, moved in the same commit: a writer that loses a race finds another one there,
and stamps its rows again. Receipts are compared in milliseconds.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc
from deltalake import DeltaTable
from deltalake.transaction import AddAction

from acktrail.contracts import Table
from acktrail.contracts.bronze import AUDIT_REPORTS
from acktrail.lake.positions import Position, Standing
from acktrail.lake.store import Store
from acktrail.lake.table_snapshots import Snapshot

Write = Callable[[pa.Table], list[AddAction]]
_KIND = pa.timestamp("us", tz="UTC")


def has_receipts(table: Table) -> bool:
    """Whether the rows of *table* are ordered by receipt."""
    return table.name == AUDIT_REPORTS.name


def receipt_id(cluster: str) -> str:
    """The app id under which the newest receipt of *cluster* is kept."""
    return f"receipt/{cluster}"


def newest_receipt(seen: Snapshot, store: Store, cluster: str) -> int | None:
    """The newest receipt of *cluster* in `audit_reports`, epoch milliseconds; None: no rows.

    A table from before receipts were kept has the newest `read_at` instead.
    """
    kept = Standing(seen.delta).of(receipt_id(cluster))
    if kept is not None or not seen.actions.num_rows:
        return kept
    import pyarrow.dataset as ds

    from acktrail.lake.rows import read_rows  # once in the life of a cluster

    where = ds.field("cluster") == cluster
    times = read_rows(AUDIT_REPORTS, store, seen, where, ["read_at"]).column("read_at")
    return _newest(times)


class ReceivedRows:
    """Rows on their way into the lake, stamped for the version they are committed on."""

    def __init__(self, rows: pa.Table, store: Store, write: Write) -> None:
        self._rows = rows
        self._store = store
        self._write = write
        self._clusters = [str(name) for name in pc.unique(rows.column("cluster")).to_pylist()]
        self._stamped: pa.Table | None = None
        self._files: list[AddAction] = []

    def on(self, delta: DeltaTable) -> tuple[list[AddAction], list[Position]]:
        """The files to commit on top of *delta*, and the receipts that this commit moves.

        Files are written again where another writer's commit has changed a receipt; `acktrail lake
        vacuum` removes those that nobody committed.
        """
        seen = Snapshot.of(delta)
        floors = {c: newest_receipt(seen, self._store, c) for c in self._clusters}
        stamped = stamp(self._rows, floors)
        if self._stamped is None or not stamped.equals(self._stamped):
            self._files, self._stamped = self._write(stamped), stamped
        reached = {c: _newest(_of(stamped, c)) for c in self._clusters}
        moved = [Position(receipt_id(c), floors[c], r) for c, r in reached.items() if r is not None]
        return self._files, moved


def stamp(rows: pa.Table, floors: Mapping[str, int | None]) -> pa.Table:
    """*rows* with receipts after the newest one of their cluster; those that are stay."""
    column: Any = rows.column("read_at").cast(_KIND)
    for cluster, floor in floors.items():
        if floor is None:
            continue
        first = pa.scalar((floor + 1) * 1000, pa.int64()).cast(_KIND)
        early: Any = pc.less(column, first)
        column = pc.if_else(pc.and_(_is(rows, cluster), early), first, column)
    at = rows.schema.get_field_index("read_at")
    return rows.set_column(at, rows.schema.field(at), column.cast(rows.schema.field(at).type))


def _of(rows: pa.Table, cluster: str) -> Any:
    return rows.filter(_is(rows, cluster)).column("read_at")


def _is(rows: pa.Table, cluster: str) -> Any:
    column: Any = rows.column("cluster")
    return pc.equal(column, pa.scalar(cluster))


def _newest(times: Any) -> int | None:
    newest = pc.max(times.cast(_KIND).cast(pa.int64())).as_py() if len(times) else None
    return None if newest is None else int(newest) // 1000
