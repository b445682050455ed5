"""Ranges of offsets that a group passed, and that nobody in it can have read.

Jumps alone prove nothing. A passage is proven where the log ended below it at a moment from which
on it is known who could read: one member, while the partition was assigned to it, or nobody, while
the group had no members. Moments are ordered by receipts, by what one agent asked one after the
other, and by offsets: whoever read an offset came after an answer in which the log ended below it.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace
from functools import cached_property
from itertools import groupby, pairwise

from acktrail.audit.log_end import NEVER
from acktrail.audit.reasons import Reason
from acktrail.audit.topic_evidence import Consumed, GroupCommit, StateAt
from acktrail.audit.wire.run_lists import Longs, Mask
from acktrail.contracts.vocabulary import State

Moment = tuple[int, int]
"""The newest receipt before a question, and its time: the order of one agent's questions."""


@dataclass(frozen=True)
class Passage:
    """Offsets that a group passed without reading them; what a record must fulfil besides."""

    first: int
    last: int
    state: State
    reason: Reason
    epoch: int = NEVER
    """A record of a higher leader epoch may have been written after the group had passed."""
    kept_from: int = 0
    """The log began at or below this offset after the group had passed."""
    seen_after: int = NEVER
    """A scan that found it with this `after_ms` or a later one began after the group had passed."""

    def holds(self, records: Records) -> Mask:
        """Which of *records* were in the log when the group passed them, by this passage."""
        inside = (records.low >= self.first) & (records.high <= self.last)
        kept = (records.low >= self.kept_from) | (records.seen_after >= self.seen_after)
        held: Mask = inside & (records.epoch <= self.epoch) & kept
        return held

    def if_compacted(self) -> Passage:
        """The same where compaction may have removed records above the start of the log.

        Only what was seen in the log later was there when the group passed it.
        """
        return replace(self, kept_from=NEVER)


@dataclass(frozen=True)
class Records:
    """Records of a block in one partition, as they were seen in the log."""

    ids: Longs
    low: Longs
    """The lowest and the highest offset that each may have; the same where known, -1 for none."""
    high: Longs
    epoch: Longs
    """None was written in a higher leader epoch than this; NEVER: not known."""
    seen_after: Longs
    """The highest `after_ms` of a scan that found it; -1 for none."""


@dataclass(frozen=True)
class Assignment:
    """What one member reported of one assignment of the partition, in the order of reading."""

    reporter: str
    ranges: tuple[Consumed, ...]

    @cached_property
    def begun_ms(self) -> int:
        """The assignment had begun before any question with this `after_ms`; NEVER: not known."""
        return min((r.received_ms for r in self.ranges if r.received_ms is not None), default=NEVER)

    @cached_property
    def first(self) -> int:
        """The lowest offset that was read."""
        return min(r.first for r in self.ranges)

    @cached_property
    def last(self) -> int:
        """The highest offset that was read."""
        return max(r.last for r in self.ranges)


