"""Where a log was cut: ends that the cluster answered, below a record that was there.

`latest` is the high watermark, which an acks=1 ack may precede: an end alone proves nothing. It
does under a leader epoch higher than the one the record was written in: since Kafka 2.2 a new
leader answers with an end only when its high watermark has reached what it began with. A delivery
report has no epoch, but epochs only grow: the highest epoch that was answered until somebody asked
after the report had been received is the highest it can have been. (The highest, because a leader
that has been replaced and does not know it answers with an older one.)
"""

from __future__ import annotations

import numpy as np

from acktrail.audit.topic_evidence import Ends, PartitionEvidence

NEVER = 1 << 62


def proven_end(
    partition: PartitionEvidence,
    received_ms: int | None,
    epoch: int | None = None,
    topic_id: str = "",
) -> int:
    """Everything at or above this offset is gone, if it was there before *received_ms*.

    NEVER where nothing is proven. *received_ms* is the receipt of who saw it. *epoch* is the
    record's own, where known: then no order of events is needed.
    """
    ends = partition.ends(topic_id)
    highest = highest_epoch(ends, received_ms) if epoch is None else epoch
    if highest is None:
        return NEVER
    return int(np.min(ends.end[ends.epoch > highest], initial=NEVER))


def highest_epoch(ends: Ends, received_ms: int | None) -> int | None:
    """The highest epoch of a record that was there before *received_ms*; None where not known."""
    if received_ms is None:
        return None
    asked = ends.after[ends.after >= received_ms]
    return int(ends.epoch[ends.after <= asked.min()].max()) if asked.size else None
