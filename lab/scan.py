"""Reading whole topics with plain consumers: what is in the log, whatever others say of it."""

from __future__ import annotations

import json
import time
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from confluent_kafka import OFFSET_BEGINNING, Consumer, KafkaError, Message, TopicPartition

from acktrail.errors import LabError
from lab import snapshots
from lab.processes import now_ms

_TIMESTAMP_TYPES = {0: "none", 1: "create_time", 2: "log_append_time"}


@dataclass
class _Range:
    """What is to be read of a partition: up to the end it had when the scan began."""

    partition: int
    leader_epoch: int | None
    first_offset: int
    end_offset: int
    closed: bool = True
    """It was read to the end it had when the scan began; false: that end was cut off meanwhile."""


def scan_topic(bootstrap: str, topic: str, output: Path, within: float = 120.0) -> int:
    """Read every partition of *topic* to the end it has now; write one JSON line per record.

    The first line says when the scan began and what it is to cover, the last when it ended and
    what it covered. What is written behind those ends meanwhile is not part of it.
    """
    reader = Consumer(
        {
            "bootstrap.servers": bootstrap,
            "group.id": "lab-scan",
            "enable.auto.commit": False,
            "enable.partition.eof": True,
            "isolation.level": "read_uncommitted",
            "log_level": 0,
        }
    )
    try:
        return _scan(reader, bootstrap, topic, output, within)
    finally:
        reader.close()


def _scan(reader: Consumer, bootstrap: str, topic: str, output: Path, within: float) -> int:
    output.parent.mkdir(parents=True, exist_ok=True)
    began: dict[str, Any] = {"scan": "began", "at_ms": now_ms(), "topic": topic}
    states = snapshots.partition_states(snapshots.observer(bootstrap), [topic])
    began["topic_id"] = states[0]["topic_id"] if states else None
    epochs = {row["partition"]: row["leader_epoch"] for row in states}
    ranges = {}
    for number in sorted(reader.list_topics(topic, timeout=30).topics[topic].partitions):
        place = TopicPartition(topic, number, OFFSET_BEGINNING)
        low, high = reader.get_watermark_offsets(place, timeout=30)
        ranges[number] = _Range(number, epochs.get(number), low, high)
    records = 0
    with output.open("w") as file:
        file.write(json.dumps({**began, "partitions": _to_read(ranges)}) + "\n")
        reading = _Reading(reader, topic, ranges)
        deadline = time.monotonic() + within
        while reading.unread:
            if time.monotonic() > deadline:
                raise LabError(f"{topic} could not be read to its end within {within:.0f} s")
            message = reading.next()
            if message is not None:
                file.write(json.dumps(_record(message)) + "\n")
                records += 1
        end = {**began, "scan": "ended", "at_ms": now_ms(), "partitions": _listed(ranges)}
        file.write(json.dumps(end) + "\n")
    return records


def _to_read(ranges: dict[int, _Range]) -> list[dict[str, Any]]:
    return [{k: v for k, v in each.items() if k != "closed"} for each in _listed(ranges)]


def _listed(ranges: dict[int, _Range]) -> list[dict[str, Any]]:
    return [vars(each) for each in ranges.values()]


class _Reading:
    """The records of some ranges, until each was read to its end."""

    def __init__(self, reader: Consumer, topic: str, ranges: dict[int, _Range]) -> None:
        self._reader = reader
        self._topic = topic
        self._ranges = ranges
        self.unread = {n for n, each in ranges.items() if each.end_offset > each.first_offset}
        reader.assign([TopicPartition(topic, n, OFFSET_BEGINNING) for n in sorted(self.unread)])

    def next(self) -> Message | None:
        """The next record within the ranges, if one came."""
        message = self._reader.poll(1.0)
        if message is None:
            return None
        number, offset = int(message.partition() or 0), int(message.offset() or 0)
        error = message.error()
        if number not in self.unread:
            return None
        wanted = self._ranges[number]
        if error is not None:
            if error.code() == KafkaError._PARTITION_EOF:
                self._at_end(wanted, offset)
            return None
        if offset >= wanted.end_offset - 1:
            self._done(number)
        return message if offset < wanted.end_offset else None

    def _at_end(self, wanted: _Range, offset: int) -> None:
        """The log ends at *offset* just now: where it ended before, or lower, if it was cut."""
        if offset < wanted.end_offset:
            place = TopicPartition(self._topic, wanted.partition)
            _, high = self._reader.get_watermark_offsets(place, timeout=30)
            if high > offset:
                return  # there is more to come
            wanted.end_offset, wanted.closed = offset, False
        self._done(wanted.partition)

    def _done(self, number: int) -> None:
        self.unread.discard(number)
        self._reader.pause([TopicPartition(self._topic, number)])


def _record(message: Message) -> dict[str, Any]:
    kind, timestamp = message.timestamp()
    headers: Any = message.headers() or []
    return {
        "partition": message.partition(),
        "offset": message.offset(),
        "leader_epoch": message.leader_epoch(),
        "key": _text(message.key()),
        "value": _text(message.value()),
        "headers": [[name, (value or b"").hex()] for name, value in headers],
        "timestamp": timestamp,
        "timestamp_type": _TIMESTAMP_TYPES[kind],
    }


def _text(data: bytes | None) -> str | None:
    return None if data is None else data.decode(errors="replace")
