"""What became of every id of a block in the log: the states, in the order of decision.

A loss is decided by a scan of the log that began after the outcome had reached the lake, by offsets
and by leader epochs. Clocks of different hosts are never compared. Whatever else can take a
record out of a log has to be ruled out: retention, compaction, a topic that was created again.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from functools import cached_property, partial

import numpy as np
import numpy.typing as npt

from acktrail.audit.block import Block, Part, Presence
from acktrail.audit.intervals import Coverage
from acktrail.audit.log_end import NEVER, highest_epoch, proven_end
from acktrail.audit.reasons import Reason
from acktrail.audit.send_errors import precedes_sending
from acktrail.audit.topic_evidence import (
    REPORT_DELAY_MS,
    PartitionEvidence,
    SessionEvidence,
    TopicEvidence,
)
from acktrail.audit.wire.identity import BLOCK_IDS
from acktrail.audit.wire.run_lists import Mask, no_ids
from acktrail.contracts.vocabulary import State, Tier

STATES = tuple(State)
REASONS = tuple(Reason)
UNDECIDED = -1

Codes = npt.NDArray[np.int8]


@dataclass(frozen=True)
class Awaited:
    """Where scans of the partitions that may hold an id have come to, the lowest and the highest.

    A scan that begins above the highest decides nothing. Nor does an answer of the cluster, but
    that the log begins above the lowest.
    """

    lowest: int
    highest: int


@dataclass
class Verdicts:
    """A state and a reason for each id of the block; UNDECIDED (-1) where the id does not exist."""

    state: Codes = field(default_factory=lambda: np.full(BLOCK_IDS, UNDECIDED, np.int8))
    reason: Codes = field(default_factory=lambda: np.zeros(BLOCK_IDS, np.int8))
    settles_ms: int | None = None
    """A complete scan begun after this receipt decides ids without an offset; None without such."""
    awaits: Awaited | None = None
    """Which scans decide the ids that are pending until then; None: any, or none is awaited."""
    awaits_any_news: bool = False
    """Not scans alone decide them: `awaits` stays None."""

    def give(self, ids: Mask, state: State, reason: Reason) -> None:
        """Give *state* to those of *ids* that have none yet."""
        free = ids & (self.state == UNDECIDED)
        self.state[free] = STATES.index(state)
        self.reason[free] = REASONS.index(reason)

    def having(self, state: State) -> Mask:
        """The ids in *state*."""
        having: Mask = self.state == STATES.index(state)
        return having

    def because(self, reason: Reason) -> Mask:
        """The ids whose state has this *reason*."""
        having: Mask = (self.state != UNDECIDED) & (self.reason == REASONS.index(reason))
        return having

    def settle_at(self, ms: int) -> None:
        """Some ids are decided by a scan begun after *ms*."""
        self.settles_ms = ms if self.settles_ms is None else max(self.settles_ms, ms)

    def await_from(self, offsets: Iterable[int | None]) -> None:
        """Some ids are pending until scans go on at *offsets*, one for each partition.

        None among them: any news of the topic may decide.
        """
        known: list[int] = [self.awaits.lowest, self.awaits.highest] if self.awaits else []
        for offset in offsets:
            if offset is None:
                self.awaits_any_news = True
            else:
                known.append(offset)
        if self.awaits_any_news:
            self.awaits = None
        elif known:
            self.awaits = Awaited(min(known), max(known))


@dataclass(frozen=True)
class Case:
    """One block with everything that bears on its ids."""

    block: Block
    topic: TopicEvidence
    session: SessionEvidence

    @cached_property
    def presence(self) -> Presence:
        """Which ids are in the log, and where."""
        return Presence(self.block, self.topic)

    @cached_property
    def missing(self) -> Mask:
        """Ids that exist and are not known to be in the log."""
        return self.block.universe & ~self.presence.mask

    @cached_property
    def topic_ids(self) -> tuple[str, ...]:
        """The topics of this name that ids without a topic id may belong to, as scans name them."""
        return tuple(sorted(self.topic.topic_ids)) or ("",)

    def belongs(self, topic_id: str, own: str) -> Mask:
        """The ids that were sent to the topic *topic_id*; *own*: the id their producer was told.

        Where it was told none, all were sent to the only topic of the name that was ever met, if
        the cluster was asked for it before the session was heard of.
        """
        if own:
            return np.full(BLOCK_IDS, own == topic_id or not topic_id)
        asked, heard = self.topic.first_asked_ms, self.session.first_received_ms
        early = asked is not None and heard is not None and asked < heard
        return np.full(BLOCK_IDS, early and len(self.topic.topic_ids) <= 1)


def judge_log(case: Case) -> Verdicts:
    """The state of every id as far as the log itself is concerned."""
    block, verdicts, missing = case.block, Verdicts(), case.missing
    if case.session.transactional:
        # What a scan finds may belong to a transaction that was aborted.
        aborted, committed = block.mask(Tier.ABORTED), block.mask(Tier.COMMITTED)
        verdicts.give(aborted & committed, State.INCONCLUSIVE, Reason.TRANSACTIONAL)
        verdicts.give(aborted, State.ABORTED, Reason.NONE)
        uncommitted = block.universe & ~committed
        verdicts.give(uncommitted, State.INCONCLUSIVE, Reason.TRANSACTIONAL)
    verdicts.give(block.universe & case.presence.mask, State.DELIVERED, Reason.NONE)
    if not missing.any():
        return verdicts
    _judge_acked(case, verdicts)
    _judge_placeless(case, Tier.ACKED_NO_OFFSET, State.LOST_AFTER_ACK, verdicts)
    _judge_placeless(case, Tier.COMMITTED, State.LOST_AFTER_ACK, verdicts)  # all were acked
    _judge_placeless(case, Tier.SENT_UNACKED, State.LOST_UNACKED, verdicts)
    _judge_never_sent(case, verdicts)
    _judge_placeless(case, Tier.FAILED, State.REJECTED, verdicts)
    _judge_placeless(case, Tier.INDETERMINATE, State.LOST_INDETERMINATE, verdicts)
    _judge_without_outcome(case, verdicts)
    return verdicts


# -- acknowledged, with an offset --------------------------------------------------------------

_OPEN = {
    Reason.TOPIC_RECREATED: State.INCONCLUSIVE,
    Reason.COMPACTED: State.INCONCLUSIVE,
    Reason.POLICY_UNKNOWN: State.INCONCLUSIVE,
    Reason.UNNAMED: State.INCONCLUSIVE,
    Reason.RETENTION: State.INCONCLUSIVE,
    Reason.NOT_SCANNED: State.PENDING,
}
_LOST = (Reason.SCANNED_PAST, Reason.BEYOND_END)


def _judge_acked(case: Case, verdicts: Verdicts) -> None:
    """Acked with an offset: lost when scanned past, or cut off below it."""
    found: dict[Reason, Mask] = {}
    for part in case.block.parts(Tier.ACKED):
        wanted = case.missing & part.mask & (verdicts.state == UNDECIDED)
        if wanted.any():
            for reason, ids in _grounds(case, part, wanted).items():
                found[reason] = found[reason] | ids if reason in found else ids
    for reason, state in _OPEN.items():  # one open part of an id keeps the id open
        if reason in found:
            verdicts.give(found[reason], state, reason)
    for reason in _LOST:
        if reason in found:
            verdicts.give(found[reason], State.LOST_AFTER_ACK, reason)


def _grounds(case: Case, part: Part, wanted: Mask) -> dict[Reason, Mask]:
    """Why each of the *wanted* ids of an acked part is lost, or still open."""
    topic = case.topic
    partition = topic.partitions.get(part.partition)
    if partition is None or part.received_ms is None:
        return {Reason.NOT_SCANNED: wanted}
    found: dict[Reason, Mask] = {}
    left = wanted.copy()
    for topic_id in (part.topic_id,) if part.topic_id else case.topic_ids:
        here = left & case.belongs(topic_id, part.topic_id)
        if here.any():
            found |= _grounds_in_topic(case, part, partition, topic_id, here)
            left &= ~here
    if left.any():
        found[Reason.TOPIC_RECREATED] = left
    return found


def _grounds_in_topic(
    case: Case, part: Part, partition: PartitionEvidence, topic_id: str, wanted: Mask
) -> dict[Reason, Mask]:
    assert part.received_ms is not None
    topic, block = case.topic, case.block
    ids, low, high = part.places()
    first = part.first_offset if part.first_offset is not None else 0
    known = high >= 0
    scans = partition.scans_after(part.received_ms, topic_id)
    # Of a topic that may be compacted, only scans that found a record at every offset.
    dense_only = topic.compacted is not False
    proving = partition.scans_after(part.received_ms, topic_id, dense_only)
    # From the part's first offset on: a retry may have stored an id earlier than its ack.
    reach = proving.covered.reach(first)
    lowest = low if case.session.stores_once else np.minimum(low, first)
    scanned = known & (high <= reach) & proving.named.covers(lowest, high)
    # The first leader of a partition has all that was acked in it: this was acked in another topic.
    first_leaders = proving.under_first_leader.covers(low, high) & ~block.mask(Tier.IN_LOG)[ids]
    elsewhere, scanned = scanned & first_leaders, scanned & ~first_leaders
    read = known & (high <= scans.covered.reach(first)) & ~scanned & ~elsewhere
    unnamed = read & ~scans.named.covers(lowest, high)
    end = proven_end(partition, part.received_ms, topic_id=topic_id) if scans.ends else NEVER
    beyond = known & ~scanned & ~elsewhere & ~unnamed & (end <= low)
    beyond &= end <= scans.covered.reach(first) + 1
    if not case.session.stores_once and scans.named.reach(first) + 1 < end:
        unnamed |= beyond
        beyond &= False
    open_ids = known & ~unnamed & ~scanned & ~elsewhere & ~beyond
    read &= open_ids
    taken = open_ids & ~read & (low < _earliest(partition, topic_id))
    gap = Reason.POLICY_UNKNOWN if topic.compacted is None else Reason.COMPACTED
    # No scan will decide about a compacted topic, unless it has not been compacted there yet.
    waiting = Reason.COMPACTED if topic.compacted else Reason.NOT_SCANNED
    grounds = (
        (Reason.TOPIC_RECREATED, elsewhere),
        (Reason.SCANNED_PAST, scanned),
        (Reason.BEYOND_END, beyond),
        (Reason.UNNAMED, unnamed),
        (gap, read),
        (Reason.RETENTION, taken),
        (waiting, (open_ids & ~read & ~taken) | ~known),
    )
    found: dict[Reason, Mask] = {}
    for reason, which in grounds:
        if which.any():
            mask = no_ids()
            mask[ids[which]] = True
            mask &= wanted
            found[reason] = found[reason] | mask if reason in found else mask
    return found


def _earliest(partition: PartitionEvidence, topic_id: str) -> int:
    """Retention has taken everything below this offset of the topic."""
    found = (
        s.earliest
        for s in partition.states
        if s.earliest is not None and (not topic_id or s.topic_id in ("", topic_id))
    )
    return max(found, default=0)


# -- without an offset -------------------------------------------------------------------------


def _judge_never_sent(case: Case, verdicts: Verdicts) -> None:
    """Told failed by an error that precedes the first send: it cannot be in the log."""
    for part in case.block.parts(Tier.FAILED):
        if precedes_sending(part.error):
            verdicts.give(case.missing & part.mask, State.REJECTED, Reason.TOLD)


def _judge_placeless(case: Case, tier: Tier, state: State, verdicts: Verdicts) -> None:
    """Ids without an offset: lost when a late enough scan of the whole log found them nowhere."""
    waiting = Reason.TOLD_NOT_CHECKED if tier is Tier.FAILED else Reason.NO_COMPLETE_SCAN
    for part in case.block.parts(tier):
        wanted = case.missing & part.mask & (verdicts.state == UNDECIDED)
        if not wanted.any():
            continue
        if part.received_ms is None:
            verdicts.give(wanted, State.PENDING, waiting)
            continue
        acked = tier in (Tier.ACKED_NO_OFFSET, Tier.COMMITTED)
        place = (part.partition, part.topic_id, part.received_ms)
        _judge_absent(_Sought(wanted, *place, state, waiting, acked), case, verdicts)


def _judge_without_outcome(case: Case, verdicts: Verdicts) -> None:
    """Handed over, and no outcome was reported: a crash, or reports that are missing."""
    session = case.session
    wanted = case.missing & (verdicts.state == UNDECIDED)
    if not wanted.any():
        return
    if session.ended_ms is None:
        verdicts.give(wanted, State.PENDING, Reason.SILENT)
        return
    if session.outcomes_unknown is not None:
        verdicts.give(wanted, State.INCONCLUSIVE, session.outcomes_unknown)
        return
    state = State.UNACCOUNTED if session.closed else State.LOST_IN_CRASH
    since = max(session.ended_ms, session.last_received_ms or 0)
    _judge_absent(_Sought(wanted, -1, "", since, state, Reason.NO_COMPLETE_SCAN), case, verdicts)


@dataclass(frozen=True)
class _Sought:
    """Ids without an offset, and where they went: a partition (-1: any) of a topic ("": any)."""

    ids: Mask
    partition: int
    topic_id: str
    since_ms: int
    """When their outcome was received."""
    state: State
    waiting: Reason
    """Why they are pending until a scan decides."""
    acked: bool = False
    """Their leader had them: they are gone only where another one has led since."""


def _judge_absent(sought: _Sought, case: Case, verdicts: Verdicts) -> None:
    topic = case.topic
    verdicts.settle_at(sought.since_ms + topic.replica_lag_ms)
    places = [sought.partition] if sought.partition >= 0 else sorted(topic.partitions)
    left = sought.ids.copy()
    for topic_id in (sought.topic_id,) if sought.topic_id else case.topic_ids:
        here = left & case.belongs(topic_id, sought.topic_id)
        if here.any():
            left &= ~here
            found = (topic.partitions.get(p, PartitionEvidence()) for p in places)
            looks = [_look(case, partition, topic_id, sought) for partition in found]
            reason = _weakest(look.reason for look in looks)
            if reason is Reason.NO_COMPLETE_SCAN:
                verdicts.give(here, State.PENDING, sought.waiting)
                verdicts.await_from(look.came_to for look in looks if look.reason is reason)
            else:
                state = sought.state if reason is Reason.COMPLETE_SCAN else State.INCONCLUSIVE
                verdicts.give(here, state, reason)
    verdicts.give(left, State.INCONCLUSIVE, Reason.TOPIC_RECREATED)


_WEAKEST_FIRST = (
    Reason.COMPACTED,
    Reason.POLICY_UNKNOWN,
    Reason.UNNAMED,
    Reason.RETENTION,
    Reason.NO_COMPLETE_SCAN,
    Reason.COMPLETE_SCAN,
)


def _weakest(looks: Iterable[Reason]) -> Reason:
    """What the looks at several partitions show together; nothing where there was none."""
    found = set(looks) or {Reason.NO_COMPLETE_SCAN}
    return next(reason for reason in _WEAKEST_FIRST if reason in found)


@dataclass(frozen=True)
class _Look:
    """What scans show of one partition, and the offset at which a further one must go on."""

    reason: Reason
    came_to: int | None = None
    """None: any news of the topic may decide, as what the cluster says of its leaders."""


def _look(case: Case, partition: PartitionEvidence, topic_id: str, sought: _Sought) -> _Look:
    """Whether scans begun late enough have read all that the session can have stored.

    Late enough: a request that a broker has still to deal with is stored within the time that
    replicas may lag. Up to where one of the scans ended: what was stored in time lies below. Scans
    that follow, and what the cluster answers later, do not change that.
    """
    topic, since_ms = case.topic, sought.since_ms
    if topic.compacted:
        return _Look(Reason.COMPACTED)
    wait, above = topic.replica_lag_ms, None
    if sought.acked:
        above = _last_epoch_of_ack(case, partition, topic_id, since_ms)
        if above is None:
            return _Look(Reason.NO_COMPLETE_SCAN)
    leader_may_hide = sought.acked and not case.session.waits_for_all
    late_enough = partial(
        partition.scans_after,
        *(since_ms, topic_id),
        wait_ms=wait,
        above_epoch=above,
        epoch_known=leader_may_hide,
    )
    scans, proving = late_enough(), late_enough(compactable=topic.compacted is not False)
    base = _lowest_end(partition, topic_id, case.session.begun_ms, since_ms + wait)
    if _read_from(base, proving.covered, proving.ends):
        named = _read_from(base, proving.named, proving.ends)
        return _Look(Reason.COMPLETE_SCAN if named else Reason.UNNAMED)
    if _read_from(base, scans.covered, scans.ends):
        return _Look(Reason.POLICY_UNKNOWN)
    start = _earliest(partition, topic_id)
    if start > base and _read_from(start, scans.covered, scans.ends):
        return _Look(Reason.RETENTION)
    came_to = None
    if not leader_may_hide:  # else a late answer may show another leader
        came_to = max(scans.covered.reach(base), scans.covered.reach(max(start, base))) + 1
    return _Look(Reason.NO_COMPLETE_SCAN, came_to)


def _last_epoch_of_ack(
    case: Case, partition: PartitionEvidence, topic_id: str, received_ms: int
) -> int | None:
    """Only a leader of a higher epoch than this can lack what was acked; None: not known.

    With acks=1, the leader itself may have acked what no reader can see yet, as long as it leads.
    """
    if case.session.waits_for_all:
        return 0
    return highest_epoch(partition.ends(topic_id), received_ms)


def _read_from(first: int, covered: Coverage, ends: Sequence[int]) -> bool:
    """Whether everything from *first* to where a scan ended is *covered*."""
    return bool(ends) and covered.reach(first) >= min(ends)


def _lowest_end(
    partition: PartitionEvidence, topic_id: str, begun_ms: int | None, until_ms: int
) -> int:
    """No record stored in that time lies below this offset: the lowest end of the log then."""
    if begun_ms is None:
        return 0
    ends = sorted(
        (s.when_ms, s.latest)
        for s in partition.states
        if s.latest is not None and (not topic_id or s.topic_id in ("", topic_id))
    )
    before = [at for at, _ in ends if at < begun_ms - REPORT_DELAY_MS]
    if not before:
        return 0
    return min((end for at, end in ends if before[-1] <= at <= until_ms), default=0)
