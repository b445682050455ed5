"""What became of every id of a block in the log: the states, in the order of decision.

Loss is decided by offsets and leader epochs. A clock alone decides nothing that has an offset;
where ids have none, the clock that decides is named in the reason.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from acktrail.audit.bitmaps import Longs, Mask, empty
from acktrail.audit.block import Block, Placed, Places, Presence
from acktrail.audit.log_end import proven_end, recreated
from acktrail.audit.reasons import Reason
from acktrail.audit.topic_evidence import PartitionEvidence, SessionEvidence, TopicEvidence
from acktrail.audit.wire.identity import BLOCK_BITS, BLOCK_IDS
from acktrail.contracts.vocabulary import State, Tier

STATES = tuple(State)
REASONS = tuple(Reason)
UNDECIDED = -1

Codes = npt.NDArray[np.int8]


@dataclass
class Verdicts:
    """A state and a reason for each id of the block; UNDECIDED (-1) where the id does not exist."""

    state: Codes
    reason: Codes
    settles_ms: int | None = None
    """The latest instant after which a complete scan can decide what is pending."""

    @classmethod
    def none(cls) -> Verdicts:
        """Nothing decided yet."""
        return cls(np.full(BLOCK_IDS, UNDECIDED, np.int8), np.zeros(BLOCK_IDS, np.int8))

    def give(self, ids: Mask, state: State, reason: Reason) -> None:
        """Give *state* to those of *ids* that have none yet."""
        free = ids & (self.state == UNDECIDED)
        self.state[free] = STATES.index(state)
        self.reason[free] = REASONS.index(reason)

    def having(self, state: State) -> Mask:
        """The ids in *state*."""
        having: Mask = self.state == STATES.index(state)
        return having

    def count(self, state: State) -> int:
        """How many ids are in *state*."""
        return int(np.count_nonzero(self.having(state)))

    def open_until(self, ms: int) -> None:
        """Something is open until *ms* at least."""
        self.settles_ms = ms if self.settles_ms is None else max(self.settles_ms, ms)


@dataclass(frozen=True)
class Case:
    """Everything that bears on one block's ids in the log."""

    block: Block
    topic: TopicEvidence
    session: SessionEvidence
    presence: Presence

    @property
    def missing(self) -> Mask:
        """Ids that exist and are not known to be in the log."""
        return self.block.universe & ~self.presence.mask


def judge_log(case: Case) -> Verdicts:
    """The state of every id as far as the log itself is concerned."""
    block, verdicts, missing = case.block, Verdicts.none(), case.missing
    verdicts.give(block.universe & case.presence.mask, State.DELIVERED, Reason.NONE)
    if not missing.any():
        return verdicts
    if case.session.transactional:
        verdicts.give(missing, State.INCONCLUSIVE, Reason.TRANSACTIONAL)
        return verdicts
    _judge_acked(block, case.topic, missing, verdicts)
    _judge_placeless(case, Tier.ACKED_NO_OFFSET, State.LOST_AFTER_ACK, verdicts)
    _judge_placeless(case, Tier.SENT_UNACKED, State.LOST_UNACKED, verdicts)
    verdicts.give(missing & block.mask(Tier.FAILED), State.REJECTED, Reason.TOLD)
    _judge_placeless(case, Tier.INDETERMINATE, State.LOST_INDETERMINATE, verdicts)
    _judge_without_outcome(case, verdicts)
    verdicts.give(missing & block.mask(Tier.ABORTED), State.ABORTED, Reason.NONE)
    return verdicts


