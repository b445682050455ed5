"""The applications of the journey: ordinary clients that know what became of each message.

Two producers in Java (one with default settings, one with `retries=0`), one on confluent-kafka that
writes its statistics to a file, one in Java with acks=1, and two consumer groups.
"""

from __future__ import annotations

import time
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from confluent_kafka import ConsumerGroupTopicPartitions, KafkaException, TopicPartition

from lab.clients import Client, start_consumer, start_producer
from lab.cluster import Cluster
from lab.processes import now_ms
from lab.scenario import Consumer, Producer, Topic
from lab.snapshots import create_topics, observer
from lab.steps import wait_until

_FOREVER = 10_000_000
_TWO = ((3, 2), (2, 3))
"""Two replicas, and both must be in sync: without either of brokers 2 and 3, sends are refused."""
_BOTH = {"min.insync.replicas": "2"}
TOPICS = (
    Topic("orders", _TWO, _BOTH),
    Topic("payments", _TWO, _BOTH),
    Topic("clicks", _TWO, _BOTH),
    Topic("views", ((1, 2, 3),), {"min.insync.replicas": "1"}),
)
OWNERS = {"orders": "shop", "payments": "shop", "clicks": "web", "views": "web"}
PRODUCERS = (
    Producer("orders-api", "orders", _FOREVER, 20),
    Producer("payments-api", "payments", _FOREVER, 20, retries=0),
    Producer("clicks-web", "clicks", _FOREVER, 20, kind="python", statistics_ms=5_000),
    Producer(
        *("views-api", "views", _FOREVER, 50, "1"),
        settings={"request.timeout.ms": "4000", "delivery.timeout.ms": "30000"},
    ),
)
CONSUMERS = (
    Consumer("billing", "payments", group="billing"),
    Consumer("analytics", "clicks", group="analytics", kind="python"),
)


@dataclass
class Applications:
    """Clients that run, by name."""

    nodes: Cluster
    home: Path
    """Where they log and print, as in the evidence of the lab."""
    producers: Sequence[Producer] = PRODUCERS
    consumers: Sequence[Consumer] = CONSUMERS

    def __post_init__(self) -> None:
        self.clients: dict[str, Client] = {}
        self.marks: dict[str, int] = {}
        """When something happened that evidence is counted from, in ms."""
        self.admin = observer(self.nodes.direct)

    @property
    def topics(self) -> list[Topic]:
        """The topics that its producers write to."""
        return [t for t in TOPICS if t.name in {p.topic for p in self.producers}]

    def start(self) -> None:
        """Create the topics, start every client, and wait until all are at work."""
        create_topics(self.admin, self.topics)
        for consumer in self.consumers:
            self.clients[consumer.name] = start_consumer(self.nodes, consumer, self.home)
        for producer in self.producers:
            self.clients[producer.name] = start_producer(self.nodes, producer, self.home)
        self.wait_for_acks(20)
        assert wait_until(lambda: all(self.received(c.name) for c in self.consumers), 120)

    def stop(self) -> None:
        """Producers flush and end, then the consumers."""
        for wanted in (*self.producers, *self.consumers):
            client = self.clients.get(wanted.name)
            if client is not None:
                client.process.terminate(60)

    def acked(self, name: str) -> int:
        """Messages that the producer *name* knows to be stored."""
        return self.clients[name].progress.update().counts["producer_send_success"]

    def failed(self, name: str) -> int:
        """Messages that the producer *name* was told have failed."""
        return self.clients[name].progress.update().failed

    def received(self, name: str) -> int:
        """Messages that the consumer *name* has read."""
        progress = self.clients[name].progress.update()
        return progress.counts["record_data"] or len(progress.next_offsets)

    def wait_for_acks(self, count: int, within: float = 180) -> None:
        """Until each producer has had *count* more messages acknowledged."""
        before = {p.name: self.acked(p.name) for p in self.producers}
        done = lambda: all(self.acked(n) - had >= count for n, had in before.items())  # noqa: E731
        assert wait_until(done, within, pause=0.5), "the producers do not get on"

    def wait_in_sync(self, within: float = 240) -> None:
        """Until every replica of every topic is in sync."""
        deadline = time.monotonic() + within
        while lacking := self.out_of_sync():
            assert time.monotonic() < deadline, f"still out of sync: {lacking}"
            time.sleep(0.5)

    def out_of_sync(self) -> list[str]:
        """Partitions that lack a replica."""
        listed = self.admin.list_topics(timeout=10).topics
        return [
            f"{topic.name}-{number}"
            for topic in self.topics
            for number, partition in listed[topic.name].partitions.items()
            if len(partition.isrs) < len(partition.replicas)
        ]

    def leader(self, topic: str) -> int:
        """The broker that leads partition 0 of *topic*; -1 for none."""
        return int(self.admin.list_topics(topic, timeout=10).topics[topic].partitions[0].leader)

    def skip(self, name: str, by: int) -> None:
        """Stop a consumer, move its group's commit on partition 0 ahead, and start it again."""
        wanted = next(c for c in self.consumers if c.name == name)
        client = self.clients[name]
        client.process.terminate(60)
        # What is skipped must be there: a commit behind the end of the log is refused.
        (writer,) = (p.name for p in self.producers if p.topic == wanted.topic)
        enough = self.acked(writer) + 3 * by
        assert wait_until(lambda: self.acked(writer) >= enough, 180, pause=0.5)
        place = TopicPartition(wanted.topic, 0)
        deadline = time.monotonic() + 90
        asked = [ConsumerGroupTopicPartitions(wanted.group, [place])]
        while True:
            try:
                (done,) = self.admin.list_consumer_group_offsets(asked).values()
                (at,) = done.result(30).topic_partitions
                ahead = TopicPartition(wanted.topic, 0, at.offset + by)
                moved = [ConsumerGroupTopicPartitions(wanted.group, [ahead])]
                (done,) = self.admin.alter_consumer_group_offsets(moved).values()
                refused = [p.error for p in done.result(30).topic_partitions if p.error]
                if not refused:
                    break
            except KafkaException:  # the group is not empty yet
                assert time.monotonic() < deadline, f"{name} is still a member"
            time.sleep(1)
        before = self.received(name)
        self.clients[name] = start_consumer(self.nodes, wanted, self.home)
        assert wait_until(lambda: self.received(name) > before, 120, pause=0.5)
        self.marks["skipped"] = now_ms()
