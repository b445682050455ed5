"""Read ranges of partitions, belonging to no group: what is in the log, whoever says what of it."""

from __future__ import annotations

import time
from collections.abc import Mapping
from typing import Any

from confluent_kafka import KafkaError, KafkaException, Message, TopicPartition

from acktrail.audit.wire import own_header
from acktrail.errors import SourceUnavailable
from ingest.kafka.access import Listener, explained, open_consumer
from ingest.sources.scan_reports import LogRecord

LONGEST_IDENTITY = 40
"""A value longer than this is no VerifiableProducer's; it is not kept."""

_MOVED = (
    KafkaError.OFFSET_OUT_OF_RANGE,
    KafkaError._AUTO_OFFSET_RESET,
    KafkaError._LOG_TRUNCATION,
)
"""The log no longer has the offset that comes next: retention moved its start, or it was cut."""


def reader_config(config: Mapping[str, Any], committed: bool = False) -> dict[str, Any]:
    """The settings of a reader that commits nothing and joins nothing."""
    return {
        "queued.max.messages.kbytes": 16_384,
        **config,
        # librdkafka wants a name; with assign() no group is joined and nothing is committed.
        "group.id": "acktrail-scan",
        "enable.auto.commit": False,
        "enable.auto.offset.store": False,
        "enable.partition.eof": True,
        "isolation.level": "read_committed" if committed else "read_uncommitted",
        "auto.offset.reset": "error",
    }


class PartitionReader:
    """One consumer, assigned to one range at a time."""

    def __init__(
        self, config: Mapping[str, Any], timeout_s: float = 30.0, *, committed: bool = False
    ) -> None:
        """*committed*: read what transactions have committed, up to the last stable offset."""
        self._heard = Listener()
        self._consumer = open_consumer(reader_config(config, committed), self._heard)
        self._timeout = timeout_s

    def read(
        self, topic: str, partition: int, first: int, end: int, most: int
    ) -> tuple[list[LogRecord], int]:
        """Records from *first* up to *end*, at most *most*, and the offset after what was covered.

        Offsets that hold no record (compacted, transaction markers) are covered too. Where the log
        is found to end earlier, to begin later or to be cut, what was covered ends there.
        """
        if end <= first:
            return [], first
        records: list[LogRecord] = []
        covered = first
        self._consumer.assign([TopicPartition(topic, partition, first)])
        try:
            patience = time.monotonic() + self._timeout
            while covered < end and len(records) < most:
                messages = self._consumer.consume(min(500, most - len(records)), 0.5)
                for message in messages:
                    covered, over = self._take(message, records, covered, end)
                    if over:
                        return records, min(covered, end)
                if messages:
                    patience = time.monotonic() + self._timeout
                    self._heard.answered()
                elif time.monotonic() > patience:
                    raise self._silent(f"{topic}-{partition}", covered, end)
        finally:
            self._consumer.unassign()
        return records, min(covered, end)

    def _silent(self, place: str, covered: int, end: int) -> Exception:
        """The error for a read that brought nothing."""
        said = (
            f"{place}: nothing came from offset {covered} for {self._timeout:.0f} s, "
            f"and the log ends at {end}."
        )
        if self._heard.last is None:
            return SourceUnavailable(said)
        return explained(place, SourceUnavailable(said), heard=self._heard)

    def _take(
        self, message: Message, records: list[LogRecord], covered: int, end: int
    ) -> tuple[int, bool]:
        """Keep one message; the offset covered so far, and whether the range is over."""
        error = message.error()
        if error is not None:
            if error.code() == KafkaError._PARTITION_EOF:
                return max(covered, int(message.offset() or 0)), True
            if error.code() == KafkaError.GROUP_AUTHORIZATION_FAILED:
                return covered, False  # librdkafka asks for a coordinator; we need none
            if error.code() in _MOVED:
                return covered, True
            place = f"{message.topic()}-{message.partition()} at {covered}"
            raise explained(place, KafkaException(error), "Read on the topic")
        offset = int(message.offset() or 0)
        if offset >= end:
            return end, True
        records.append(log_record(message))
        return offset + 1, False

    def epoch_at(self, topic: str, partition: int, offset: int, end: int) -> int | None:
        """The leader epoch of the first record at or after *offset*; None where there is none."""
        records, _ = self.read(topic, partition, offset, end, 1)
        return records[0].leader_epoch if records else None

    def close(self) -> None:
        """Let go of the connections."""
        self._consumer.close()


def log_record(message: Message) -> LogRecord:
    """What an audit wants to know of a record; payloads are left where they are."""
    value = message.value()
    short = value if isinstance(value, bytes) and len(value) <= LONGEST_IDENTITY else None
    headers: Any = message.headers()
    return LogRecord(int(message.offset() or 0), short, own_header(headers), message.leader_epoch())
