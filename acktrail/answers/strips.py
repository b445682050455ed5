"""Offsets of the partitions that lost some: acknowledged, cut off, lost."""

from __future__ import annotations

from dataclasses import dataclass

import pyarrow.compute as pc

from acktrail.answers.inquiry import Inquiry, both
from acktrail.answers.lost import lost_ranges
from acktrail.answers.many import grouped
from acktrail.answers.partitions import Faults
from acktrail.contracts.silver import AUDIT_BLOCKS
from acktrail.contracts.vocabulary import Tier
from acktrail.lake import Lake


@dataclass(frozen=True)
class Strip:
    """One partition."""

    cluster: str
    topic: str
    partition: int
    acked: tuple[int, int] | None
    """The lowest and the highest offset that audits have as acknowledged."""
    lost: tuple[tuple[int, int, str], ...]
    """First and last offset, and the state."""
    cuts: tuple[int, ...]
    """Offsets to which a replica's log was cut in the window."""
    count: int


def strips(lake: Lake, asked: Inquiry, faults: Faults, most: int) -> tuple[list[Strip], int]:
    """The partitions with lost offsets, those with most first; and how many are left out."""
    rows, left_out = lost_ranges(lake, asked, most)
    if not rows:
        return [], left_out
    topics = sorted({row["topic"] for row in rows})
    where = both(asked.named(AUDIT_BLOCKS), pc.field("topic").isin(topics))
    acked = both(where, pc.field("tier") == Tier.ACKED.value)
    keys = ("cluster", "topic", "partition")
    measures = [("first_offset", "min"), ("last_offset", "max")]
    known = {
        tuple(row[k] for k in keys): (row["first_offset"], row["last_offset"])
        for row in grouped(lake, AUDIT_BLOCKS, acked, keys, measures).to_pylist()
        if row["first_offset"] is not None and row["last_offset"] is not None
    }
    cuts: dict[tuple[str, int], set[int]] = {}
    for mark in faults.marks:
        if mark["kind"] == "truncation" and mark["offset"] is not None:
            cuts.setdefault((mark["topic"], mark["partition"]), set()).add(mark["offset"])
    found = [
        Strip(
            cluster=row["cluster"],
            topic=row["topic"],
            partition=row["partition"],
            acked=known.get((row["cluster"], row["topic"], row["partition"])),
            lost=tuple(row["lost"]),
            cuts=tuple(sorted(cuts.get((row["topic"], row["partition"]), ()))),
            count=row["count"],
        )
        for row in rows
    ]
    return found, left_out
