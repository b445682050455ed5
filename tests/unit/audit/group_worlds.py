"""Small histories of one partition and one group, where the truth about every record is known.

Leaders change and cut the log, transactions abort, retention takes records, members come, go, seek
and die, an admin moves the group, reports come late or never; and all of it leaves evidence.
"""

from __future__ import annotations

import random
from collections.abc import Callable
from dataclasses import dataclass, field, replace
from typing import Any

from acktrail.audit.block_account import StateRange
from acktrail.audit.session_account import accounts_of
from acktrail.audit.topic_evidence import topic_of
from acktrail.audit.wire import Report, Sighting, encode_sightings
from acktrail.contracts.vocabulary import Tier
from tests.unit.audit.group_scenes import AT, Row, commit, read, state
from tests.worlds.judged import findings_of, session_rows
from tests.worlds.world import Evidence

MARKER = -1


@dataclass
class Record:
    seq: int
    epoch: int
    aborted: bool = False


@dataclass
class Member:
    name: str
    told_ids: bool
    told_epochs: bool
    assignment: int = 0
    part: int = 0
    waiting: list[tuple[Row, list[Report]]] = field(default_factory=list)
    """What it has read and not reported: an agent receives it in this order."""


@dataclass
class Made:
    """One piece of evidence, and who made it when."""

    at: int
    source: str
    row: Row | None = None
    reports: list[Report] = field(default_factory=list)


