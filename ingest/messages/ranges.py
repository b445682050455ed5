"""What groups have read: ranges that a file gives, and positions that follow from its messages."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from acktrail.audit.wire import Report
from acktrail.contracts.vocabulary import Tier
from ingest.messages.columns import Columns
from ingest.recorded import name_hash


def range_reports(
    columns: Columns, reporter: str, first_row: int, reported_ms: int
) -> Iterator[Report]:
    """The `consumed` reports of a piece whose first row has the number *first_row* in its file.

    A row of tier `consumed` is one. Of messages delivered to a group, the lowest and the highest
    offset are: they prove where the group was, and nothing of what lies between.
    """
    given = np.flatnonzero(columns.has_text("tier", Tier.CONSUMED))
    for row in given.tolist():
        member = columns.text("member", row)
        bounds = int(columns.numbers["first_offset"][row]), int(columns.numbers["last_offset"][row])
        who = name_hash(reporter, member) if member else reporter
        yield _report(columns, row, bounds, who, first_row + row, reported_ms)
    for row in _outermost(columns):
        offset = int(columns.numbers["offset"][row])
        yield _report(columns, row, (offset, offset), reporter, first_row + row, reported_ms)


def _outermost(columns: Columns) -> list[int]:
    """Of each group and partition, the delivered rows with the lowest and the highest offset."""
    numbers = columns.numbers
    placed = columns.has_text("tier", Tier.DELIVERED) & ~columns.has_text("group", "")
    rows = np.flatnonzero(placed & (numbers["partition"] >= 0) & (numbers["offset"] >= 0))
    if not rows.size:
        return []
    place = np.stack(
        [
            *(columns.texts[name][1][rows] for name in ("topic", "topic_id", "group")),
            numbers["partition"][rows],
        ]
    )
    order = np.lexsort((numbers["offset"][rows], *place))
    changes = np.any(np.diff(place[:, order], axis=1), axis=0)
    firsts = np.concatenate(([0], np.flatnonzero(changes) + 1))
    lasts = np.concatenate((np.flatnonzero(changes), [rows.size - 1]))
    return sorted({*rows[order[firsts]].tolist(), *rows[order[lasts]].tolist()})


def _report(
    columns: Columns, row: int, bounds: tuple[int, int], reporter: str, part: int, reported_ms: int
) -> Report:
    assignment = columns.number("assignment", row)
    at_ms = int(columns.time_ms[row])
    return Report(
        reporter=reporter,
        tier=Tier.CONSUMED,
        topic=columns.text("topic", row),
        topic_id=columns.text("topic_id", row) or None,
        number=part,
        reported_ms=reported_ms,
        partition=int(columns.numbers["partition"][row]),
        group=columns.text("group", row),
        part=part,
        first_offset=bounds[0],
        last_offset=bounds[1],
        records=bounds[1] - bounds[0] + 1,
        # Without a number a range is on its own: what lies between two was not surely jumped over.
        assignment=assignment if columns.text("tier", row) == Tier.CONSUMED else None,
        began_ms=at_ms,
        ended_ms=at_ms,
    )
