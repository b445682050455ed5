"""A scan reads to the ends that a topic had when it began, whatever is written meanwhile."""

from __future__ import annotations

import json
from types import SimpleNamespace

import pytest
from confluent_kafka import KafkaError

from lab import scan, snapshots


class Message:
    """A record, or the news that a partition has ended."""

    def __init__(self, partition, offset, error=None):
        self._place, self._error = (partition, offset), error

    def partition(self):
        return self._place[0]

    def offset(self):
        return self._place[1]

    def error(self):
        return self._error

    def leader_epoch(self):
        return 3

    def timestamp(self):
        return 1, 5

    def key(self):
        return None

    def value(self):
        return f"7.{self._place[1]}".encode()

    def headers(self):
        return None


def eof(partition, offset):
    return Message(partition, offset, SimpleNamespace(code=lambda: KafkaError._PARTITION_EOF))


class Reader:
    """Stands for a consumer: given watermarks by partition, then what it polls."""

    def __init__(self, marks, polled):
        self.marks, self.polled, self.paused = marks, list(polled), []

    def list_topics(self, topic, timeout):  # noqa: ARG002 - as the real one is called
        return SimpleNamespace(topics={topic: SimpleNamespace(partitions=dict(self.marks))})

    def get_watermark_offsets(self, place, timeout):  # noqa: ARG002
        return self.marks[place.partition].pop(0)

    def assign(self, places):
        self.assigned = [place.partition for place in places]

    def pause(self, places):
        self.paused += [place.partition for place in places]

    def poll(self, _timeout):
        return self.polled.pop(0)


@pytest.mark.parametrize(
    ("case", "marks", "polled", "offsets", "ended"),
    [
        ("to its end", [(0, 2)], [Message(0, 0), Message(0, 1)], [0, 1], (2, True)),
        ("a live tail", [(0, 2)], [Message(0, 0), None, Message(0, 1), Message(0, 2)],
         [0, 1], (2, True)),
        ("its last record was compacted away", [(0, 2)], [Message(0, 0), Message(0, 5)], [0],
         (2, True)),
        ("a marker at its end", [(0, 2)], [Message(0, 0), eof(0, 2)], [0], (2, True)),
        ("cut off meanwhile", [(0, 4), (0, 1)], [Message(0, 0), eof(0, 1)], [0], (1, False)),
        ("an end that was not known yet", [(0, 2), (0, 2)],
         [Message(0, 0), eof(0, 1), Message(0, 1)], [0, 1], (2, True)),
        ("empty", [(3, 3)], [], [], (3, True)),
    ],
)  # fmt: skip
def test_a_scan_ends_where_the_log_ended_when_it_began(
    case, marks, polled, offsets, ended, tmp_path, monkeypatch
):
    states = [{"topic_id": "id-1", "partition": 0, "leader_epoch": 3}]
    monkeypatch.setattr(snapshots, "observer", lambda _servers: None)
    monkeypatch.setattr(snapshots, "partition_states", lambda _admin, _topics: states)
    reader = Reader({0: list(marks)}, polled)
    read = scan._scan(reader, "x:1", "t", tmp_path / "t.jsonl", within=5)  # type: ignore[arg-type]
    first, *records, last = map(json.loads, (tmp_path / "t.jsonl").read_text().splitlines())
    assert [record["offset"] for record in records] == offsets, case
    assert read == len(offsets)
    (covered,) = last["partitions"]
    assert (covered["end_offset"], covered["closed"]) == ended, case
    assert (first["scan"], last["scan"], last["topic_id"]) == ("began", "ended", "id-1")
    assert first["partitions"][0]["leader_epoch"] == 3
