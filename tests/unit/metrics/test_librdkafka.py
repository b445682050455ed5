"""librdkafka's statistics: what its documents mean, and what never grows without a cause."""

from __future__ import annotations

import json
import random

import pytest
from confluent_kafka import Producer

from acktrail.metrics.librdkafka import MOST_INSTANCES, StatisticsReader, is_statistics
from acktrail.metrics.series import read_series


def document(
    at: int, age_s: int, sent: int, handed_over: int, name: str = "web#producer-1"
) -> dict:
    partition = {"partition": 0, "txmsgs": sent, "msgs": handed_over}
    unassigned = {"partition": -1, "txmsgs": 0, "msgs": 9}
    return {
        "name": name,
        "client_id": "web",
        "type": "producer",
        "time": at,
        "age": age_s * 1_000_000,
        "brokers": {
            "b:9092/1": {
                "nodeid": 1,
                "waitresp_cnt": 3,
                "rtt": {"avg": 2_000, "max": 8_000, "cnt": 4},
                "int_latency": {"avg": 500, "max": 1_000, "cnt": 4},
            },
            "b:9092/bootstrap": {"nodeid": -1, "waitresp_cnt": 7},
        },
        "topics": {"orders": {"topic": "orders", "partitions": {"0": partition, "-1": unassigned}}},
        "msg_size": 10,
        "msg_size_max": 1000,
    }


def values(reader: StatisticsReader, found: dict) -> dict[tuple[str, str], float]:
    """By canonical name and topic."""
    read = {}
    for measured in reader.read(found):
        meaning = read_series(measured.metric, measured.labels)
        assert meaning is not None, measured
        assert (meaning.client_id, measured.at_ms) == ("web", found["time"] * 1000)
        read[meaning.metric, meaning.topic or ""] = measured.value
    return read


def test_every_number_has_the_name_and_the_unit_of_the_java_clients():
    reader = StatisticsReader()
    reader.read(document(1_790_000_000, 60, 100, 100))
    assert values(reader, document(1_790_000_010, 70, 180, 130)) == {
        ("requests-in-flight", ""): 3,
        ("request-latency-avg", ""): 2.0,
        ("request-latency-max", ""): 8.0,
        ("record-queue-time-avg", ""): 0.5,
        ("record-queue-time-max", ""): 1.0,
        ("buffer-total-bytes", ""): 1000,
        ("buffer-available-bytes", ""): 990,
        ("record-send-total", ""): 130,
        ("record-retry-total", ""): 50,
        ("record-retry-rate", ""): 5.0,
        ("record-send-total", "orders"): 130,
        ("record-retry-total", "orders"): 50,
        ("record-retry-rate", "orders"): 5.0,
    }


def test_no_total_falls_and_no_retry_is_counted_that_was_not():
    """A random client: what it hands over is sent once, or again and again while it is refused."""
    for seed in range(40):
        choose = random.Random(seed)
        reader, handed_over, sent, again, at = StatisticsReader(), 0, 0, 0, 1_790_000_000
        before: dict[tuple[str, str], float] = {}
        queued = 0
        for _ in range(60):
            at += choose.randint(1, 30)
            new = choose.randint(0, 50)
            handed_over, queued = handed_over + new, queued + new
            if choose.random() < 0.3:  # all that was under way is sent again
                repeated = choose.randint(0, sent - again)
                sent, again = sent + repeated, again + repeated
            first = choose.randint(0, queued)
            sent, queued = sent + first, queued - first
            found = values(reader, document(at, at - 1_790_000_000, sent, handed_over))
            assert found["record-retry-total", "orders"] <= again
            for name, value in found.items():
                if name[0].endswith("-total") and name in before:
                    assert value >= before[name]
            before = found


def test_a_restart_and_another_file_begin_series_of_their_own():
    reader = StatisticsReader()
    labels = [
        reader.read(document(*given))[0].labels["session"]
        for given in (
            (1_790_000_000, 60, 100, 90),
            (1_790_000_010, 70, 100, 90),
            (1_790_000_020, 3, 5, 5),
        )
    ]
    assert labels[0] == labels[1] != labels[2]
    other = StatisticsReader()
    assert other.read(document(1_790_000_010, 70, 100, 90))[0].labels["session"] != labels[1]


def test_two_clients_of_one_name_in_one_file_are_two():
    reader = StatisticsReader()
    for n in range(1, 20):
        at = 1_790_000_000 + n * 5
        first = values(reader, document(at, n * 5 + 100, n * 10, n * 10))
        second = values(reader, document(at, n * 5, n * 20, n * 10))
        assert first["record-retry-total", "orders"] == 0
        assert second["record-retry-total", "orders"] == n * 10


def test_clients_that_ended_long_ago_are_forgotten():
    reader = StatisticsReader()
    for n in range(MOST_INSTANCES * 2):
        reader.read(document(1_790_000_000 + n * 10, 1, 1, 1))
    assert len(reader._instances) == MOST_INSTANCES


@pytest.mark.parametrize(
    "wrong",
    [{}, {"name": "a"}, {"name": 1, "time": 5}, {"name": "a", "time": "5"}, {"time": True}],
)
def test_other_json_is_refused(wrong):
    assert not is_statistics(wrong)
    with pytest.raises(ValueError, match="statistics"):
        StatisticsReader().read(wrong)


@pytest.mark.parametrize("key", ["brokers", "topics", "age", "msg_size"])
@pytest.mark.parametrize("value", [None, 7, "x", [], {"a": None}, {"a": {"partitions": {"0": 1}}}])
def test_a_document_with_odd_parts_raises_nothing_else(key, value):
    odd = document(1_790_000_000, 5, 1, 1) | {key: value}
    reader = StatisticsReader()
    try:
        reader.read(odd)
    except ValueError:
        assert key == "age"


def test_what_a_real_client_prints():
    printed: list[str] = []
    producer = Producer(
        {
            "test.mock.num.brokers": 1,
            "client.id": "web",
            "statistics.interval.ms": 100,
            "stats_cb": printed.append,
            "log_level": 0,
        }
    )
    for n in range(50):
        producer.produce("orders", str(n).encode())
    producer.flush(10)
    while len(printed) < 3:
        producer.poll(0.1)
    reader = StatisticsReader()
    found = [values(reader, json.loads(text)) for text in printed]
    assert found[-1]["record-send-total", "orders"] == 50
    assert found[-1]["record-retry-total", "orders"] == 0
    assert any(each.get(("request-latency-max", ""), 0) > 0 for each in found)
