"""What became of every id for one consumer group: what it owes, and what it got.

An id that the group reported is delivered. For any other, all its records in the log are looked at:
one that the group read delivers it, and it is lost to the group only if each was passed.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from functools import cached_property

import numpy as np

from acktrail.audit.block import Part
from acktrail.audit.intervals import Coverage
from acktrail.audit.log_end import NEVER, highest_epoch
from acktrail.audit.passages import GroupTrail, Passage, Records
from acktrail.audit.reasons import Reason
from acktrail.audit.topic_evidence import Consumed, GroupEvidence, PartitionEvidence
from acktrail.audit.verdicts import STATES, UNDECIDED, Case, Verdicts
from acktrail.audit.wire.identity import BLOCK_BITS
from acktrail.audit.wire.run_lists import Longs, Mask
from acktrail.contracts.vocabulary import State, Tier


def judge_groups(case: Case, log: Verdicts) -> Iterator[tuple[str, Verdicts]]:
    """The verdicts for each audited group that owes something of the block.

    A group is audited on the topic if it got ids of the block, or if a member reported its reads.
    """
    readers = {name for name, evidence in case.topic.groups.items() if evidence.consumed}
    not_owed = (UNDECIDED, STATES.index(State.NOT_OWED))
    for group in sorted(case.block.groups | readers):
        verdicts = _judge_group(case, group, log)
        if group in case.block.groups or not np.isin(verdicts.state, not_owed).all():
            yield group, verdicts


def _judge_group(case: Case, group: str, log: Verdicts) -> Verdicts:
    """The state of every id for *group*; ids that are not in the log have the log's state."""
    verdicts = Verdicts(settles_ms=log.settles_ms, awaits=log.awaits)
    verdicts.give(case.block.mask(Tier.DELIVERED, group), State.DELIVERED, Reason.NONE)
    undecided = verdicts.state == UNDECIDED
    stored = case.presence.mask & (log.having(State.DELIVERED) | log.because(Reason.TRANSACTIONAL))
    gone = (log.state != UNDECIDED) & ~stored & undecided
    verdicts.state[gone], verdicts.reason[gone] = log.state[gone], log.reason[gone]
    stored &= undecided
    if stored.any():
        _judge_stored(case, group, np.flatnonzero(stored), verdicts)
        verdicts.give(stored, State.PENDING, Reason.GROUP_BEHIND)
    return verdicts


def _judge_stored(case: Case, group: str, ids: Longs, verdicts: Verdicts) -> None:
    """Ids in the log that the group did not report: by the best that holds for one record."""
    judged = []
    for number in sorted({part.partition for part, _ in case.presence.sightings}):
        place = _Place(case, group, number)
        records = place.records(ids)
        if records.ids.size:
            made = _judge_records(records, place)
            judged.append((records.ids, made.state, made.reason))
    if not judged:
        return
    every, state, reason = (np.concatenate(column) for column in zip(*judged, strict=True))
    rank = np.array([_FIRST.index(found) for found in STATES], np.int64)[state]
    order = np.lexsort((reason, rank, every))
    best = order[np.unique(every[order], return_index=True)[1]]
    verdicts.state[every[best]], verdicts.reason[every[best]] = state[best], reason[best]


_FIRST = (
    State.DELIVERED,
    State.INCONCLUSIVE,
    State.PENDING,
    State.SKIPPED_BY_CONSUMER,
    State.EXPIRED_BEFORE_READ,
    State.NOT_OWED,
    *(s for s in STATES if s.value.startswith("lost") or s in (State.REJECTED, State.ABORTED)),
    State.UNACCOUNTED,
)
"""Of the states of an id's records, the first is the id's."""


def _judge_records(records: Records, place: _Place) -> Verdicts:
    """A state for each of *records*, which lie in one partition."""
    low, high = records.low, records.high
    verdicts = Verdicts(np.full(low.size, UNDECIDED, np.int8), np.zeros(low.size, np.int8))
    known, plain = low >= 0, place.without_transactions(records)
    if place.recreated:
        verdicts.give(known, State.INCONCLUSIVE, Reason.TOPIC_RECREATED)
    if place.first_owed is not None:
        verdicts.give(known & (high < place.first_owed), State.NOT_OWED, Reason.NONE)
    provable = known & plain
    passages = place.passages() if provable.any() else ()
    _pass(verdicts, records, provable, passages, unprocessed=True)
    covered = place.covered.covers(low, high)
    read = place.dense.covers(low, high) | (covered & plain)
    verdicts.give(known & read & place.same_record(records), State.DELIVERED, Reason.NONE)
    _pass(verdicts, records, provable & ~covered, passages, unprocessed=False)
    behind = known & (high < place.reached)
    if place.case.session.transactional:
        verdicts.give(behind & ~plain, State.INCONCLUSIVE, Reason.TRANSACTIONAL)
    verdicts.give(known & read, State.INCONCLUSIVE, Reason.MAY_BE_ANOTHER)
    verdicts.give(behind, State.INCONCLUSIVE, Reason.UNREPORTED_RANGE)
    verdicts.give(np.ones(low.size, bool), State.PENDING, Reason.GROUP_BEHIND)
    return verdicts


