"""A consumer on confluent-kafka, as a process of its own: `python -m lab.python_consumer FILE`.

Prints what `VerifiableConsumer --verbose` prints; it commits what it has printed, not before.
"""

from __future__ import annotations

import json
import signal
import sys
import time
from pathlib import Path
from typing import Any

from confluent_kafka import Consumer, KafkaException, Message, TopicPartition

from lab.python_producer import say

_stopping = False


def main(settings: Path) -> None:
    """Consume until SIGTERM, committing once a second."""
    wanted = json.loads(settings.read_text())
    signal.signal(signal.SIGTERM, _stop)
    consumer = Consumer(wanted["settings"])
    consumer.subscribe([wanted["topic"]], on_assign=_assigned, on_revoke=_revoked)
    say("startup_complete")
    committed = time.monotonic()
    unsaved = False
    while not _stopping:
        message = consumer.poll(0.2)
        if message is not None and message.error() is None:
            _print(message)
            unsaved = True
        if unsaved and time.monotonic() - committed > 1:
            unsaved = not _commit(consumer)
            committed = time.monotonic()
    if unsaved:
        _commit(consumer)
    consumer.close()
    say("shutdown_complete")


def _print(message: Message) -> None:
    facts: dict[str, Any] = {"key": None, "value": (message.value() or b"").decode()}
    facts |= {"topic": message.topic(), "partition": message.partition()}
    say("record_data", **facts, offset=message.offset())


def _commit(consumer: Consumer) -> bool:
    try:
        places = consumer.commit(asynchronous=False)
    except KafkaException as error:
        say("offsets_committed", offsets=[], success=False, error=str(error))
        return False
    say("offsets_committed", offsets=[_place(each) for each in places], success=True)
    return True


def _place(each: TopicPartition) -> dict[str, Any]:
    return {"topic": each.topic, "partition": each.partition, "offset": each.offset}


def _assigned(_: Consumer, partitions: list[TopicPartition]) -> None:
    places = [{"topic": each.topic, "partition": each.partition} for each in partitions]
    say("partitions_assigned", partitions=places)


def _revoked(_: Consumer, partitions: list[TopicPartition]) -> None:
    places = [{"topic": each.topic, "partition": each.partition} for each in partitions]
    say("partitions_revoked", partitions=places)


def _stop(*_: object) -> None:
    global _stopping  # noqa: PLW0603 (a signal handler has nowhere else to write)
    _stopping = True


if __name__ == "__main__":
    main(Path(sys.argv[1]))
