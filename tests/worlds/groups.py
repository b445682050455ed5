"""Consumer groups as they really are: positions, commits, what was processed, what was passed."""

from __future__ import annotations

import random
from dataclasses import dataclass, field, replace

from acktrail.audit.wire import Report, Sighting, encode_sightings
from acktrail.contracts.vocabulary import Tier
from tests.worlds.evidence import TOPIC
from tests.worlds.partition import Copy, Partition
from tests.worlds.producers import Host


@dataclass(eq=False)
class Member:
    """One process of a group.

    Some report what they delivered but not which ranges they read, some not which assignment, and
    members that are not audited nothing.
    """

    group: Group
    host: Host
    reporter: str
    audited: bool
    ranges: bool
    counts: bool
    position: dict[int, int] = field(default_factory=dict)
    processed: dict[int, int] = field(default_factory=dict)
    """What it has not read yet, and what it has not processed yet."""
    assignment: dict[int, int] = field(default_factory=dict)
    open_range: dict[int, Report] = field(default_factory=dict)
    part: int = 0
    number: int = 0
    made: list[Report] = field(default_factory=list)
    made_after_cut: dict[int, int] = field(default_factory=dict)
    """The last cut that it noticed."""
    polled: dict[int, list[Copy]] = field(default_factory=dict)
    """Fetched and committed, and not processed yet."""


