"""Log lines as a shipper puts them into a topic, and what of them is in the lake."""

from __future__ import annotations

import json
from collections.abc import Iterable

from confluent_kafka import Producer

from acktrail.contracts.bronze import LOG_RECORDS
from acktrail.lake import Lake


def ship(nodes, topic: str, numbers: Iterable[int], junk_every: int = 0) -> None:
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
            producer.produce(topic, json.dumps(message), partition=host % 2)
        if junk_every and number % junk_every == 0:
            producer.produce(topic, b"not JSON", partition=0)
    assert producer.flush(60) == 0


def shipped_numbers(lake: Lake) -> list[int]:
    """The numbers of all shipped records in *lake*, in order."""
    texts = lake.read(LOG_RECORDS, columns=["text"]).column("text").to_pylist()
    return sorted(int(t.split("number ")[1].split()[0]) for t in texts if "number " in t)
