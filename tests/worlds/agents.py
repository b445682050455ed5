"""The lake and the agents that write to it: order of receipt, scans, answers of the cluster."""

from __future__ import annotations

import random
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field, replace

import numpy as np

from acktrail.audit.wire import Report, Sighting, encode_sightings
from acktrail.audit.wire.run_lists import encode_ids
from acktrail.contracts.vocabulary import Tier
from tests.worlds.evidence import TOPIC, CommitRow, Probe, StateRow, Unit
from tests.worlds.groups import Group
from tests.worlds.partition import Copy, Partition
from tests.worlds.producers import Host


@dataclass
class LakeLog:
    """What has been committed, in order; receipts are later than all committed before."""

    units: list[Unit] = field(default_factory=list)
    newest: int = 0
    """The newest receipt; 0: nothing was received yet."""
    scan_part: int = 0
    """The scanner's next part."""

    def commit(
        self, tick: int, kind: str, source: str, rows: Sequence[object], clock: int, probes=()
    ) -> None:
        if kind in ("report", "heartbeat", "read", "scan"):
            receipt = max(clock, self.newest + 1)
            rows = [replace(row, received_ms=receipt) for row in rows]
            self.newest = receipt
        self.units.append(Unit(tick, kind, source, tuple(rows), tuple(probes)))


@dataclass
class Waiting:
    """A message on the audit topic that no agent has read yet."""

    ready: int
    kind: str
    source: str
    rows: Sequence[Report]


@dataclass
class AuditTopic:
    """Messages of each source are read in order, and committed together with others."""

    lake: LakeLog
    host: Host
    waiting: list[Waiting] = field(default_factory=list)

    def put(self, ready: int, kind: str, source: str, rows: Sequence[Report]) -> None:
        before = [w.ready for w in self.waiting if w.source == source]
        if rows:
            self.waiting.append(Waiting(max([ready, *before]), kind, source, rows))

    def deliver(self, now: int) -> None:
        for message in [w for w in self.waiting if w.ready <= now]:
            self.waiting.remove(message)
            self.lake.commit(now, message.kind, message.source, message.rows, self.host.clock(now))


