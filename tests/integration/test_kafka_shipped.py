"""Log lines shipped through a real cluster: each record once, whatever dies."""

from __future__ import annotations

import json

from confluent_kafka import Producer, TopicPartition
from confluent_kafka.admin import AdminClient

from acktrail.contracts.bronze import LOG_RECORDS
from acktrail.lake import Lake
from acktrail.settings.sources import LogTopicSource
from ingest.registry import build_source
from lab.scenario import Topic
from lab.snapshots import create_topics
from tests.integration.kafka_nodes import around


def test_shipped_lines_are_read_once_whatever_dies(nodes, tmp_path):
    admin = AdminClient({"bootstrap.servers": nodes.direct})
    create_topics(admin, [Topic("logs", ((1, 2, 3), (2, 3, 1)))])
    wanted = LogTopicSource(kind="log_topic", name="fleet", topics=("logs",), shape="filebeat")
    lake = Lake(tmp_path / "lake")
    made = build_source(wanted, around(nodes))
    assert drain_all(made, lake) == 0  # nothing there yet
    ship(nodes, range(300))
    made.open(lake)
    for number, batch in enumerate(made.poll(10)):
        if number == 0:  # the second is lost with the agent that read it
            lake.append(batch.table, batch.rows, batch.positions)
    made.close()
    assert drain_all(made, lake) > 0
    ship(nodes, range(300, 400))
    drain_all(made, lake)
    assert drain_all(made, lake) == 0
    found = lake.read(LOG_RECORDS).to_pylist()
    torn = [row for row in found if "number " not in row["text"]]
    assert not torn
    numbers = sorted(int(row["text"].split("number ")[1].split()[0]) for row in found)
    assert numbers == list(range(400))
    assert all(row["text"].endswith("TimeoutException: late") for row in found)
    assert {row["host"] for row in found} == {"app-0", "app-1", "app-2"}
    ship(nodes, range(400, 410))
    for future in admin.delete_records([TopicPartition("logs", 0, -1)]).values():
        future.result(30)
    made.open(lake)
    (expired,) = [batch for batch in made.poll(5) if "expired_before_read" in batch.dropped]
    made.close()
    assert expired.received == expired.dropped["expired_before_read"] > 0


def ship(nodes, numbers) -> None:
    """Lines of three hosts, mixed in two partitions, each with an exception behind it."""
    producer = Producer({"bootstrap.servers": nodes.direct, "enable.idempotence": True})
    for number in numbers:
        host = number % 3
        for text in (
            f"2026-01-31 10:00:00,001 ERROR no luck with number {number} x",
            "org.apache.kafka.common.errors.TimeoutException: late",
        ):
            message = {"@timestamp": "2026-01-31T10:00:00Z", "message": text}
            message |= {"host": {"name": f"app-{host}"}, "log": {"file": {"path": "/a.log"}}}
            producer.produce("logs", json.dumps(message), partition=host % 2)
        if number % 50 == 0:
            producer.produce("logs", b"not JSON", partition=0)
    producer.flush(30)


def drain_all(source, lake: Lake) -> int:
    """As the loop does with --once: until a poll gives nothing."""
    source.open(lake)
    received = 0
    try:
        while batches := list(source.poll(5)):
            for batch in batches:
                assert batch.received == batch.rows.num_rows + sum(batch.dropped.values())
                lake.append(batch.table, batch.rows, batch.positions)
                received += batch.received
    finally:
        source.close()
    return received
