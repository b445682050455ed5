"""Log lines shipped through a real cluster: each record once, whatever dies."""

from __future__ import annotations

from confluent_kafka import TopicPartition
from confluent_kafka.admin import AdminClient

from acktrail.contracts.bronze import LOG_RECORDS
from acktrail.lake import Lake
from acktrail.settings.sources import LogTopicSource
from ingest.registry import build_source
from lab.scenario import Topic
from lab.snapshots import create_topics
from tests.integration.kafka_nodes import around
from tests.integration.shipped_lines import ship, shipped_numbers


def test_shipped_lines_are_read_once_whatever_dies(nodes, tmp_path):
    admin = AdminClient({"bootstrap.servers": nodes.direct})
    create_topics(admin, [Topic("logs", ((1, 2, 3), (2, 3, 1)))])
    wanted = LogTopicSource(kind="log_topic", name="fleet", topics=("logs",), shape="filebeat")
    lake = Lake(tmp_path / "lake")
    made = build_source(wanted, around(nodes))
    assert drain_all(made, lake) == 0  # nothing there yet
    ship(nodes, "logs", range(300), junk_every=50)
    made.open(lake)
    for number, batch in enumerate(made.poll(10)):
        if number == 0:  # the second is lost with the agent that read it
            lake.append(batch.table, batch.rows, batch.positions)
    made.close()
    assert drain_all(made, lake) > 0
    ship(nodes, "logs", range(300, 400), junk_every=50)
    drain_all(made, lake)
    assert drain_all(made, lake) == 0
    found = lake.read(LOG_RECORDS).to_pylist()
    torn = [row for row in found if "number " not in row["text"]]
    assert not torn
    assert shipped_numbers(lake) == list(range(400))
    assert all(row["text"].endswith("TimeoutException: late") for row in found)
    assert {row["host"] for row in found} == {"app-0", "app-1", "app-2"}
    ship(nodes, "logs", range(400, 410), junk_every=50)
    for future in admin.delete_records([TopicPartition("logs", 0, -1)]).values():
        future.result(30)
    made.open(lake)
    (expired,) = [batch for batch in made.poll(5) if "expired_before_read" in batch.dropped]
    made.close()
    assert expired.received == expired.dropped["expired_before_read"] > 0


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