def _pass(
    verdicts: Verdicts,
    records: Records,
    provable: Mask,
    passages: tuple[Passage, ...],
    unprocessed: bool,
) -> None:
    """Give the states of *passages*; what was committed *unprocessed* was read, but no more."""
    for passage in passages:
        if (passage.reason is Reason.COMMITTED_UNPROCESSED) is unprocessed:
            verdicts.give(provable & passage.holds(records), passage.state, passage.reason)


@dataclass(frozen=True)
class _Place:
    """What is known of one group in one partition."""

    case: Case
    group: str
    number: int

    @cached_property
    def _evidence(self) -> GroupEvidence:
        return self.case.topic.groups.get(self.group, GroupEvidence())

    @cached_property
    def _partition(self) -> PartitionEvidence:
        return self.case.topic.partitions.get(self.number, PartitionEvidence())

    @cached_property
    def trail(self) -> GroupTrail:
        """The steps of the group."""
        return GroupTrail(
            self._evidence.consumed.get(self.number, ()),
            self._evidence.commits.get(self.number, ()),
            self._partition.states,
            self._evidence.closed,
            self._same,
        )

    def passages(self) -> tuple[Passage, ...]:
        """What the group passed and cannot have read; on compacted topics less is proven."""
        found = self.trail.passages()
        if self.case.topic.compacted is False:
            return found
        return tuple(passage.if_compacted() for passage in found)

    @cached_property
    def _received(self) -> Longs:
        """Offsets of the block's ids that were delivered to the group, of those still there."""
        return self.case.presence.received(self.group).get(self.number, np.zeros(0, np.int64))

    @cached_property
    def _same(self) -> frozenset[int]:
        """Offsets at which the group was given the id that a scan found there."""
        delivered = self._ids_at(self.case.block.parts(Tier.DELIVERED, self.group))
        scanned = self._ids_at(self.case.block.parts(Tier.IN_LOG))
        return frozenset((np.intersect1d(delivered, scanned) >> BLOCK_BITS).tolist())

    @cached_property
    def _given_another(self) -> bool:
        """Whether the group was given other ids than scans found, and both were written first.

        Nothing is written twice at an offset under the first leader of a partition.
        """
        first = [
            {id(part) for part in parts if part.leader_epoch == 0}
            for parts in (
                self.case.block.parts(Tier.DELIVERED, self.group),
                self.case.block.parts(Tier.IN_LOG),
            )
        ]
        given, found = (self._seen_by(wanted, gone_too=True) for wanted in first)
        both = np.intersect1d(given >> BLOCK_BITS, found >> BLOCK_BITS)
        return np.intersect1d(given, found).size < both.size

    def _ids_at(self, parts: tuple[Part, ...]) -> Longs:
        """Offset and id, as one number, of all that *parts* saw here and that is still there."""
        return self._seen_by({id(part) for part in parts})

    def _seen_by(self, wanted: set[int], gone_too: bool = False) -> Longs:
        found = [np.zeros(0, np.int64)]
        for part, gone in self.case.presence.sightings:
            here = part.partition == self.number and part.runs.offsets is not None
            if here and id(part) in wanted:
                ids, offsets, _ = part.places()
                kept = slice(None) if gone is None or gone_too else ~gone[ids]
                found.append((offsets[kept] << BLOCK_BITS) | ids[kept])
        return np.concatenate(found)

    @cached_property
    def first_owed(self) -> int | None:
        """The first offset the group is known to have read or committed; None where it has none."""
        known = [c.first for c in self.trail.consumed] + [c.offset for c in self.trail.commits]
        committed = self._evidence.first_committed.get(self.number)
        if committed is not None:
            known.append(committed)
        if self._received.size:
            known.append(int(self._received.min()))
        return min(known, default=None)

    @cached_property
    def reached(self) -> int:
        """The group is known to have been at this offset, the highest."""
        known = [c.last + 1 for c in self.trail.consumed] + [c.offset for c in self.trail.commits]
        return max([*known, int(self._received.max(initial=-1)) + 1])

    @cached_property
    def recreated(self) -> bool:
        """Whether the evidence may be of two topics with one name."""
        topic = self.case.topic
        asked = topic.first_asked_ms
        heard = [c.heard_ms for c in self.trail.consumed if not c.topic_id]
        if topic.topic_ids and any(asked is None or ms is None or ms <= asked for ms in heard):
            return True
        if heard and (len(topic.topic_ids) > 1 or self._given_another):
            return True
        ids = {state.topic_id for state in self._partition.states}
        ids |= {read.topic_id for read in self.trail.consumed}
        ids |= {commit.topic_id for commit in self.trail.commits}
        seen = (part for part, _ in self.case.presence.sightings if part.partition == self.number)
        ids |= {part.topic_id for part in seen}
        return len(ids - {""}) > 1

    @cached_property
    def covered(self) -> Coverage:
        """What members have read, whatever they were given of it."""
        return Coverage((c.first, c.last) for c in self.trail.consumed)

    @cached_property
    def dense(self) -> Coverage:
        """What members have read and were given a record of at every offset."""
        return Coverage((c.first, c.last) for c in self.trail.consumed if c.dense)

    def same_record(self, records: Records) -> Mask:
        """Which of *records*, if the group read their offsets, were what it was given there.

        No leader that came after the reading wrote them. None that led before did, whose records
        may have been cut off by then: all was written under the first leader, or a scan that
        began after the reading found them.
        """
        found = np.zeros(records.low.size, bool)
        for seen_after in np.unique(records.seen_after).tolist():
            seen = records.seen_after == seen_after
            read = [
                piece
                for c, first in zip(self.trail.consumed, self._under_first_leader, strict=True)
                if first or (c.received_ms is not None and c.received_ms <= seen_after)
                for piece in self._with_epochs(c)
            ]
            for epoch in sorted({epoch for _, _, epoch in read}):
                known = Coverage((first, last) for first, last, limit in read if limit >= epoch)
                inside = known.covers(records.low, records.high)
                found |= seen & (records.epoch <= epoch) & inside
        return found

    @cached_property
    def _under_first_leader(self) -> list[bool]:
        """For each range whether all of it was written in epoch 0.

        By the member; or no higher epoch was answered until somebody asked after the report.
        """
        ends = self._partition.ends()
        asked = np.unique(ends.after)
        later = int(ends.after[ends.epoch > 0].min(initial=NEVER))
        received = [-1 if c.received_ms is None else c.received_ms for c in self.trail.consumed]
        at = np.searchsorted(asked, received)
        next_asked = np.append(asked, NEVER)[at]
        answered = (np.array(received) >= 0) & (next_asked < later)
        own = (c.leader_epoch == 0 for c in self.trail.consumed)
        return [mine or by for mine, by in zip(own, answered.tolist(), strict=True)]

    def _with_epochs(self, read: Consumed) -> Iterator[tuple[int, int, int]]:
        """The range in two pieces, and up to which epoch a record there is the one that was read.

        The epoch of a range is that of its last record: those before may have been read, then cut
        off and written again. Nothing was written before epoch 0.
        """
        yield read.first, read.last - 1, 0
        yield read.last, read.last, read.leader_epoch or 0

    def without_transactions(self, records: Records) -> Mask:
        """Which of *records* a reader of committed records passes over only if it is moved.

        By the settings of their session, or because their transaction is known to be committed. Or
        by an id of the session that the group was given:
        where all offsets between hold records of the session, no transaction ended in between.
        """
        session, block = self.case.session, self.case.block
        if session.transactional:
            committed: Mask = block.mask(Tier.COMMITTED) & ~block.mask(Tier.ABORTED)
            return committed[records.ids]
        if session.settings.keys() - _SAYS_NOTHING:
            return np.ones(records.low.size, bool)
        places = self.case.presence.places
        here = (places.partition == self.number) & (places.low >= 0) & (places.low == places.high)
        offsets = np.unique(places.low[here])
        run = np.cumsum(np.diff(offsets, prepend=offsets[:1]) != 1)
        given = np.isin(offsets, self._received) | self.dense.covers(offsets, offsets)
        proven = offsets[np.isin(run, run[given])]
        beside: Mask = np.isin(records.low, proven) & (records.low == records.high)
        return beside

    def records(self, ids: Longs) -> Records:
        """Where those of *ids* that are here were seen in the log; each record once."""
        scans = {id(part) for part in self.case.block.parts(Tier.IN_LOG)}
        found = [np.zeros((5, 0), np.int64)]
        for part, gone in self.case.presence.sightings:
            if part.partition != self.number:
                continue
            at, low, high = part.find(ids)
            kept = slice(None) if gone is None else ~gone[ids[at]]
            seen = ids[at[kept]], low[kept], high[kept]
            after = -1 if part.after_ms is None or id(part) not in scans else part.after_ms
            more = np.full((2, seen[0].size), [[self._epoch_of(part)], [after]])
            found.append(np.concatenate((np.stack(seen), more)))
        every, low, high, epoch, after_ms = np.concatenate(found, axis=1)
        order = np.lexsort((high, low, every))
        place = np.stack((every, low, high))[:, order]
        first = np.flatnonzero(np.any(np.diff(place, axis=1, prepend=-2), axis=0))
        if not first.size:
            return Records(every, low, high, epoch, after_ms)
        lowest = np.minimum.reduceat(epoch[order], first)
        newest = np.maximum.reduceat(after_ms[order], first)
        each, lows, highs = place[:, first]
        return Records(each, lows, highs, lowest, newest)

    def _epoch_of(self, part: Part) -> int:
        """No record of *part* has a higher epoch; NEVER: not known.

        By the reporter, or by the cluster's answers.
        """
        own = NEVER if part.leader_epoch is None else part.leader_epoch
        if part.received_ms is None:
            return own
        highest = highest_epoch(self._partition.ends(), part.received_ms)
        return own if highest is None else min(own, highest)


_SAYS_NOTHING = frozenset({"client_id", "host"})
"""Names of a producer: a session of which only these are known may be transactional."""