@dataclass(frozen=True)
class GroupTrail:
    """The steps of one group through one partition."""

    consumed: tuple[Consumed, ...] = ()
    commits: tuple[GroupCommit, ...] = ()
    states: tuple[StateAt, ...] = ()
    closed: frozenset[str] = frozenset()
    """Members that have reported all that they read."""
    same: frozenset[int] = frozenset()
    """Offsets at which the group was given the very record that a scan found there."""

    @cached_property
    def assignments(self) -> tuple[Assignment, ...]:
        """What is known of each; ranges without one prove nothing of what lies between."""
        known = [(c.reporter, c.assignment, c) for c in self.consumed if c.assignment is not None]
        ordered = sorted(known, key=lambda k: (k[0], k[1], k[2].part))
        return tuple(
            Assignment(reporter, tuple(c for _, _, c in same))
            for (reporter, _), same in groupby(ordered, key=lambda k: k[:2])
        )

    def passages(self) -> tuple[Passage, ...]:
        """All that is proven; of several that hold for a record, the first counts."""
        found = [*self._jumped(), *self._while_empty()]
        return tuple(p for p in found if p.first <= p.last)

    # -- one member, while the partition was its own -----------------------------------------------

    def _jumped(self) -> Iterator[Passage]:
        """A member read before and after the records, and they were appended in between.

        So no member that had the partition earlier read them. None that has it later will, where
        a commit passed them while the partition was still the member's.
        """
        for mine in self.assignments:
            gaps = [(b, a) for b, a in pairwise(mine.ranges) if a.first > b.last + 1]
            if not gaps:
                continue
            appended = self._appended_since(mine.begun_ms)
            committed = self._committed_while_held(mine)
            for before, after in gaps:
                first, last = max(before.last + 1, appended), after.first - 1
                epoch = NEVER if after.first in self.same else before.leader_epoch or 0
                yield from self._expired_on_the_way(mine, first, after, epoch)
                passed_ms = NEVER if after.received_ms is None else after.received_ms
                yield Passage(
                    first,
                    min(last, committed - 1),
                    State.SKIPPED_BY_CONSUMER,
                    Reason.JUMPED_OVER,
                    epoch=epoch,
                    kept_from=self._kept_from(passed_ms),
                    seen_after=passed_ms,
                )

    def _expired_on_the_way(
        self, mine: Assignment, first: int, after: Consumed, epoch: int
    ) -> Iterator[Passage]:
        """The log began above them, and the group, still the member's, had not come to them."""
        for state in self._starts:
            if not self._read_beyond(mine, state):
                continue
            behind = self._lowest_commit_after(state)
            if state.latest is not None and state.latest <= after.first:
                behind = first  # the member came to the records above after this answer
            last = min(state.earliest or 0, after.first) - 1
            yield Passage(
                max(first, behind), last, State.EXPIRED_BEFORE_READ, Reason.EXPIRED, epoch=epoch
            )

    def _appended_since(self, receipt_ms: int) -> int:
        """All from this offset on was appended after an answer asked after *receipt_ms*."""
        ends = (s.latest for s in self._ends if s.after_ms is not None and s.after_ms >= receipt_ms)
        return min((end for end in ends if end is not None), default=NEVER)

    def _kept_from(self, receipt_ms: int) -> int:
        """The log began at or below this offset at some time after *receipt_ms*."""
        return min(
            (
                s.earliest
                for s in self.states
                if s.earliest is not None and s.after_ms is not None and s.after_ms >= receipt_ms
            ),
            default=NEVER,
        )

    def _committed_while_held(self, mine: Assignment) -> int:
        """The highest offset that was committed while the partition was the member's; 0 for none.

        It was still the member's if it has read since what was not in the log when, later than
        the commit, the cluster was asked for its end.
        """
        later: list[Moment] = []
        for state in self._ends:
            at = _moment(state)
            if at is not None and self._read_beyond(mine, state):
                later.append(at)
        newest = max(later, default=None)
        if newest is None:
            return 0
        known = ((_moment(c), c.offset) for c in self.commits)
        return max((offset for at, offset in known if at is not None and at < newest), default=0)

    def _read_beyond(self, mine: Assignment, state: StateAt) -> bool:
        """Whether the member has read an offset after the log ended below it, not before a cut."""
        end, epoch = state.latest, state.epoch
        for read in mine.ranges:
            if end is None or read.last < end:
                continue
            if epoch is not None and epoch <= (read.leader_epoch or 0):
                return True
            if any(end <= offset <= read.last for offset in self.same if offset >= read.first):
                return True
        return False

    # -- nobody, while the group was empty ---------------------------------------------------------

    def _while_empty(self) -> Iterator[Passage]:
        """The commit or the log's start passed them while the group had no members."""
        asked = [c for c in self.commits if c.after_ms is not None]
        asked.sort(key=lambda c: (c.after_ms or 0, c.at_ms, c.offset, c.metadata))
        for empty, together in groupby(asked, key=lambda c: c.empty):
            if not empty:
                continue
            answers = list(together)
            unread = self._unread_since(answers[0])
            for before, after in pairwise(answers):
                if after.offset > before.offset and self._resumed(after):
                    yield self._at(after, max(before.offset, unread), Reason.RESET_WHILE_EMPTY)
            for answer in answers:
                yield self._expired_meanwhile(answer, unread)
            last = answers[-1]
            if last.processed is not None and self._resumed(last):
                yield self._at(last, last.processed, Reason.COMMITTED_UNPROCESSED)

    def _unread_since(self, empty: GroupCommit) -> int:
        """All from this offset on was appended when nobody was there to read it.

        After the group was found *empty*; or while the partition was the last member's, which
        closed in good order, and whose last commit is the group's.
        """
        began = _moment(empty)
        ends = [s.latest or 0 for s in self._ends if (at := _moment(s)) and began and at > began]
        unread = min(ends, default=NEVER)
        earlier = [a for a in self.assignments if a.first <= empty.offset]
        members = {c.reporter for c in self.consumed if c.first <= empty.offset}
        if not earlier or not members <= self.closed:
            return unread
        last = max(earlier, key=lambda a: a.last)
        if empty.offset > last.last + 1:
            return unread
        return min(unread, max(last.last + 1, self._appended_since(last.begun_ms)))

    def _resumed(self, answer: GroupCommit) -> bool:
        """Whether a member began to read at the committed offset or above, after the answer."""
        after = NEVER if answer.after_ms is None else answer.after_ms
        return any(
            a.first >= answer.offset and after < a.begun_ms < NEVER for a in self.assignments
        )

    def _at(self, answer: GroupCommit, first: int, reason: Reason) -> Passage:
        """Records from *first* to the commit, of those that were in the log before the answer."""
        at = _moment(answer)
        before = [s for s in self._ends if (m := _moment(s)) and at and m <= at]
        if at is None or not before:
            return Passage(0, -1, State.SKIPPED_BY_CONSUMER, reason)
        state = max(before, key=lambda s: (_moment(s), s.epoch or 0, s.latest or 0))
        starts = (s.earliest for s in self.states if (m := _moment(s)) and m > at)
        return Passage(
            first,
            min(answer.offset, state.latest or 0) - 1,
            State.SKIPPED_BY_CONSUMER,
            reason,
            epoch=state.epoch or 0,
            kept_from=min((start for start in starts if start is not None), default=NEVER),
            seen_after=at[0] + 1,
        )

    def _expired_meanwhile(self, answer: GroupCommit, unread: int) -> Passage:
        """Records that the log lost above the group's commit while nobody could read them."""
        at = _moment(answer)
        starts = (s.earliest for s in self._starts if (m := _moment(s)) and at and m <= at)
        last = max((start for start in starts if start is not None), default=0) - 1
        first = max(answer.offset, unread)
        return Passage(first, last, State.EXPIRED_BEFORE_READ, Reason.EXPIRED)

    def _lowest_commit_after(self, state: StateAt) -> int:
        """The lowest offset that the group had committed after *state* was asked."""
        at = _moment(state)
        later = (c.offset for c in self.commits if (m := _moment(c)) and at and m >= at)
        return min(later, default=NEVER)

    @cached_property
    def _ends(self) -> tuple[StateAt, ...]:
        return tuple(s for s in self.states if s.latest is not None and s.after_ms is not None)

    @cached_property
    def _starts(self) -> tuple[StateAt, ...]:
        """The first answer for each offset at which the log began."""
        found: dict[int, StateAt] = {}
        known = [s for s in self.states if s.earliest and s.after_ms is not None]
        for state in sorted(known, key=lambda s: (s.after_ms or 0, s.at_ms), reverse=True):
            found[state.earliest or 0] = state
        return tuple(found.values())


def _moment(answer: StateAt | GroupCommit) -> Moment | None:
    """When it was asked; None where its place in the order is not known."""
    return None if answer.after_ms is None else (answer.after_ms, answer.at_ms)