class GroupWorld:
    """One history, made from a seed."""

    def __init__(self, seed: int, steps: int = 90) -> None:
        self.chance = chance = random.Random(seed)
        self.transactional = chance.random() < 0.2
        self.committed_only = chance.random() < 0.5
        self.calm = chance.random() < 0.4
        """No leader changes."""
        self.steady = chance.random() < 0.4
        """One member from the beginning to the end."""
        self.log: dict[int, Record] = {}
        self.start = self.end = self.epoch = self.next_seq = 0
        self.now = self.receipt = 0
        self.made: list[Made] = []
        self.received: dict[tuple[int, int], int] = {}
        """When the group first received the record of an id at an offset, reported or not."""
        self.position = self.commit_offset = 0
        self.metadata = ""
        self.members: list[Member] = []
        self.owner: Member | None = None
        self._join()
        operations = self._operations()
        for _ in range(steps):
            self.now += 1
            chance.choices([o for o, _ in operations], [w for _, w in operations])[0]()
        for member in self.members:
            self._deliver(member, all_of_it=True)
        self.now += 1
        self.answer()
        self.scan()

    def _operations(self) -> list[tuple[Callable[[], None], int]]:
        found = [
            (self.produce, 10), (self.read, 14), (self.commit, 6), (self.report, 10),
            (self.answer, 12), (self.scan, 1), (self.jump, 2), (self.retain, 1),
        ]  # fmt: skip
        if not self.steady:
            found += [
                (self.stop, 2), (self.start_again, 3), (self.reset, 2), (self.rebalance, 1),
                (self.die, 1),
            ]  # fmt: skip
        return found if self.calm else [*found, (self.cut, 1)]

    # -- the log -----------------------------------------------------------------------------------

    def produce(self) -> None:
        aborted = self.transactional and self.chance.random() < 0.4
        for _ in range(self.chance.randint(1, 5)):
            again = not self.calm and self.next_seq and self.chance.random() < 0.03
            seq = self.chance.randrange(self.next_seq) if again else self.next_seq
            self.next_seq += not again
            self._append(Record(seq, self.epoch, aborted))
        if self.transactional:
            self._append(Record(MARKER, self.epoch))

    def _append(self, record: Record) -> None:
        self.log[self.end] = record
        self.end += 1

    def cut(self) -> None:
        self.epoch += 1
        self.end = self.chance.randint(max(self.start, self.end - 8), self.end)
        self.log = {o: r for o, r in self.log.items() if o < self.end}

    def retain(self) -> None:
        self.start = self.chance.randint(self.start, self.end)
        self.log = {o: r for o, r in self.log.items() if o >= self.start}

    # -- the group ---------------------------------------------------------------------------------

    def _join(self) -> None:
        told_ids, told_epochs = self.chance.random() < 0.5, self.chance.random() < 0.5
        member = Member(f"m{len(self.members)}", told_ids, told_epochs)
        self.members.append(member)
        self._assign(member)

    def _assign(self, member: Member) -> None:
        self.owner = member
        member.assignment += 1
        self.position = self.commit_offset

    def read(self) -> None:
        if self.owner is None:
            return
        if not self.start <= self.position <= self.end:  # auto.offset.reset
            self.position = self.start if self.chance.random() < 0.5 else self.end
        got: list[tuple[int, Record]] = []
        for offset in range(
            self.position, min(self.end, self.position + self.chance.randint(1, 8))
        ):
            self.position = offset + 1
            record = self.log[offset]
            if record.seq != MARKER and not (self.committed_only and record.aborted):
                got.append((offset, record))
                self.received.setdefault((record.seq, offset), self.now)
        ranges: list[list[tuple[int, Record]]] = []
        for offset, record in got:
            if ranges and ranges[-1][-1][0] == offset - 1:
                ranges[-1].append((offset, record))
            else:
                ranges.append([(offset, record)])
        for each in ranges:
            self._note(self.owner, each)

    def _note(self, member: Member, got: list[tuple[int, Record]]) -> None:
        member.part += 10
        row = read(
            got[0][0], got[-1][0], None, reporter=member.name, assignment=member.assignment,
            part=member.part, leader_epoch=got[-1][1].epoch if member.told_epochs else None,
        )  # fmt: skip
        seen = [
            Sighting("s", "t", r.seq, Tier.DELIVERED, AT + self.now, 0, o, group="g")
            for o, r in got
            if member.told_ids
        ]
        made = encode_sightings(seen, member.name, self.now, AT, first_part=member.part)
        member.waiting.append((row, made))

    def report(self) -> None:
        self._deliver(self.chance.choice(self.members))

    def _deliver(self, member: Member, all_of_it: bool = False) -> None:
        while member.waiting and (all_of_it or self.chance.random() < 0.8):
            row, reports = member.waiting.pop(0)
            self.receipt += 1
            reports = [replace(r, received_ms=self.receipt) for r in reports]
            row = row | {"received_ms": self.receipt}
            self.made.append(Made(self.now, member.name, row, reports))

    def commit(self) -> None:
        if self.owner is not None:
            self.commit_offset, self.metadata = self.position, ""

    def jump(self) -> None:
        """The application seeks: mostly forward."""
        if self.owner is not None:
            first = self.position if self.chance.random() < 0.8 else self.start
            self.position = self.chance.choice(
                [self.end, self.chance.randint(*sorted((first, self.end)))]
            )

    def stop(self) -> None:
        """In good order: it commits, and has reported all that it read."""
        if self.owner is None:
            return
        self.commit()
        owner, self.owner = self.owner, None
        if self.chance.random() < 0.7:
            self._deliver(owner, all_of_it=True)
            row = {"kind": "member_closed", "group": "g", "reporter": owner.name, "partition": None}
            self.made.append(Made(self.now, owner.name, row))

    def die(self) -> None:
        self.owner = None

    def start_again(self) -> None:
        if self.owner is None:
            self._join()

    def rebalance(self) -> None:
        """Another member gets the partition, or the same one again."""
        if self.owner is not None and self.chance.random() < 0.7:
            self._join()
        elif self.owner is not None:
            self._assign(self.owner)

    def reset(self) -> None:
        if self.owner is None:
            forward = self.chance.random() < 0.7
            first = min(self.commit_offset, self.end) if forward else self.start
            self.commit_offset = self.chance.randint(first, self.end)

    # -- what is asked -----------------------------------------------------------------------------

    def answer(self) -> None:
        made: list[Row] = [
            state(self.receipt, self.end, self.start, self.epoch, at_ms=AT + self.now * 2),
            commit(self.receipt, self.commit_offset, int(self.owner is not None),
                   at_ms=AT + self.now * 2 + 1),
        ]  # fmt: skip
        self.made += [Made(self.now, row["kind"], row) for row in made]

    def scan(self) -> None:
        after, self.receipt = self.receipt, self.receipt + 1
        seen = [
            Sighting("s", "t", r.seq, Tier.IN_LOG, AT + self.now, 0, o, leader_epoch=r.epoch)
            for o, r in sorted(self.log.items())
            if r.seq != MARKER
        ]
        made = encode_sightings(seen, f"scan{self.now}", self.now, AT)
        reports = [replace(r, after_ms=after, received_ms=self.receipt) for r in made]
        self.made.append(Made(self.now, "scan", None, reports))

    # -- views -------------------------------------------------------------------------------------

    def view(self, chance: random.Random) -> list[Made]:
        """What somebody may know of it: a part of the time, of the sources, of the answers."""
        until = chance.choice([self.now, chance.randint(1, self.now)])
        left_out = {m.name for m in self.members if chance.random() < 0.15}
        if chance.random() < 0.1:
            left_out.add(chance.choice(["state", "commit"]))
        kept = chance.choice([1.0, 1.0, 0.5, 0.2])
        thinned = ("state", "commit", "scan")
        return [
            made
            for made in self.made
            if made.at <= until
            if made.source not in left_out
            if made.source not in thinned or chance.random() < kept
        ]

    def judge(self, view: list[Made]) -> list[StateRange]:
        """What the rules find that the group did not get."""
        rows: list[Any] = [made.row for made in view if made.row is not None]
        rows.append({"kind": "policy", "compacted": False, "partition": None, "at_ms": 0})
        settings = {"acks": "all"} | ({"transactional.id": "x"} if self.transactional else {})
        beat = Report("p", Tier.HEARTBEAT, "t", 1, AT, session="s", settings=settings)
        reports = [beat, *(report for made in view for report in made.reports)]
        return [
            finding
            for account in accounts_of(session_rows(Evidence(reports), "s"), topic_of(rows))
            if account["group"] == "g"
            for finding in findings_of(account)
        ]

    def got(self, finding: StateRange, until: int) -> set[tuple[int, int]]:
        """Records of *finding* that the group had received by then, reported or not."""
        first, last = finding.first_offset or 0, finding.last_offset or 0
        return {
            (seq, offset)
            for (seq, offset), at in self.received.items()
            if at <= until
            if finding.first_seq <= seq <= finding.last_seq and first <= offset <= last
        }