def _judge_acked(block: Block, topic: TopicEvidence, missing: Mask, verdicts: Verdicts) -> None:
    """Acked with an offset: lost when the log is known past it, or cut below it."""
    open_ids: dict[Reason, Mask] = {}
    lost: dict[Reason, Mask] = {}
    for placed in block.placed(Tier.ACKED):
        wanted = missing & placed.part.mask
        if not wanted.any():
            continue
        for reason, ids in _ground(placed, topic, wanted).items():
            kind = open_ids if reason in _OPEN else lost
            kind[reason] = kind.get(reason, empty()) | ids
    for reason, state in _OPEN.items():  # one open part of an id keeps the id open
        if reason in open_ids:
            verdicts.give(open_ids[reason], state, reason)
    for reason in (Reason.SCANNED_PAST, Reason.BEYOND_END, Reason.BEYOND_END_CLOCK):
        if reason in lost:
            verdicts.give(lost[reason], State.LOST_AFTER_ACK, reason)


_OPEN = {
    Reason.TOPIC_RECREATED: State.INCONCLUSIVE,
    Reason.COMPACTED: State.INCONCLUSIVE,
    Reason.RETENTION: State.INCONCLUSIVE,
    Reason.NOT_SCANNED: State.PENDING,
}


def _ground(placed: Placed, topic: TopicEvidence, wanted: Mask) -> dict[Reason, Mask]:
    """Why each of the *wanted* ids of an acked part is lost, or still open."""
    part, partition = placed.part, topic.partitions.get(placed.partition)
    if partition is None or part.ended_ms is None:
        return {Reason.COMPACTED if topic.compacted else Reason.NOT_SCANNED: wanted}
    if recreated(partition, part.ended_ms, part.topic_id):
        return {Reason.TOPIC_RECREATED: wanted}
    if topic.compacted:
        return {Reason.COMPACTED: wanted}
    ids, low, high = part.places()
    first = part.first_offset if part.first_offset is not None else 0
    # From the part's first offset on: a retry may have stored an id earlier than its ack says.
    reach = partition.covered_after(part.ended_ms).reach(first)
    end = proven_end(partition, part.ended_ms, None, topic.replica_lag_ms, part.topic_id)
    known = high >= 0
    scanned = known & (high <= reach)
    beyond = known & ~scanned & (end.offset <= reach + 1)
    taken = known & ~scanned & ~beyond & (low < partition.earliest)
    by = Reason.BEYOND_END_CLOCK if end.by_clock else Reason.BEYOND_END
    grounds = {Reason.SCANNED_PAST: scanned, by: beyond, Reason.RETENTION: taken}
    grounds[Reason.NOT_SCANNED] = ~scanned & ~beyond & ~taken
    found = {}
    for reason, which in grounds.items():
        mask = empty()
        mask[ids[which]] = True
        mask &= wanted
        if mask.any():
            found[reason] = mask
    return found


def _judge_placeless(case: Case, tier: Tier, state: State, verdicts: Verdicts) -> None:
    """Ids without an offset: lost when a late enough scan of the whole log found them nowhere."""
    for placed in case.block.placed(tier):
        wanted = case.missing & placed.part.mask & (verdicts.state == UNDECIDED)
        if not wanted.any():
            continue
        if placed.part.ended_ms is None:
            verdicts.give(wanted, State.PENDING, Reason.NO_COMPLETE_SCAN)
            continue
        since = case.session.first_ms
        stored = None if since is None else since - case.session.longest_send_ms
        sought = _Sought(wanted, placed.partition, placed.part.ended_ms, state, stored)
        _judge_absent(sought, case, verdicts)


@dataclass(frozen=True)
class _Sought:
    """Ids without an offset, the partition they went to (-1: any), and when they were sent."""

    ids: Mask
    partition: int
    since_ms: int
    state: State
    stored_after_ms: int | None
    """None of them can have been stored before; None: not known."""


