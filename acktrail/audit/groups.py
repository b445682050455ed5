"""What became of every id for one consumer group: what it owes, and what it got."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from itertools import groupby, pairwise

import numpy as np

from acktrail.audit.bitmaps import Longs, Mask
from acktrail.audit.block import Block, Places, Presence
from acktrail.audit.intervals import Coverage
from acktrail.audit.log_end import proven_end
from acktrail.audit.reasons import Reason
from acktrail.audit.topic_evidence import (
    Consumed,
    GroupCommit,
    GroupEvidence,
    PartitionEvidence,
    TopicEvidence,
)
from acktrail.audit.verdicts import STATES, UNDECIDED, Verdicts
from acktrail.contracts.vocabulary import State, Tier


def judge_group(
    block: Block, topic: TopicEvidence, group: str, log: Verdicts, presence: Presence
) -> Verdicts:
    """The state of every id for *group*; ids that are not in the log have the log's state."""
    verdicts = Verdicts.none()
    verdicts.give(block.mask(Tier.DELIVERED, group), State.DELIVERED, Reason.NONE)
    gone = (log.state != UNDECIDED) & ~log.having(State.DELIVERED) & (verdicts.state == UNDECIDED)
    verdicts.state[gone], verdicts.reason[gone] = log.state[gone], log.reason[gone]
    verdicts.settles_ms = log.settles_ms
    stored = log.having(State.DELIVERED) & (verdicts.state == UNDECIDED)
    if stored.any():
        evidence = topic.groups.get(group, GroupEvidence())
        received = presence.received(group)
        for number in np.unique(presence.places.partition[stored]).tolist():
            here = presence.places.partition == number
            reads = _Reads(
                evidence.consumed.get(number, ()),
                evidence.commits.get(number, ()),
                topic.partitions.get(number, PartitionEvidence()),
                received.get(number, _NOTHING),
            )
            _judge_stored(stored & here, reads, presence.places, verdicts)
    return verdicts


_NOTHING: Longs = np.zeros(0, np.int64)


@dataclass(frozen=True)
class _Reads:
    """What is known of one group in one partition."""

    consumed: tuple[Consumed, ...]
    commits: tuple[GroupCommit, ...]
    partition: PartitionEvidence
    received: Longs
    """Offsets of the block's ids that were delivered to the group."""

    @property
    def first_owed(self) -> int | None:
        """The first offset the group is known to have read or committed; None where it has none."""
        known = [c.first for c in self.consumed] + [c.offset for c in self.commits]
        if self.received.size:
            known.append(int(self.received.min()))
        return min(known, default=None)

    @cached_property
    def ranges(self) -> list[tuple[int, int]]:
        """Ranges that were read, without what the log lost later and may hold again."""
        return [
            (c.first, min(c.last, _end_after(self.partition, c.ended_ms) - 1))
            for c in self.consumed
        ]

    @property
    def read_until(self) -> int:
        """The highest offset the group is known to have read; -1 for none."""
        known = [last for first, last in self.ranges if first <= last]
        return max([*known, int(self.received.max(initial=-1))])


def _judge_stored(here: Mask, reads: _Reads, places: Places, verdicts: Verdicts) -> None:
    """Ids in the log of one partition that the group has not been seen to receive."""
    low, high = places.low, places.high
    known = here & (low >= 0)
    first = reads.first_owed
    if first is not None:
        verdicts.give(known & (high < first), State.NOT_OWED, Reason.NONE)
    read = Coverage(reads.ranges).covers(low, high)
    verdicts.give(known & read, State.DELIVERED, Reason.NONE)
    processed = max((c.processed or 0 for c in reads.commits), default=0)
    verdicts.give(known & (high < processed), State.DELIVERED, Reason.NONE)
    jumped = Coverage(_jumps(reads)).covers(low, high)
    verdicts.give(known & jumped, State.SKIPPED_BY_CONSUMER, Reason.JUMPED_OVER)
    newest = max(reads.commits, key=lambda c: (c.at_ms, c.offset, c.metadata), default=None)
    if newest is not None and newest.processed is not None:
        unprocessed = known & (low >= newest.processed) & (high < newest.offset)
        verdicts.give(unprocessed, State.SKIPPED_BY_CONSUMER, Reason.COMMITTED_UNPROCESSED)
    committed = max((c.offset for c in reads.commits), default=-1)
    verdicts.give(known & (high < committed), State.INCONCLUSIVE, Reason.UNREPORTED_RANGE)
    if first is not None:
        expired = known & (high < reads.partition.earliest)
        verdicts.give(expired, State.EXPIRED_BEFORE_READ, Reason.EXPIRED)
    verdicts.give(known & (high < reads.read_until), State.INCONCLUSIVE, Reason.UNREPORTED_RANGE)
    verdicts.give(here, State.PENDING, Reason.GROUP_BEHIND)


def _end_after(partition: PartitionEvidence, ms: int) -> int:
    return proven_end(partition, ms).offset


def _jumps(reads: _Reads) -> list[tuple[int, int]]:
    """Offsets that a member passed over while the partition was its own.

    Without what the group had committed past before the member began (another member may have
    read it), and without what the log lost after the jump and may hold again.
    """
    found = []
    for began_ms, before, after in jumps_within_assignments(reads.consumed):
        committed = max((c.offset for c in reads.commits if c.at_ms <= began_ms), default=0)
        end = _end_after(reads.partition, before.ended_ms)
        found.append((max(before.last + 1, committed), min(after.first, end) - 1))
    return found


def jumps_within_assignments(
    consumed: tuple[Consumed, ...],
) -> list[tuple[int, Consumed, Consumed]]:
    """Pairs of ranges with a gap between them, and when the member began to read.

    Ranges whose assignment is not known prove none: the partition may have been another's.
    """
    found = []
    known = [(c.reporter, c.assignment, c) for c in consumed if c.assignment is not None]
    ordered = sorted(known, key=lambda k: (k[0], k[1], k[2].part))
    for _, same in groupby(ordered, key=lambda k: k[:2]):
        ranges = [c for _, _, c in same]
        began_ms = min(c.began_ms for c in ranges)
        for before, after in pairwise(ranges):
            if after.first > before.last + 1:
                found.append((began_ms, before, after))
    return found


def audiences(block: Block, topic: TopicEvidence) -> list[str]:
    """The groups that are audited on this topic: they got ids of the block, or reported reads."""
    readers = {name for name, evidence in topic.groups.items() if evidence.consumed}
    return sorted(block.groups | readers)


def is_concerned(block: Block, group: str, verdicts: Verdicts) -> bool:
    """Whether the group owes anything of the block: else it gets no account of it."""
    if group in block.groups:
        return True
    not_owed = (UNDECIDED, STATES.index(State.NOT_OWED))
    return bool((~np.isin(verdicts.state, not_owed)).any())
