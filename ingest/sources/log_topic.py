"""Log lines shipped to Kafka by Filebeat, Vector or Fluent Bit: the way for fleets.

The position of a partition is the next offset, kept in the lake and nowhere else: no group is
joined, nothing is committed to Kafka. A topic that was created again has another id, and so another
position. What retention deleted before it was read is counted.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator, Sequence
from datetime import UTC, datetime
from typing import Any

import pyarrow as pa
from confluent_kafka import Consumer, KafkaError, KafkaException, Message, TopicPartition

from acktrail.contracts.arrow import columns, no_rows
from acktrail.contracts.bronze import LOG_RECORDS
from acktrail.errors import ConfigError, SourceUnavailable
from acktrail.lake import Lake, Position
from acktrail.logs.prefilter import clean_text, marker_of
from acktrail.settings.sources import LogTopicSource, SourceSettings
from ingest.kafka.access import Listener, client_config, explained, open_consumer
from ingest.kafka.cluster_view import ClusterView, PartitionState
from ingest.registry import SourceContext
from ingest.source import Batch, Health
from ingest.sources.shipped_lines import read_shipped
from ingest.sources.shipped_records import Joined, PartitionLines

CONSUMED_AT_ONCE = 5_000
CONSUME_S = 0.5
"""librdkafka waits this long to fill a batch, even if there is something in it."""
HELD_BYTES = 16 * 1024 * 1024
"""Most text of one partition held back for records that may go on."""
LOOK_S = 60.0
"""How often new partitions are looked for."""

NOT_EVIDENCE = "not_evidence"
POISON = "poison"
"""A message that is not JSON of the configured shape."""
EXPIRED = "expired_before_read"
"""Offsets that retention deleted before they were read."""


def build(settings: SourceSettings, context: SourceContext) -> LogTopic:
    """The source that *settings* describe."""
    if not isinstance(settings, LogTopicSource):
        raise ConfigError(f"{settings.name} is not a log_topic source.")
    return LogTopic(settings, context)


class LogTopic:
    """The source of kind `log_topic`."""

    def __init__(
        self,
        settings: LogTopicSource,
        context: SourceContext,
        clock: Callable[[], float] = time.time,
    ) -> None:
        self.name = settings.name
        self._settings = settings
        self._cluster = context.cluster
        self._once = context.once
        self._config = client_config(context.kafka)
        self._clock = clock
        self._lake: Lake | None = None
        self._view: ClusterView | None = None
        self._consumer: Consumer | None = None
        self._heard = Listener()
        self._parts: dict[tuple[str, int], PartitionLines] = {}
        self._ids: dict[tuple[str, int], str] = {}
        self._ends: dict[tuple[str, int], int] = {}
        self._next_look = 0.0
        self._poison = ""
        self._expired: list[Batch] = []

    def open(self, lake: Lake) -> None:
        """Connect, and go on where the lake says each partition was left."""
        self.close()
        self._lake = lake
        self._view = ClusterView(self._config, self._settings.timeout_s)
        self._heard = Listener()
        self._consumer = open_consumer(_reader_config(self._config, self.name), self._heard)
        self._look()

    def poll(self, timeout_s: float) -> Iterator[Batch]:
        """Lines that came, as records, one batch per partition."""
        expired, self._expired = self._expired, []
        yield from expired
        if self._look_due():
            self._look()
        while True:
            came = self._consume(timeout_s)
            batches = list(self._batches())
            yield from batches
            if batches or not self._once or self._drained():
                return
            # With --once a poll that gives nothing is the end: not while the topic's end is ahead.
            if not came:
                said = SourceUnavailable("The topic's end was not reached; nothing came.")
                lost = self._heard.last is not None
                raise explained(self.name, said, heard=self._heard) if lost else said

    def _look_due(self) -> bool:
        """Every minute; and when no broker is connected, which a consumer does not raise."""
        return not self._once and (self._heard.all_down or self._clock() >= self._next_look)

    def _batches(self) -> Iterator[Batch]:
        drained = self._drained()
        for place, part in self._parts.items():
            over = drained or part.size > HELD_BYTES
            batch = self._batch(place, part, 0.0 if over else self._settings.idle_s)
            if batch is not None:
                yield batch

    def committed(self, batch: Batch) -> None:
        """The lake has it: nothing is kept for it here."""

    def health(self) -> Health:
        """Messages not yet handed over, topics that do not exist, what could not be read."""
        lag = sum(max(0, end - self._parts[p].next) for p, end in self._ends.items())
        missing = self._view.missing if self._view is not None else ()
        notes = (*missing, self._poison) if self._poison else missing
        position = ", ".join(f"{t}-{p}@{part.next}" for (t, p), part in self._parts.items())
        return Health(float(lag), "messages", notes, position, missing, once_fails=True)

    def close(self) -> None:
        """Leave the cluster."""
        if self._consumer is not None:
            self._consumer.close()
        self._consumer = self._view = None
        self._parts, self._ids, self._ends, self._expired = {}, {}, {}, []

    # -- the cluster ----------------------------------------------------------------------------

    def _look(self) -> None:
        """Learn of partitions, their ends, and where the lake stands for new ones."""
        assert self._view is not None, "open() comes first"
        assert self._lake is not None, "open() comes first"
        assert self._consumer is not None, "open() comes first"
        states = self._view.partitions(self._settings.topics)
        self._heard.answered()
        self._next_look = self._clock() + LOOK_S
        fresh = [s for s in states if (s.topic, s.partition) not in self._parts]
        known = self._lake.positions(LOG_RECORDS, [self._app_id(_file_id(s)) for s in fresh])
        for state in states:
            place = (state.topic, state.partition)
            if state.latest_offset is None or state.earliest_offset is None:
                raise SourceUnavailable(f"{place[0]}-{place[1]} has no leader to read from.")
            self._ends[place] = state.latest_offset
            if place not in self._parts:
                self._begin(place, state, known[self._app_id(_file_id(state))])
        if fresh:
            self._consumer.assign(
                [TopicPartition(*p, part.next) for p, part in self._parts.items()]
            )

    def _begin(self, place: tuple[str, int], state: PartitionState, began: int | None) -> None:
        earliest = state.earliest_offset or 0
        self._ids[place] = _file_id(state)
        start = earliest if began is None else max(began, earliest)
        if began is not None and began < earliest:
            app_id = self._app_id(self._ids[place])
            gone = earliest - began
            move = Position(app_id, began, earliest)
            self._expired.append(
                Batch(LOG_RECORDS, no_rows(LOG_RECORDS), (move,), gone, {EXPIRED: gone})
            )
            began = earliest
        self._parts[place] = PartitionLines(began, start)

    def _app_id(self, file_id: str) -> str:
        return f"log_topic/{self._cluster}/{self.name}/{file_id}"

    def _drained(self) -> bool:
        """With --once: whether everything that was there at the start has come."""
        return self._once and all(self._parts[p].next >= end for p, end in self._ends.items())

    # -- messages -------------------------------------------------------------------------------

    def _consume(self, timeout_s: float) -> bool:
        assert self._consumer is not None, "open() comes first"
        if self._drained():
            return False
        # While the end is known to be ahead, --once waits for the broker as long as it may take.
        until = time.monotonic() + (self._settings.timeout_s if self._once else timeout_s)
        while True:
            try:
                messages = self._consumer.consume(CONSUMED_AT_ONCE, min(timeout_s, CONSUME_S))
            except KafkaException as error:
                raise explained(f"the topics of {self.name}", error, heard=self._heard) from None
            came = [self._take(message) for message in messages]
            if any(came) or time.monotonic() >= until:
                return any(came)

    def _take(self, message: Message) -> bool:
        """Keep one message; whether it leads on."""
        error = message.error()
        topic, partition, offset = message.topic(), message.partition(), message.offset()
        place = (str(topic), int(partition or 0))
        if error is not None:
            if error.code() == KafkaError._PARTITION_EOF:
                part = self._parts[place]
                part.next = max(part.next, int(offset or 0))
                part.at_end = True
                return True
            if error.code() == KafkaError.GROUP_AUTHORIZATION_FAILED:
                return False  # librdkafka asks for a coordinator; we need none
            raise explained(f"{topic}-{partition}", KafkaException(error), "Read on the topic")
        line = read_shipped(message.value(), self._settings.shape)
        if line is None and not self._poison:
            self._poison = (
                f"Messages that are not {self._settings.shape} JSON are dropped and counted; "
                f"the first is at {topic}-{partition}, offset {offset}."
            )
        stamp = message.timestamp()[1] / 1000
        self._parts[place].add(int(offset or 0), line, self._clock(), stamp)
        return True

    def _batch(self, place: tuple[str, int], part: PartitionLines, idle_s: float) -> Batch | None:
        joined, poison, reached = part.take(self._clock(), idle_s)
        if reached == part.began or (part.began is None and not joined and not poison):
            return None
        kept = [record for record in joined if record.evidence]
        skipped = sum(record.lines for record in joined if not record.evidence)
        dropped = {NOT_EVIDENCE: skipped, POISON: len(poison)}
        app_id = self._app_id(self._ids[place])
        move = Position(app_id, part.began, reached)
        part.began = reached
        return Batch(
            LOG_RECORDS,
            self._rows(place[0], self._ids[place], kept),
            (move,),
            received=len(kept) + skipped + len(poison),
            dropped={reason: count for reason, count in dropped.items() if count},
        )

    def _rows(self, topic: str, file_id: str, kept: Sequence[Joined]) -> pa.Table:
        if not kept:
            return no_rows(LOG_RECORDS)
        read_at = datetime.fromtimestamp(self._clock(), UTC)
        same: dict[str, Any] = {
            "cluster": self._cluster,
            "source": self.name,
            "file_id": file_id,
            "zone": self._settings.zone,
            "truncated": False,
            "read_at": read_at,
            "day": f"{read_at:%Y-%m-%d}",
        }
        own: dict[str, list[Any]] = {
            "host": [k.host for k in kept],
            "path": [k.path or topic for k in kept],
            "position": [k.offset for k in kept],
            "text": [clean_text(k.text) for k in kept],
            "marker": [marker_of(k.text) for k in kept],
            "shipped_at": [k.shipped_at for k in kept],
        }
        return columns(LOG_RECORDS, len(kept), same, own)


def _file_id(state: PartitionState) -> str:
    return f"{state.topic}-{state.partition}@{state.topic_id}"


def _reader_config(config: dict[str, Any], name: str) -> dict[str, Any]:
    return {
        "queued.max.messages.kbytes": 8_192,
        "fetch.message.max.bytes": 1_048_576,
        **config,
        # librdkafka wants a name; with assign() no group is joined and nothing is committed.
        "group.id": f"acktrail-{name}",
        "enable.auto.commit": False,
        "enable.auto.offset.store": False,
        "enable.partition.eof": True,
        "auto.offset.reset": "error",
    }
