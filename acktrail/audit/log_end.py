"""Where a log was cut: ends that the cluster answered after a record was seen or acknowledged.

`latest` is the high watermark, which an acks=1 ack may precede: an end alone proves nothing. It
does under a leader epoch higher than the one the record was written in. A delivery report has no
epoch, but epochs only grow: the first answer after the ack gives the highest it can have been.
Where all answers have one epoch, two of them far enough apart decide; that is a clock, and said.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from acktrail.audit.topic_evidence import PartitionEvidence, StateAt

NEVER = 1 << 62


@dataclass(frozen=True)
class ProvenEnd:
    """The lowest end that is proven for a record of a given time; NEVER for none."""

    offset: int = NEVER
    by_clock: bool = False


def proven_end(
    partition: PartitionEvidence,
    after_ms: int,
    epoch: int | None = None,
    replica_lag_ms: int | None = None,
    topic_id: str = "",
) -> ProvenEnd:
    """Everything at or above the returned offset is gone, if it was there at *after_ms*.

    *epoch* is the record's own, where known. *replica_lag_ms* allows the proof by clock.
    """
    later = [
        s
        for s in partition.ordered
        if s.at_ms >= after_ms
        and s.latest is not None
        and s.epoch is not None
        and (not topic_id or s.topic_id in ("", topic_id))
    ]
    if not later:
        return ProvenEnd()
    bound = later[0].epoch if epoch is None else epoch
    strong = min((_end(s) for s in later if _epoch(s) > _some(bound)), default=NEVER)
    slow = NEVER if replica_lag_ms is None else _end_by_clock(later, 2 * replica_lag_ms)
    return ProvenEnd(strong) if strong <= slow else ProvenEnd(slow, by_clock=True)


def _end_by_clock(later: list[StateAt], apart_ms: int) -> int:
    """The lowest end that two answers of one epoch, *apart_ms* apart, agree on."""
    best = NEVER
    for epoch in {_epoch(s) for s in later}:
        same = [s for s in later if _epoch(s) == epoch]
        times = np.array([s.at_ms for s in same], np.int64)
        ends = np.array([_end(s) for s in same], np.int64)
        before = np.searchsorted(times, times - apart_ms, "right")  # answers early enough
        lowest = np.minimum.accumulate(ends)
        pairs = before > 0
        if pairs.any():
            best = min(best, int(np.maximum(lowest[before[pairs] - 1], ends[pairs]).min()))
    return best


def recreated(partition: PartitionEvidence, after_ms: int, topic_id: str) -> bool:
    """Whether the topic was deleted and made again after *after_ms*."""
    if not topic_id:
        before = [s.topic_id for s in partition.ordered if s.at_ms <= after_ms and s.topic_id]
        first = [s.topic_id for s in partition.ordered if s.topic_id]
        topic_id = before[-1] if before else (first[0] if first else "")
    return any(s.topic_id not in ("", topic_id) for s in partition.ordered if s.at_ms >= after_ms)


def _end(state: StateAt) -> int:
    return NEVER if state.latest is None else state.latest


def _epoch(state: StateAt) -> int:
    return -1 if state.epoch is None else state.epoch


def _some(epoch: int | None) -> int:
    return -1 if epoch is None else epoch
