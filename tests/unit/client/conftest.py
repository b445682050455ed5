"""librdkafka's own brokers, in this process: real requests and answers, no server to start."""

from __future__ import annotations

import time
from collections import Counter
from collections.abc import Callable
from typing import Any

import pytest
from acktrail_client import Audit
from confluent_kafka import Consumer, Producer, TopicPartition

from acktrail.audit.wire import Report, decode_reports

TOPIC = "acktrail-reports"


class Cluster:
    """Three brokers, and what came to the audit topic on them."""

    def __init__(self, answers_after_ms: int = 0) -> None:
        conf = {"test.mock.num.brokers": 3, "bootstrap.servers": "x:1", "log_level": 0}
        conf["test.mock.broker.rtt"] = answers_after_ms
        self._host = Producer(conf)
        found = self._host.list_topics(timeout=60).brokers.values()
        self.servers = ",".join(f"{broker.host}:{broker.port}" for broker in found)
        self.client = {"bootstrap.servers": self.servers}

    def records(self, topic: str) -> list[Any]:
        """All records of *topic* so far."""
        consumer = Consumer({**self.client, "group.id": "look", "enable.partition.eof": True})
        partitions = consumer.list_topics(topic, timeout=60).topics[topic].partitions
        consumer.assign([TopicPartition(topic, number, 0) for number in partitions])
        found, ends, until = [], 0, time.monotonic() + 60
        while ends < len(partitions) and time.monotonic() < until:
            for message in consumer.consume(1_000, 0.2):
                if message.error() is None:
                    found.append(message)
                else:
                    ends += 1
        consumer.close()
        return found

    def reports(self, topic: str = TOPIC) -> list[Report]:
        """All rows that were reported so far, by reporter and number."""
        rows = [row for m in self.records(topic) for row in decode_reports(m.value())]
        places = Counter(
            (r.reporter, r.part, r.tier, r.partition, r.topic, r.session, r.block, r.group)
            for r in rows
            if r.block >= 0
        )
        assert not places or max(places.values()) == 1, (
            "a part is replaced by the next of its number"
        )
        return sorted(rows, key=lambda row: (row.reporter, row.number))


@pytest.fixture
def brokers() -> Cluster:
    return Cluster()


@pytest.fixture
def audit() -> Audit:
    """The last report may take long on a busy machine: what it says is asked for."""
    return Audit(interval_s=0.3, close_s=30)


def wait_for(ready: Callable[[], bool], seconds: float = 60) -> bool:
    """Whether it came so far in time."""
    until = time.monotonic() + seconds
    while time.monotonic() < until:
        if ready():
            return True
        time.sleep(0.05)
    return ready()
