"""A consumer on confluent-kafka, as a process of its own: `python -m lab.python_consumer FILE`.

Prints what `VerifiableConsumer --verbose` prints. It commits what it has printed, not before;
or, told to, a whole batch before it processes and prints the first message of it: then it notes
in the commit, as audited consumers do, how far it has processed.
"""

from __future__ import annotations

import json
import signal
import sys
import time
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from confluent_kafka import Consumer, KafkaException, Message, TopicPartition

from lab.python_producer import audited_clients, say

_BATCH = 100
_stopping = False


def main(settings: Path) -> None:
    """Consume until SIGTERM, committing once a second."""
    wanted = json.loads(settings.read_text())
    signal.signal(signal.SIGTERM, _stop)
    consumer = _consumer(wanted)
    consumer.subscribe([wanted["topic"]], on_assign=_assigned, on_revoke=_revoked)
    say("startup_complete")
    seconds = wanted["processing_ms"] / 1000
    if wanted["commits"] == "ahead":
        _commit_ahead(consumer, seconds)
    else:
        _commit_after(consumer, seconds)
    consumer.close()
    say("shutdown_complete")


def _consumer(wanted: Mapping[str, Any]) -> Consumer:
    if "audit" not in wanted:
        return Consumer(wanted["settings"])
    library = audited_clients()
    made: Consumer = library.AuditedConsumer(
        wanted["settings"], audit=library.Audit(**wanted["audit"])
    )
    return made


def _commit_after(consumer: Consumer, seconds: float) -> None:
    committed = time.monotonic()
    unsaved = False
    while not _stopping:
        message = consumer.poll(0.2)
        if message is not None and message.error() is None:
            _process(message, seconds)
            unsaved = True
        if unsaved and time.monotonic() - committed > 1:
            unsaved = not _commit(consumer)
            committed = time.monotonic()
    if unsaved:
        _commit(consumer)


def _commit_ahead(consumer: Consumer, seconds: float) -> None:
    while not _stopping:
        batch = [m for m in consumer.consume(_BATCH, 0.5) if m.error() is None]
        if not batch:
            continue
        _commit(consumer, _ends(batch, processed=False))
        for message in batch:
            _process(message, seconds)
        _commit(consumer, _ends(batch, processed=True))


def _ends(batch: Sequence[Message], processed: bool) -> list[TopicPartition]:
    """By partition, the offset after the batch; noted is the next one that is to be processed."""
    places: dict[tuple[str, int], list[int]] = {}
    for message in batch:
        place = str(message.topic()), int(message.partition() or 0)
        places.setdefault(place, []).append(int(message.offset() or 0))
    return [
        TopicPartition(
            *place,
            max(offsets) + 1,
            metadata=f"acktrail:processed={max(offsets) + 1 if processed else min(offsets)}",
        )
        for place, offsets in places.items()
    ]


def _process(message: Message, seconds: float) -> None:
    time.sleep(seconds)
    facts: dict[str, Any] = {"key": None, "value": (message.value() or b"").decode()}
    facts |= {"topic": message.topic(), "partition": message.partition()}
    say("record_data", **facts, offset=message.offset())


def _commit(consumer: Consumer, ends: list[TopicPartition] | None = None) -> bool:
    """Commit *ends*; what was handed out where they are not given."""
    try:
        if ends is None:
            places = consumer.commit(asynchronous=False)
        else:
            places = consumer.commit(offsets=ends, asynchronous=False)
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