def _judge_absent(sought: _Sought, case: Case, verdicts: Verdicts) -> None:
    topic, session = case.topic, case.session
    if topic.compacted:
        verdicts.give(sought.ids, State.INCONCLUSIVE, Reason.COMPACTED)
        return
    late_enough = sought.since_ms + topic.replica_lag_ms + session.delivery_timeout_ms
    places = [sought.partition] if sought.partition >= 0 else sorted(topic.partitions)
    began = sought.stored_after_ms
    looks = [_read_whole(topic.partitions.get(p), late_enough, began) for p in places]
    if Reason.TOPIC_RECREATED in looks:
        verdicts.give(sought.ids, State.INCONCLUSIVE, Reason.TOPIC_RECREATED)
    elif Reason.RETENTION in looks:
        verdicts.give(sought.ids, State.INCONCLUSIVE, Reason.RETENTION)
    elif not looks or Reason.NO_COMPLETE_SCAN in looks:
        verdicts.give(sought.ids, State.PENDING, Reason.NO_COMPLETE_SCAN)
        verdicts.open_until(late_enough)
    else:
        verdicts.give(sought.ids, sought.state, Reason.COMPLETE_SCAN)


def _read_whole(
    partition: PartitionEvidence | None, late_enough_ms: int, stored_after_ms: int | None
) -> Reason:
    """Whether scans begun late enough have read all that was stored since *stored_after_ms*."""
    if partition is None:
        return Reason.NO_COMPLETE_SCAN
    if recreated(partition, stored_after_ms or 0, ""):
        return Reason.TOPIC_RECREATED
    ends = [s.last for s in partition.scans if s.closed and s.began_ms >= late_enough_ms]
    if not ends:
        return Reason.NO_COMPLETE_SCAN
    base = lowest_offset_since(partition, stored_after_ms)
    covered = partition.covered_after(late_enough_ms)
    if covered.reach(base) >= max(ends):
        return Reason.COMPLETE_SCAN
    start = partition.earliest
    if start > base and covered.reach(start) >= max(ends):
        return Reason.RETENTION
    return Reason.NO_COMPLETE_SCAN


def lowest_offset_since(partition: PartitionEvidence, stored_after_ms: int | None) -> int:
    """No record stored after that can lie below this offset: the log's end then."""
    if stored_after_ms is None:
        return 0
    states = [s for s in partition.ordered if s.latest is not None]
    before = [s for s in states if s.at_ms < stored_after_ms]
    if not before:
        return 0
    return min(s.latest for s in states if s.at_ms >= before[-1].at_ms and s.latest is not None)


def _judge_without_outcome(case: Case, verdicts: Verdicts) -> None:
    """Handed over, and no outcome was reported: a crash, or reports that are missing."""
    aborted = case.block.mask(Tier.ABORTED)
    wanted = case.missing & ~aborted & (verdicts.state == UNDECIDED)
    if not wanted.any():
        return
    last = case.session.last_ms
    if last is None:
        verdicts.give(wanted, State.PENDING, Reason.OUTCOME_OPEN)
        return
    state = State.UNACCOUNTED if case.session.closed else State.LOST_IN_CRASH
    _judge_absent(_Sought(wanted, -1, last, state, _sent_after(case, wanted)), case, verdicts)


def _sent_after(case: Case, ids: Mask) -> int | None:
    """None of *ids* was sent before this; None where no heartbeat says so.

    Nobody reported them, so that what was reported of others is no bound, but that ids grow: an
    id is not sent before a lower one. A minute is allowed to be off by the longest send.
    """
    first = (case.block.number << BLOCK_BITS) + int(np.argmax(ids))
    known = [minute for minute, seq in case.session.minutes if seq <= first]
    return max(known) * 60_000 - case.session.longest_send_ms if known else None


def locate_by_producer(block: Block, ids: Longs, places: Places) -> None:
    """Note where the producer was told its *ids* are: partition and offsets of the acks."""
    for tier in (Tier.SENT, Tier.SENT_UNACKED, Tier.INDETERMINATE, Tier.FAILED, Tier.ACKED):
        for placed in block.placed(tier):
            if placed.partition >= 0:
                places.put(placed.partition, *placed.part.find(ids))
