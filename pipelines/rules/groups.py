"""What became of every id for one consumer group: what it owes, and what it got."""

from __future__ import annotations

from dataclasses import dataclass
from itertools import pairwise

import numpy as np

from acktrail.contracts.vocabulary import State, Tier
from pipelines.rules.bitmaps import Mask
from pipelines.rules.block import Block, Places, Presence
from pipelines.rules.ends import proven_end
from pipelines.rules.evidence import (
    Commit,
    Consumed,
    GroupEvidence,
    PartitionEvidence,
    TopicEvidence,
)
from pipelines.rules.intervals import Coverage
from pipelines.rules.reasons import Reason
from pipelines.rules.verdicts import STATES, UNDECIDED, Verdicts


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
        for number in np.unique(presence.places.partition[stored]).tolist():
            here = stored & (presence.places.partition == number)
            partition = topic.partitions.get(number, PartitionEvidence())
            reads = _Reads(
                evidence.consumed.get(number, ()), evidence.commits.get(number, ()), partition
            )
            _judge_stored(here, reads, presence.places, verdicts)
    return verdicts


@dataclass(frozen=True)
class _Reads:
    """What is known of one group in one partition."""

    consumed: tuple[Consumed, ...]
    commits: tuple[Commit, ...]
    partition: PartitionEvidence


def _judge_stored(here: Mask, reads: _Reads, places: Places, verdicts: Verdicts) -> None:
    """Ids in the log of one partition that the group has not been seen to receive."""
    low, high = places.low, places.high
    known = here & (low >= 0)
    first = _first_owed(reads.consumed, reads.commits)
    if first is not None:
        verdicts.give(known & (high < first), State.NOT_OWED, Reason.NONE)
    read = Coverage(_still_true(reads.consumed, reads.partition)).covers(low, high)
    verdicts.give(known & read, State.DELIVERED, Reason.NONE)
    processed = max((c.processed or 0 for c in reads.commits), default=0)
    verdicts.give(known & (high < processed), State.DELIVERED, Reason.NONE)
    jumped = Coverage(jumps_within_assignments(reads.consumed)).covers(low, high)
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
    verdicts.give(here, State.PENDING, Reason.GROUP_BEHIND)


def _first_owed(consumed: tuple[Consumed, ...], commits: tuple[Commit, ...]) -> int | None:
    """The first offset the group was given or committed; None where it has none."""
    return min([c.first for c in consumed] + [c.offset for c in commits], default=None)


def _still_true(
    consumed: tuple[Consumed, ...], partition: PartitionEvidence
) -> list[tuple[int, int]]:
    """Ranges that were read, without what the log lost after the reading and may hold anew."""
    return [(c.first, min(c.last, _end_after(partition, c.ended_ms) - 1)) for c in consumed]


def _end_after(partition: PartitionEvidence, ms: int) -> int:
    return proven_end(partition, ms).offset


def jumps_within_assignments(consumed: tuple[Consumed, ...]) -> list[tuple[int, int]]:
    """Offsets that a member passed over while the partition was its own."""
    found = []
    ordered = sorted(consumed, key=lambda c: (c.reporter, c.assignment, c.part))
    for before, after in pairwise(ordered):
        same = (before.reporter, before.assignment) == (after.reporter, after.assignment)
        if same and after.first > before.last + 1:
            found.append((before.last + 1, after.first - 1))
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
