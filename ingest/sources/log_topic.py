"""Log lines shipped to Kafka by Filebeat, Vector or Fluent Bit: the way for fleets.

The position of a partition is the next offset, kept in the lake and nowhere else: no group is
joined, nothing is committed to Kafka. A topic that was created again has another id, and so another
position. What retention deleted before it was read is counted.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from datetime import UTC, datetime
from typing import Any

import pyarrow as pa
from confluent_kafka import Message

from acktrail.contracts.arrow import columns, no_rows
from acktrail.contracts.bronze import LOG_RECORDS
from acktrail.errors import ConfigError
from acktrail.lake import Lake, Position
from acktrail.logs.prefilter import clean_text, marker_of
from acktrail.settings.sources import LogTopicSource, SourceSettings
from ingest.kafka.access import client_config
from ingest.kafka.topic_reader import (
    EXPIRED,
    POISON,
    PartitionProgress,
    Place,
    TopicReader,
)
from ingest.registry import SourceContext
from ingest.source import NOT_EVIDENCE, Batch, Health
from ingest.sources.shipped_lines import read_shipped
from ingest.sources.shipped_records import Joined, PartitionLines

HELD_BYTES = 16 * 1024 * 1024
"""Most text of one partition held back for records that may go on."""


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
        self._reader: TopicReader | None = None
        self._parts: dict[Place, PartitionLines] = {}
        self._poison = ""
        self._expired: list[Batch] = []

    def open(self, lake: Lake) -> None:
        """Connect, and go on where the lake says each partition was left."""
        self.close()
        self._lake = lake
        self._reader = TopicReader(
            self.name,
            self._config,
            self._settings.topics,
            self._settings.timeout_s,
            once=self._once,
        )
        self._reader.look(self._clock(), self._begin)

    def poll(self, timeout_s: float) -> Iterator[Batch]:
        """Lines that came, as records, one batch per partition."""
        reader = self._reader
        assert reader is not None, "open() comes first"
        expired, self._expired = self._expired, []
        yield from expired
        if reader.look_due(self._clock()):
            reader.look(self._clock(), self._begin)
        while True:
            if not self._over():
                for message in reader.read(timeout_s):
                    self._take(message)
            batches = list(self._batches(reader))
            yield from batches
            if batches or not self._once or reader.drained:
                return

    def _over(self) -> bool:
        """With --once: whether everything that was there at the start has come."""
        return self._once and self._reader is not None and self._reader.drained

    def _batches(self, reader: TopicReader) -> Iterator[Batch]:
        for place, part in self._parts.items():
            found = reader.places[place]
            part.next, part.at_end = max(part.next, found.next), found.at_end
            over = self._over() or part.size > HELD_BYTES
            batch = self._batch(place, found, 0.0 if over else self._settings.idle_s)
            if batch is not None:
                yield batch

    def committed(self, batch: Batch) -> None:
        """The lake has it: nothing is kept for it here."""

    def health(self) -> Health:
        """Messages not yet handed over, topics that do not exist, what could not be read."""
        reader = self._reader
        if reader is None:
            return Health()
        notes = (*reader.missing, self._poison) if self._poison else reader.missing
        at = ", ".join(f"{t}-{p}@{found.next}" for (t, p), found in reader.places.items())
        return Health(float(reader.lag), "messages", notes, at, reader.missing, once_fails=True)

    def close(self) -> None:
        """Leave the cluster."""
        if self._reader is not None:
            self._reader.close()
        self._reader = None
        self._parts, self._expired = {}, []

    def _begin(self, new: Mapping[Place, PartitionProgress]) -> None:
        """Move *new* partitions to where the lake stands; what retention deleted is counted."""
        assert self._lake is not None, "open() comes first"
        ids = {place: self._app_id(found.file_id) for place, found in new.items()}
        known = self._lake.positions(LOG_RECORDS, list(ids.values()))
        for place, found in new.items():
            began = known[ids[place]]
            if began is not None and began < found.earliest:
                gone = found.earliest - began
                move = Position(ids[place], began, found.earliest)
                self._expired.append(
                    Batch(LOG_RECORDS, no_rows(LOG_RECORDS), (move,), gone, {EXPIRED: gone})
                )
                began = found.earliest
            found.next = found.earliest if began is None else began
            self._parts[place] = PartitionLines(began, found.next)

    def _app_id(self, file_id: str) -> str:
        return f"log_topic/{self._cluster}/{self.name}/{file_id}"

    def _take(self, message: Message) -> None:
        """Keep the line of one message."""
        place = (str(message.topic()), int(message.partition() or 0))
        offset = int(message.offset() or 0)
        line = read_shipped(message.value(), self._settings.shape)
        if line is None and not self._poison:
            self._poison = (
                f"Messages that are not {self._settings.shape} JSON are dropped and counted; "
                f"the first is at {place[0]}-{place[1]}, offset {offset}."
            )
        stamp = message.timestamp()[1] / 1000
        self._parts[place].add(offset, line, self._clock(), stamp)

    def _batch(self, place: Place, found: PartitionProgress, idle_s: float) -> Batch | None:
        """The records of one partition that are over, and the position that they end at."""
        part = self._parts[place]
        joined, poison, reached = part.take(self._clock(), idle_s)
        if reached == part.began or (part.began is None and not joined and not poison):
            return None
        kept = [record for record in joined if record.evidence]
        skipped = sum(record.lines for record in joined if not record.evidence)
        dropped = {NOT_EVIDENCE: skipped, POISON: len(poison)}
        move = Position(self._app_id(found.file_id), part.began, reached)
        part.began = reached
        return Batch(
            LOG_RECORDS,
            self._rows(place[0], found.file_id, kept),
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
