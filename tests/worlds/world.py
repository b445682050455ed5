"""A simulated cluster: logs with leader epochs, producers, groups, scans; and what each reports.

The world knows the truth (what is in each log), and every part of it leaves evidence as real
clients do: late, missing, replayed, restarted. Time moves by itself.
"""

from __future__ import annotations

import random
from dataclasses import dataclass, field, replace

from acktrail.audit.wire import Report, Sighting, bucket_of, encode_sightings
from acktrail.contracts.vocabulary import Tier

TOPIC = "orders"
START_MS = 1_800_000_000_000
LAG_MS = 5_000


@dataclass
class Record:
    session: str
    seq: int
    epoch: int


@dataclass
class Log:
    """One partition: offset to record, what retention took, and the leader's epoch."""

    records: dict[int, Record] = field(default_factory=dict)
    earliest: int = 0
    end: int = 0
    epoch: int = 0

    def append(self, session: str, seq: int) -> int:
        self.records[self.end] = Record(session, seq, self.epoch)
        self.end += 1
        return self.end - 1

    def cut(self, to: int) -> None:
        self.epoch += 1
        self.end = max(to, self.earliest)
        self.records = {o: r for o, r in self.records.items() if o < self.end}

    def holds(self, session: str, seq: int) -> bool:
        return any((r.session, r.seq) == (session, seq) for r in self.records.values())


@dataclass
class Member:
    """One process of a group: a reporter with a position in each partition that it owns.

    Some report what they delivered but not which ranges they read, some not which assignment.
    """

    reporter: str
    group: str
    ranges: bool = True
    counts: bool = True
    position: dict[int, int] = field(default_factory=dict)
    assignment: dict[int, int] = field(default_factory=dict)
    part: int = 0


@dataclass
class Group:
    """What is true of a group, whether or not anybody saw it."""

    seen: str
    """When its commits are seen: always, late (first long after the fact) or never."""
    from_end: bool
    """auto.offset.reset: where it begins in a partition without a commit."""
    owners: dict[int, Member] = field(default_factory=dict)
    committed: dict[int, int] = field(default_factory=dict)
    received: set[tuple[str, int]] = field(default_factory=set)
    """(session, seq) of every record that a member received and lived to report."""


@dataclass
class Producer:
    session: str
    reporter: str
    acks0: bool = False
    next_seq: int = 0
    part: int = 0
    alive: bool = True
    minutes: dict[int, int] = field(default_factory=dict)
    """Epoch minute and the first seq sent in it."""
    seen: list[Sighting] = field(default_factory=list)


@dataclass(frozen=True)
class StateRow:
    partition: int
    at_ms: int
    earliest: int
    latest: int
    epoch: int
    topic_id: str


@dataclass(frozen=True)
class CommitRow:
    group: str
    partition: int
    at_ms: int
    offset: int
    metadata: str


@dataclass
class Evidence:
    """All that the judges may look at."""

    reports: list[Report] = field(default_factory=list)
    states: list[StateRow] = field(default_factory=list)
    commits: list[CommitRow] = field(default_factory=list)
    compacted: bool = False