@dataclass(eq=False)
class Scan:
    """One round over one partition: begun with an answer of the cluster, read piece by piece."""

    lake: LakeLog
    host: Host
    partition: Partition
    number: int
    begun: int
    first: int
    until: int
    whole: bool
    """It reads all that the log had when it began."""
    position: int = 0
    epoch: int = 0
    end: int = 0
    after_ms: int | None = None
    transactional: frozenset[str] | None = None
    """Sessions that the scanner knows to be transactional; None: it does not compare."""

    @classmethod
    def begin(
        cls, lake: LakeLog, host: Host, partition: Partition, number: int, now: int,
        span: tuple[int, int] | None = None, transactional: frozenset[str] | None = None,
    ) -> Scan:  # fmt: skip
        start, end = partition.log.start, partition.watermark
        first, until = (start, end) if span is None else (max(span[0], start), min(span[1], end))
        scan = cls(lake, host, partition, number, now, first, max(first, until), span is None)
        scan.position, scan.epoch, scan.end = first, partition.epoch, end
        scan.after_ms = lake.newest
        scan.transactional = transactional
        return scan

    def step(self, most: int, now: int) -> bool:
        """Read the next piece; whether the scan is over."""
        partition = self.partition
        if partition.leader is None or not partition.readable:
            return False
        end = min(self.until, self.position + most)
        log = partition.log
        if partition.watermark < end or log.start > self.position:
            return True  # what it is to read is not there any more
        copies = [log.records[o] for o in range(self.position, end) if o in log.records]
        if any(c.epoch > self.epoch for c in copies):
            return True  # a new leader since it began: the next scan goes by its epoch
        self._commit(copies, end, now)
        done = end >= self.until
        self.position = end
        return done

    def _commit(self, copies: list[Copy], end: int, now: int) -> None:
        at = self.host.clock(self.begun)
        readable = [c for c in copies if not c.marker]
        seen = [
            Sighting(
                c.session, TOPIC, c.seq, Tier.IN_LOG, at, self.partition.number, c.offset,
                leader_epoch=c.epoch, topic_id=self.partition.topic_id,
            )
            for c in readable
            if c.session and c.named
        ]  # fmt: skip
        unnamed = [c.offset - self.position for c in readable if not (c.session and c.named)]
        part, reporter = self.lake.scan_part, "scanner"
        rows = encode_sightings(seen, reporter, part, self.host.clock(now), part)
        rows.append(
            Report(
                reporter=reporter, tier=Tier.SCANNED, topic=TOPIC,
                topic_id=self.partition.topic_id, partition=self.partition.number,
                number=part, part=part, reported_ms=self.host.clock(now),
                leader_epoch=self.epoch, first_offset=self.position, last_offset=end - 1,
                records=len(readable), began_ms=at, ended_ms=self.host.clock(now),
                closed=end >= self.end,
                unnamed=encode_ids(np.array(unnamed, np.int64)) if unnamed else None,
            )
        )  # fmt: skip
        self.lake.scan_part += len(readable) + 1
        if self.transactional is not None:
            ended = list(self._ended(readable, at, now))
            rows += encode_sightings(ended, reporter, part, at, self.lake.scan_part)
            self.lake.scan_part += len(ended) + 1
        rows = [replace(row, after_ms=self.after_ms) for row in rows]
        probe = Probe(
            self.partition.number, self.partition.topic_id, self.begun, now, self.position,
            end - 1, tuple(copies), self.whole and end >= self.end, self.number,
        )  # fmt: skip
        source = f"scan{self.number}"
        self.lake.commit(now, "scan", source, rows, self.host.clock(now), (probe,))

    def _ended(self, copies: list[Copy], at: int, now: int) -> Iterator[Sighting]:
        """What was committed or aborted, of what lies below the last stable offset."""
        assert self.transactional is not None
        stable = self.partition.stable_end
        for copy in copies:
            if not (copy.session and copy.named) or copy.offset >= stable:
                continue
            t = copy.transaction
            committed = t is None or t.committed_at <= now
            if not committed or copy.session in self.transactional:
                yield Sighting(
                    copy.session, TOPIC, copy.seq, Tier.COMMITTED if committed else Tier.ABORTED,
                    at, self.partition.number, topic_id=self.partition.topic_id,
                )  # fmt: skip


def answer_states(
    lake: LakeLog, host: Host, partitions: Sequence[Partition], now: int, chance: random.Random
) -> None:
    """What the cluster says of each partition; some answers are missing."""
    rows, probes = [], []
    for partition in partitions:
        if chance.random() < 0.1:
            continue
        at = host.clock(now)
        if not partition.readable:
            rows.append(
                StateRow(
                    partition.number, at, None, None, None, partition.topic_id, -1,
                    tuple(partition.isr), lake.newest,
                )
            )  # fmt: skip
            continue
        epoch, end, start = partition.epoch, partition.watermark, partition.log.start
        if partition.zombie is not None and chance.random() < 0.3:
            broker, epoch, end = partition.zombie
            start = partition.replicas[broker].start
        rows.append(
            StateRow(
                partition.number, at, start, end, epoch, partition.topic_id, partition.leader,
                tuple(partition.isr), lake.newest,
            )
        )  # fmt: skip
        probes.append(Probe(partition.number, partition.topic_id, now, now, 0, -1))
    lake.commit(now, "state", host.name, rows, 0, probes)


def answer_commits(lake: LakeLog, host: Host, groups: Sequence[Group], topic_id: str, now: int):
    """What each group has committed."""
    rows = [
        CommitRow(
            group.name, number, host.clock(now), offset, text, topic_id, len(group.owners),
            "Stable" if group.owners else "Empty", lake.newest,
        )
        for group in groups
        for number, (offset, text) in sorted(group.committed.items())
    ]  # fmt: skip
    if rows:
        lake.commit(now, "commit", host.name, rows, 0)
