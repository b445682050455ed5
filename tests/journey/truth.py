"""What the applications know of their messages, and what is in the log in the end."""

from __future__ import annotations

import time
from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

from confluent_kafka import Consumer as Reader
from confluent_kafka import TopicPartition

from lab.events import read_events
from lab.scenario import Consumer, Producer
from tests.journey.applications import PRODUCERS, Applications


@dataclass(frozen=True)
class Told:
    """What one producer was told, as values of messages."""

    acked: frozenset[str]
    failed: frozenset[str]


@dataclass(frozen=True)
class Truth:
    """By producer: what it was told and what is gone; by group: what it passed over."""

    told: dict[str, Told]
    lost_after_ack: dict[str, int]
    lost_told: dict[str, int]
    skipped: dict[str, int]

    def summary(self) -> dict[str, dict[str, int]]:
        """By producer and group: what the ledger must say, too."""
        return {
            **{
                name: {
                    "acked": len(told.acked),
                    "lost_after_ack": self.lost_after_ack[name],
                    "told_and_lost": self.lost_told[name],
                }
                for name, told in self.told.items()
            },
            **{group: {"skipped": count} for group, count in self.skipped.items()},
        }


def printed_by(home: Path, client: Producer | Consumer) -> Path:
    """Where *client* prints what it knows."""
    if client.kind == "python":
        return home / "python" / f"{client.name}.jsonl"
    role = "producer" if isinstance(client, Producer) else "consumer"
    return home / "verifiable" / f"{role}-{client.name}.jsonl"


def first_failure_ms(home: Path, name: str, since_ms: int) -> int | None:
    """When the producer *name* was first told of a failed message after *since_ms*."""
    (client,) = (p for p in PRODUCERS if p.name == name)
    events = read_events(printed_by(home, client))
    failed = (int(e["timestamp"]) for e in events if e.get("name") == "producer_send_error")
    return min((at for at in failed if at >= since_ms), default=None)


def truth_of(applications: Applications) -> Truth:
    """Compare what every client has printed with what every topic holds."""
    home, bootstrap = applications.home, applications.nodes.direct
    stored = {topic.name: _values(bootstrap, topic.name) for topic in applications.topics}
    told = {p.name: _told(printed_by(home, p)) for p in applications.producers}
    topic_of = {p.name: p.topic for p in applications.producers}
    gone = {n: (t.acked - stored[topic_of[n]].keys()) for n, t in told.items()}
    failed = {n: (t.failed - t.acked - stored[topic_of[n]].keys()) for n, t in told.items()}
    skipped = {}
    for consumer in applications.consumers:
        received = {
            str(e["value"])
            for e in read_events(printed_by(home, consumer))
            if e.get("name") == "record_data"
        }
        skipped[consumer.group] = len(stored[consumer.topic].keys() - received)
    return Truth(
        told,
        {name: len(values) for name, values in gone.items()},
        {name: len(values) for name, values in failed.items()},
        skipped,
    )


def _told(path: Path) -> Told:
    acked, failed = set(), set()
    for event in read_events(path):
        if event.get("name") == "producer_send_success":
            acked.add(str(event["value"]))
        elif event.get("name") == "producer_send_error":
            failed.add(str(event["value"]))
    return Told(frozenset(acked), frozenset(failed))


def _values(bootstrap: str, topic: str) -> Counter[str]:
    """Every value in the log of *topic*, and how often."""
    return Counter(_read(bootstrap, topic))


def _read(bootstrap: str, topic: str) -> Iterator[str]:
    reader = Reader({"bootstrap.servers": bootstrap, "group.id": "truth", "log_level": 0})
    try:
        listed = reader.list_topics(topic, timeout=30).topics[topic].partitions
        left: dict[int, int] = {}
        for number in listed:
            low, high = reader.get_watermark_offsets(TopicPartition(topic, number), timeout=30)
            if high > low:
                left[number] = high
        reader.assign([TopicPartition(topic, number, 0) for number in left])
        deadline = time.monotonic() + 300
        while left:
            assert time.monotonic() < deadline, f"{topic} could not be read to its end"
            for message in reader.consume(5000, 1):
                if message.error():
                    continue
                yield (message.value() or b"").decode()
                if message.offset() + 1 >= left.get(message.partition(), 1 << 60):
                    left.pop(message.partition(), None)
    finally:
        reader.close()
