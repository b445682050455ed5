"""Audited members of one group while others join and leave, by every rebalance protocol."""

from __future__ import annotations

import threading
import time
from collections import Counter, defaultdict
from itertools import pairwise

import pytest
from acktrail_client import Audit, AuditedConsumer, AuditedProducer
from confluent_kafka import Consumer, TopicPartition
from confluent_kafka.admin import AdminClient

from acktrail.audit.wire import Report, decode_reports, decode_runs
from acktrail.contracts.vocabulary import Tier
from lab.scenario import Topic
from lab.snapshots import create_topics
from lab.steps import wait_until

PROTOCOLS = {
    "eager": {"partition.assignment.strategy": "range"},
    "cooperative": {"partition.assignment.strategy": "cooperative-sticky"},
    "consumer": {"group.protocol": "consumer"},
}
MESSAGES = 400


def reports_on(servers: str, topic: str) -> list[Report]:
    reader = Consumer(
        {"bootstrap.servers": servers, "group.id": "look", "enable.partition.eof": True}
    )
    reader.assign([TopicPartition(topic, 0, 0)])
    found: list[Report] = []
    while (message := reader.poll(30)) is not None and message.error() is None:
        found += decode_reports(message.value())
    reader.close()
    return found


class Member(threading.Thread):
    """One member, which commits what it has read when it leaves."""

    def __init__(self, conf: dict, topic: str, audit: Audit) -> None:
        super().__init__(daemon=True)
        self.consumer = AuditedConsumer(conf, audit=audit)
        self.assigned = threading.Event()
        self.consumer.subscribe([topic], on_assign=self._on_assign)
        self.ends = threading.Event()
        self.read: list[tuple[int, int]] = []
        self.start()

    def _on_assign(self, _consumer: Consumer, partitions: list[TopicPartition]) -> None:
        if partitions:
            self.assigned.set()

    def run(self) -> None:
        while not self.ends.is_set():
            for message in self.consumer.consume(20, 0.2):
                if message.error() is None:
                    self.read.append((message.partition(), message.offset()))
        self.consumer.close()

    def leave(self) -> None:
        self.ends.set()
        self.join(60)


@pytest.mark.parametrize("protocol", PROTOCOLS)
def test_members_report_what_they_were_given_and_no_jump(nodes, protocol):
    topic, reports = f"shared-{protocol}", f"shared-reports-{protocol}"
    admin = AdminClient({"bootstrap.servers": nodes.direct})
    create_topics(admin, [Topic(topic, ((1, 2), (2, 3), (3, 1), (1, 3))), Topic(reports)])
    audit = Audit(topic=reports, interval_s=0.5, close_s=30)
    conf = {
        "bootstrap.servers": nodes.direct,
        "group.id": f"sharers-{protocol}",
        "auto.offset.reset": "earliest",
        **PROTOCOLS[protocol],
    }
    producer = AuditedProducer({"bootstrap.servers": nodes.direct}, audit=audit)
    members = [Member(conf, topic, audit)]

    def send(first: int, last: int) -> None:
        for n in range(first, last):
            producer.produce(topic, b"x", partition=n % 4)
        assert producer.flush(60) == 0

    def all_read(count: int) -> bool:
        return len({place for member in members for place in member.read}) >= count

    send(0, 100)
    assert wait_until(lambda: all_read(100), 60)
    members.append(Member(conf, topic, audit))
    assert members[1].assigned.wait(60)
    send(100, 200)
    assert wait_until(lambda: all_read(200), 60)
    members.append(Member(conf, topic, audit))
    time.sleep(1)
    members[0].leave()
    send(200, 300)
    assert wait_until(lambda: all_read(300), 90)
    members[1].leave()
    send(300, MESSAGES)
    assert wait_until(lambda: all_read(MESSAGES), 90)
    members[2].leave()
    producer.close()
    found = reports_on(nodes.direct, reports)
    _check(found, members)


def _check(found: list[Report], members: list[Member]) -> None:
    given = Counter()
    for row in found:
        if row.tier is Tier.DELIVERED:
            given.update((row.partition, at) for at in decode_runs(row.ids).listed()[1].tolist())
    assert given == Counter(place for member in members for place in member.read)
    newest: dict[tuple[str, int, int | None], dict[int, Report]] = defaultdict(dict)
    for row in found:
        if row.tier is Tier.CONSUMED:
            newest[row.reporter, row.partition, row.assignment][row.part] = row
    covered = Counter()
    for of in newest.values():
        parts = [of[part] for part in sorted(of)]
        assert all(a.last_offset + 1 == b.first_offset for a, b in pairwise(parts)), "no jump"
        for part in parts:
            assert part.records == part.last_offset - part.first_offset + 1
            offsets = range(part.first_offset, part.last_offset + 1)
            covered.update((part.partition, at) for at in offsets)
    assert covered == given
    beats = [r for r in found if r.tier is Tier.HEARTBEAT and r.group and r.closed]
    assert len({r.reporter for r in beats}) == len(members)