class World:
    """One history, made from a seed."""

    def __init__(self, seed: int, steps: int = 30) -> None:
        self.seed = seed
        self.chance = random.Random(seed)
        self.now = START_MS
        self.number = 0
        self.topic_id = "t1"
        self.logs = {p: Log() for p in range(self.chance.choice([1, 1, 2]))}
        self.evidence = Evidence(compacted=self.chance.random() < 0.07)
        self.producers = [self._producer(i) for i in range(self.chance.choice([1, 1, 2]))]
        self.members = [self._member(i) for i in range(self.chance.choice([0, 1, 2, 3]))]
        self.groups = {m.group: self._group() for m in self.members}
        self.late = START_MS + steps * 1_000
        self.quiet = self.chance.random() < 0.3  # histories without strange events
        for _ in range(steps):
            self.now += self.chance.choice([100, 1_000, 4_000])
            self.chance.choices(*self._steps())[0]()
        self._end()

    def _steps(self):
        steps = [
            (self.produce, 10), (self.report, 4), (self.snapshot, 4), (self.consume, 5),
            (self.commit, 2), (self.scan, 2),
        ]  # fmt: skip
        if not self.quiet:
            steps += [
                (self.cut, 2), (self.rebalance, 1), (self.expire, 1), (self.jump, 1),
                (self.crash, 1), (self.replay, 1), (self.restart_reporter, 1), (self.rewind, 1),
            ]  # fmt: skip
        if self.evidence.compacted:
            steps.append((self.compact, 3))
        return [s for s, _ in steps], [w for _, w in steps]

    def _producer(self, index: int) -> Producer:
        return Producer(self._session(index), f"p{index}", acks0=self.chance.random() < 0.2)

    def _member(self, index: int) -> Member:
        ranges, counts = self.chance.random() < 0.8, self.chance.random() < 0.8
        return Member(f"m{index}", f"g{index % 2}", ranges, counts)

    def _group(self) -> Group:
        seen = self.chance.choice(["always", "always", "late", "never"])
        return Group(seen, from_end=self.chance.random() < 0.3)

    def _session(self, index: int) -> str:
        """A name that no other world has, and that shares one of a few buckets."""
        names = (f"s{index}-{self.seed}-{attempt}" for attempt in range(10_000))
        return next(name for name in names if bucket_of(name, 0) < "x04")

    # -- what happens ----------------------------------------------------------------------------

    def produce(self) -> None:
        alive = [p for p in self.producers if p.alive]
        if not alive:
            return
        producer = self.chance.choice(alive)
        for _ in range(self.chance.choice([1, 3, 6])):
            self._send(producer)

    def _send(self, producer: Producer) -> None:
        seq, producer.next_seq = producer.next_seq, producer.next_seq + 1
        producer.minutes.setdefault(self.now // 60_000, seq)
        number = self.chance.choice(list(self.logs))
        log = self.logs[number]
        if self.chance.random() < 0.8:
            self._note(producer, seq, Tier.SENT, -1, None)
        if producer.acks0:
            if self.chance.random() < 0.9:
                log.append(producer.session, seq)
            if self.chance.random() < 0.95:
                self._note(producer, seq, Tier.SENT_UNACKED, number, None)
            return
        fate = self.chance.random()
        if fate < 0.72:
            offset = log.append(producer.session, seq)
            if fate < 0.06:  # the ack was lost, and a retry stored it again
                offset = log.append(producer.session, seq)
            self._note(producer, seq, Tier.ACKED, number, offset)
        elif fate < 0.76:
            log.append(producer.session, seq)
            self._note(producer, seq, Tier.ACKED_NO_OFFSET, number, None)
        elif fate < 0.84:
            if fate < 0.77:
                log.append(producer.session, seq)  # a ghost
            self._note(producer, seq, Tier.FAILED, -1, None, "NOT_ENOUGH_REPLICAS")
        elif fate < 0.94:
            if fate < 0.89:
                log.append(producer.session, seq)
            known = number if fate < 0.87 else -1
            self._note(producer, seq, Tier.INDETERMINATE, known, None, "_TIMED_OUT")
        elif fate < 0.97:
            log.append(producer.session, seq)

    def _note(self, producer, seq, tier, partition, offset, error=None) -> None:
        at = self.now + self.chance.choice([0, 5, 50])
        producer.seen.append(
            Sighting(producer.session, TOPIC, seq, tier, at, partition, offset, error=error)
        )

    def cut(self) -> None:
        log = self.chance.choice(list(self.logs.values()))
        log.cut(self.chance.randint(log.earliest, log.end))

    def expire(self) -> None:
        log = self.chance.choice(list(self.logs.values()))
        log.earliest = self.chance.randint(log.earliest, log.end)
        log.records = {o: r for o, r in log.records.items() if o >= log.earliest}

    def compact(self) -> None:
        log = self.chance.choice(list(self.logs.values()))
        for offset in list(log.records)[:-1]:
            if self.chance.random() < 0.3:
                del log.records[offset]

    def crash(self) -> None:
        """A producer dies; what it had not reported is gone."""
        producer = self.chance.choice(self.producers)
        producer.alive = False
        producer.seen.clear()

    def restart_reporter(self) -> None:
        producer = self.chance.choice(self.producers)
        producer.reporter += "x"

    # -- what is reported ------------------------------------------------------------------------

    def report(self) -> None:
        for producer in self.producers:
            if producer.alive:
                self._report(producer)

    def _report(self, producer: Producer) -> None:
        self.number += 1
        made = encode_sightings(
            producer.seen, producer.reporter, self.number, self.now, producer.part
        )
        producer.part += len(made)
        producer.seen = []
        if self.chance.random() < 0.93:  # else the report never arrives
            self._arrive(made)
            if made and self.chance.random() < 0.2:  # an older version of the same part, late
                old = self.chance.choice(made)
                older = encode_sightings([], old.reporter, 0, self.now)
                assert older == []
                self.evidence.reports.append(replace(old, number=old.number - 1, ids=b"\x00"))
        if self.chance.random() < 0.5:
            self._beat(producer)

    def _beat(self, producer: Producer, closed: bool = False) -> None:
        self.evidence.reports.append(
            Report(
                reporter=producer.reporter,
                tier=Tier.HEARTBEAT,
                topic=TOPIC,
                number=self.number,
                reported_ms=self.now,
                session=producer.session,
                settings={"delivery.timeout.ms": "8000", "client_id": producer.session},
                minutes=tuple(n for pair in producer.minutes.items() for n in pair),
                closed=closed,
            )
        )

    def _arrive(self, reports: list[Report]) -> None:
        self.evidence.reports.extend(reports)

    def replay(self) -> None:
        if self.evidence.reports:
            self.evidence.reports.append(self.chance.choice(self.evidence.reports))

    def snapshot(self) -> None:
        for number, log in self.logs.items():
            self.evidence.states.append(
                StateRow(number, self.now, log.earliest, log.end, log.epoch, self.topic_id)
            )

    def scan(self, whole: bool = False) -> None:
        """Read from somewhere to the end; what is found and what was covered arrive together."""
        for number, log in self.logs.items():
            self._scan(number, log, log.earliest if whole else None)

    def _scan(self, number: int, log: Log, first: int | None) -> None:
        if first is None:
            first = self.chance.randint(log.earliest, max(log.earliest, log.end))
        self.number += 1
        reporter = f"scan{self.number}"
        seen = [
            Sighting(
                r.session, TOPIC, r.seq, Tier.IN_LOG, self.now, number, o, leader_epoch=r.epoch,
                topic_id=self.topic_id,
            )
            for o, r in sorted(log.records.items())
            if o >= first
        ]  # fmt: skip
        self._arrive(encode_sightings(seen, reporter, self.number, self.now))
        self.evidence.reports.append(
            Report(
                reporter=reporter, tier=Tier.SCANNED, topic=TOPIC, number=self.number,
                reported_ms=self.now, partition=number, part=10**6, first_offset=first,
                last_offset=log.end - 1, records=len(seen), began_ms=self.now, ended_ms=self.now,
                closed=True,
            )
        )  # fmt: skip

    # -- groups ----------------------------------------------------------------------------------

    def consume(self) -> None:
        if not self.members:
            return
        number = self.chance.choice(list(self.logs))
        member = self._owner(self.chance.choice(self.members), number)
        log = self.logs[number]
        first = min(max(member.position[number], log.earliest), log.end)
        last = min(log.end, first + self.chance.randint(1, 12)) - 1
        if last < first:
            return
        member.position[number] = last + 1
        read = {o: r for o, r in sorted(log.records.items()) if first <= o <= last}
        if self.chance.random() < 0.92:
            self.groups[member.group].received |= {(r.session, r.seq) for r in read.values()}
            self._report_read(member, number, read, (first, last))
        else:  # a part is kept until its report was acked, so it is lost with its process only
            member.reporter += "~"

    def _owner(self, member: Member, number: int) -> Member:
        """Who of the member's group has the partition; if nobody, the member is given it."""
        group = self.groups[member.group]
        if number not in group.owners:
            if number not in group.committed and self.chance.random() < 0.15:
                self._unaudited(member.group, number)
            self._assign(member, number)
        return group.owners[number]

    def _unaudited(self, name: str, number: int) -> None:
        """The group ran before it was audited: what it read it has committed, and that is seen."""
        group, log = self.groups[name], self.logs[number]
        if group.seen == "always":
            group.received |= {(r.session, r.seq) for r in log.records.values()}
            group.committed[number] = log.end
            self.evidence.commits.append(CommitRow(name, number, self.now, log.end, ""))

    def _assign(self, member: Member, number: int) -> None:
        """From the last commit, seen or not; without one from where the group is set to begin."""
        group, log = self.groups[member.group], self.logs[number]
        begin = log.end if group.from_end else log.earliest
        group.owners[number] = member
        member.assignment[number] = member.assignment.get(number, 0) + 1
        member.position[number] = group.committed.get(number, begin)

    def _report_read(self, member, number, read, bounds) -> None:
        seen = [
            Sighting(
                r.session, TOPIC, r.seq, Tier.DELIVERED, self.now, number, o, member.group,
                leader_epoch=r.epoch,
            )
            for o, r in read.items()
        ]  # fmt: skip
        self.number += 1
        made = encode_sightings(seen, member.reporter, self.number, self.now, member.part)
        member.part += len(made) + 1
        self._arrive(made)
        if member.ranges:
            self.evidence.reports.append(
                Report(
                    reporter=member.reporter, tier=Tier.CONSUMED, topic=TOPIC, number=self.number,
                    reported_ms=self.now, partition=number, group=member.group,
                    part=member.part, first_offset=bounds[0], last_offset=bounds[1],
                    records=len(seen), began_ms=self.now, ended_ms=self.now,
                    assignment=member.assignment[number] if member.counts else None,
                )
            )  # fmt: skip

    def commit(self) -> None:
        for name, group in self.groups.items():
            for number, owner in group.owners.items():
                position = group.committed[number] = owner.position[number]
                processed = self.chance.choice([None, None, position, max(0, position - 3)])
                text = "" if processed is None else f"acktrail:processed={processed}"
                if group.seen == "always" or (group.seen == "late" and self.now >= self.late):
                    self.evidence.commits.append(CommitRow(name, number, self.now, position, text))

    def rebalance(self) -> None:
        """Members lose their partitions; whoever gets them starts from the last commit."""
        for name, group in self.groups.items():
            mates = [m for m in self.members if m.group == name]
            for number in list(group.owners):
                self._assign(self.chance.choice(mates), number)
            for member in mates:
                if self.chance.random() < 0.5:
                    member.reporter += "'"

    def jump(self) -> None:
        """Members' positions are reset to the end."""
        for group in self.groups.values():
            for number, owner in group.owners.items():
                owner.position[number] = self.logs[number].end

    def rewind(self) -> None:
        """Members seek back, and may seek forward again before they have read it all."""
        for group in self.groups.values():
            for number, owner in group.owners.items():
                first = self.logs[number].earliest
                owner.position[number] = self.chance.randint(
                    first, max(first, owner.position[number])
                )

    def _end(self) -> None:
        """Most histories end with everything reported and scanned late enough to decide."""
        self.report()
        closing = self.chance.random()
        for producer in self.producers:
            if producer.alive and closing < 0.5:
                self._beat(producer, closed=True)
        if self.chance.random() < 0.7:
            self.snapshot()
            self.now += self.chance.choice([6_000, 20_000])
            self.scan(whole=True)
            self.now += 11_000
            self.snapshot()
