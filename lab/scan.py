"""Reading whole topics with plain consumers: what is in the log, whoever says what of it."""

from __future__ import annotations

import json
import time
from pathlib import Path
from typing import Any

from confluent_kafka import OFFSET_BEGINNING, Consumer, KafkaError, Message, TopicPartition

from acktrail.errors import LabError
from lab.processes import now_ms

_TIMESTAMP_TYPES = {0: "none", 1: "create_time", 2: "log_append_time"}


def scan_topic(bootstrap: str, topic: str, output: Path, within: float = 120.0) -> int:
    """Read every partition of *topic* to its end; write one JSON line per record.

    The first line says when the scan began, the last when it ended and what it covered.
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
        return _scan(reader, topic, output, within)
    finally:
        reader.close()


def _scan(reader: Consumer, topic: str, output: Path, within: float) -> int:
    output.parent.mkdir(parents=True, exist_ok=True)
    began = now_ms()
    places = [
        TopicPartition(topic, number, OFFSET_BEGINNING)
        for number in reader.list_topics(topic, timeout=30).topics[topic].partitions
    ]
    bounds = {p.partition: reader.get_watermark_offsets(p, timeout=30) for p in places}
    reader.assign(places)
    unread = set(bounds)
    deadline = time.monotonic() + within
    records = 0
    with output.open("w") as file:
        file.write(json.dumps({"scan": "began", "at_ms": began, "topic": topic}) + "\n")
        while unread:
            if time.monotonic() > deadline:
                raise LabError(f"{topic} could not be read to its end within {within:.0f} s")
            message = reader.poll(1.0)
            if message is None:
                continue
            error = message.error()
            if error is None:
                file.write(json.dumps(_record(message)) + "\n")
                records += 1
            elif error.code() == KafkaError._PARTITION_EOF:
                number, last = int(message.partition() or 0), int(message.offset() or 0)
                unread.discard(number)
                bounds[number] = (bounds[number][0], last)
        covered = [
            {"partition": number, "first_offset": low, "end_offset": high}
            for number, (low, high) in sorted(bounds.items())
        ]
        end = {"scan": "ended", "at_ms": now_ms(), "topic": topic, "partitions": covered}
        file.write(json.dumps(end) + "\n")
    return records


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