@dataclass(eq=False)
class Group:
    """What is true of a group, whether or not anybody saw it."""

    name: str
    committed_only: bool
    """isolation.level is read_committed."""
    from_end: bool
    """auto.offset.reset is latest."""
    ahead: bool
    """It commits what it has polled, before it is processed."""
    writes_processed: bool
    """Its commits say in their metadata what has been processed."""
    tracks_epochs: bool
    """The client notices that the log was cut below its position."""
    tells_epochs: bool = False
    """Ranges are reported with the highest leader epoch of their records."""
    tells_topic: bool = False
    """What is read is reported with the topic's id."""
    members: list[Member] = field(default_factory=list)
    owners: dict[int, Member] = field(default_factory=dict)
    committed: dict[int, tuple[int, str]] = field(default_factory=dict)
    """Offset and metadata per partition."""
    received: dict[tuple[str, int], int] = field(default_factory=dict)
    """When each message was processed first."""
    passed: dict[Copy, int] = field(default_factory=dict)
    """Records that were there for the group, and that its position went past without them."""
    expired: dict[Copy, int] = field(default_factory=dict)
    """Records that retention took before the group had read them."""
    began: dict[int, int] = field(default_factory=dict)
    resets: list[tuple[int, int, int, int, str]] = field(default_factory=list)
    """Time, partition, from, to and kind of every move of the position."""

    # -- who has what ----------------------------------------------------------------------------

    def owner(self, number: int, partition: Partition, now: int, chance: random.Random) -> Member:
        if number not in self.owners:
            self.assign(chance.choice(self.members), number, partition, now)
        return self.owners[number]

    def assign(self, member: Member, number: int, partition: Partition, now: int) -> None:
        """From the last commit; without one from where the group is set to begin."""
        before = self.owners.get(number)
        if before is not None and before is not member:
            before.open_range.pop(number, None)
        self.owners[number] = member
        member.assignment[number] = member.assignment.get(number, 0) + 1
        member.open_range.pop(number, None)
        begin = partition.watermark if self.from_end else partition.log.start
        first = self.committed.get(number, (begin, ""))[0]
        if number not in self.committed and before is not None:
            self.pass_over(partition, before.processed[number], begin - 1, now, "latest")
        member.position[number] = member.processed[number] = first
        self.began[number] = min(first, self.began.get(number, first))

    def pass_over(self, partition: Partition, first: int, last: int, now: int, kind: str) -> None:
        """The position moves from *first* beyond *last* without these records."""
        if last < first:
            return
        self.resets.append((now, partition.number, first, last, kind))
        for offset in range(first, last + 1):
            copy = partition.log.records.get(offset)
            if copy is not None and offset < partition.watermark:
                self.passed.setdefault(copy, now)

    # -- reading ---------------------------------------------------------------------------------

    def read(self, number: int, partition: Partition, most: int, now: int, chance) -> None:
        """Poll from the owner's position, and process what was polled before."""
        member = self.owner(number, partition, now, chance)
        log = partition.log
        position = member.position[number]
        if self.tracks_epochs and partition.cuts and partition.cuts[-1][1] < position:
            cut = partition.cuts[-1][1]
            if number not in member.made_after_cut or member.made_after_cut[number] != cut:
                member.made_after_cut[number] = cut
                position = cut
        if position < log.start or position > partition.watermark:
            to = partition.watermark if self.from_end else log.start
            if position > log.end or position < log.start:
                if position < log.start:
                    self._expire(partition, position, log.start, now)
                self.pass_over(partition, max(position, log.start), to - 1, now, "reset")
                position = to
                member.processed[number] = to
        end = self._limit(partition)
        taken, at = [], position
        while at < end and len(taken) < most:
            copy = log.records.get(at)
            if copy is not None and not copy.marker and self._readable(copy, now):
                taken.append(copy)
            at += 1
        member.position[number] = at
        member.processed[number] = min(member.processed[number], at)
        self.process(member, number, taken, now)
        member.processed[number] = at

    def _expire(self, partition: Partition, first: int, start: int, now: int) -> None:
        self.resets.append((now, partition.number, first, start - 1, "expired"))

    def _limit(self, partition: Partition) -> int:
        """The high watermark; for read_committed, the first open transaction."""
        return partition.stable_end if self.committed_only else partition.watermark

    def _readable(self, copy: Copy, now: int) -> bool:
        t = copy.transaction
        return not self.committed_only or t is None or t.committed_at <= now

    def process(self, member: Member, number: int, copies: list[Copy], now: int) -> None:
        """The application has them; what is audited reports them."""
        for copy in copies:
            if copy.session:
                self.received.setdefault((copy.session, copy.seq), now)
        if not member.audited or not copies:
            return
        at = member.host.clock(now)
        seen = [
            Sighting(
                c.session, TOPIC, c.seq, Tier.DELIVERED, at, number, c.offset, self.name,
                leader_epoch=c.epoch, topic_id=c.topic_id if self.tells_topic else None,
            )
            for c in copies
            if c.session and c.named
        ]  # fmt: skip
        member.number += 1
        parts = encode_sightings(seen, member.reporter, member.number, at, member.part)
        member.part += len(parts)
        member.made += parts
        if member.ranges:
            self._note_ranges(member, number, copies, at)

    def _note_ranges(self, member: Member, number: int, copies: list[Copy], at: int) -> None:
        """Contiguous offsets go on in the open part; a jump opens a new one."""
        topic_id = copies[0].topic_id if self.tells_topic else None
        for first, last in _runs([c.offset for c in copies]):
            epoch = max(c.epoch for c in copies if first <= c.offset <= last)
            epoch = epoch if self.tells_epochs else None
            before = member.open_range.get(number)
            if before is not None and before.last_offset + 1 == first:
                member.number += 1
                row = replace(
                    before, last_offset=last, number=member.number, reported_ms=at, ended_ms=at,
                    records=before.records + last - first + 1,
                    leader_epoch=None if epoch is None else max(epoch, before.leader_epoch or 0),
                )  # fmt: skip
            else:
                member.part += 1
                row = Report(
                    reporter=member.reporter, tier=Tier.CONSUMED, topic=TOPIC,
                    number=member.number, reported_ms=at, partition=number, group=self.name,
                    part=member.part, first_offset=first, last_offset=last,
                    records=last - first + 1, began_ms=at, ended_ms=at,
                    assignment=member.assignment[number] if member.counts else None,
                    leader_epoch=epoch,
                    topic_id=topic_id,
                )  # fmt: skip
                member.part += 1
            member.open_range[number] = row
            member.made.append(row)

    # -- commits and moves -----------------------------------------------------------------------

    def commit(self, number: int) -> None:
        """The owner commits; one that commits ahead may have polled more than it processed."""
        member = self.owners.get(number)
        if member is None:
            return
        position = member.position[number]
        processed = member.processed[number]
        text = f"acktrail:processed={processed}" if self.writes_processed else ""
        self.committed[number] = (position, text)

    def poll_ahead(self, number: int, partition: Partition, most: int, now: int) -> None:
        """Poll and commit without processing; whoever dies now has skipped it."""
        member = self.owners.get(number)
        if member is None or not partition.readable:
            return
        start = member.position[number]
        if member.processed[number] != start or start < partition.log.start:
            return
        end = min(max(start, self._limit(partition)), start + most)
        copies = [partition.log.records.get(o) for o in range(start, end)]
        member.polled[number] = [c for c in copies if c and not c.marker and self._readable(c, now)]
        member.position[number] = end

    def finish(self, number: int, now: int) -> None:
        """Process what was polled ahead."""
        member = self.owners.get(number)
        if member is not None and member.processed[number] < member.position[number]:
            self.process(member, number, member.polled.pop(number, []), now)
            member.processed[number] = member.position[number]

    def kill(self, member: Member, partitions: list[Partition], now: int) -> None:
        """The process ends; what it polled and committed, but did not process, nobody gets."""
        for number in [n for n, owner in self.owners.items() if owner is member]:
            committed = self.committed.get(number, (0, ""))[0]
            if partitions[number].leader is not None:
                self.pass_over(
                    partitions[number], member.processed[number],
                    min(member.position[number], committed) - 1, now, "commit_ahead",
                )  # fmt: skip
            del self.owners[number]
        self._forget(member)

    def close(self, member: Member, now: int) -> list[Report]:
        """The process ends in good order: all that it has is processed, committed and reported."""
        for number in [n for n, owner in self.owners.items() if owner is member]:
            self.finish(number, now)
            self.commit(number)
            del self.owners[number]
        made, member.made = member.made, []
        if member.audited:
            at = member.host.clock(now)
            member.number += 1
            made.append(
                Report(
                    reporter=member.reporter, tier=Tier.HEARTBEAT, topic=TOPIC,
                    number=member.number, reported_ms=at, group=self.name, closed=True,
                )
            )  # fmt: skip
        self._forget(member)
        return made

    def _forget(self, member: Member) -> None:
        """The next process of this name is another one."""
        member.open_range.clear()
        member.polled.clear()
        member.position.clear()
        member.processed.clear()
        member.assignment.clear()
        member.made.clear()
        member.reporter += "'"
        member.part = 0

    def reset(self, number: int, partition: Partition, to: int, now: int) -> None:
        """An admin moves the commit while nobody is there."""
        before = self.committed.get(number)
        self.owners.pop(number, None)
        self.committed[number] = (to, "")
        if before is not None and before[0] < to:
            self.pass_over(partition, max(before[0], partition.log.start), to - 1, now, "admin")

    def jump(self, number: int, partition: Partition, now: int) -> None:
        """The owner seeks to the end."""
        member = self.owners.get(number)
        if member is None:
            return
        end = self._limit(partition)
        first = max(member.processed[number], partition.log.start)
        self.pass_over(partition, first, end - 1, now, "seek")
        member.position[number] = member.processed[number] = max(end, partition.log.start)

    def rewind(self, number: int, partition: Partition, chance: random.Random) -> None:
        """The owner seeks back."""
        member = self.owners.get(number)
        if member is None:
            return
        start = partition.log.start
        to = chance.randint(start, max(start, member.position[number]))
        member.position[number] = member.processed[number] = to


def _runs(offsets: list[int]) -> list[tuple[int, int]]:
    found: list[list[int]] = []
    for offset in offsets:
        if found and offset == found[-1][1] + 1:
            found[-1][1] = offset
        else:
            found.append([offset, offset])
    return [(first, last) for first, last in found]
