"""Files of librdkafka's statistics, one JSON document to a line, followed as they grow.

A batch's `received` counts the samples it holds and the lines that gave none, by reason.
"""

from __future__ import annotations

import json
import re
import socket
import time
from collections import Counter
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from datetime import UTC, datetime
from typing import Any

from acktrail.contracts.bronze import METRIC_SAMPLES
from acktrail.errors import ConfigError
from acktrail.lake import Lake
from acktrail.metrics.librdkafka import StatisticsReader, StatisticsSample
from acktrail.settings.sources import LibrdkafkaStatsSource, SourceSettings
from ingest.files.follow import Follower
from ingest.files.stream import BLOCK, Key, Stream
from ingest.registry import SourceContext
from ingest.source import Batch, Health
from ingest.sources.samples import SeriesSamples, sample_rows

BLOCKS_IN_TURN = 16
"""Blocks read of one file before the next has its turn."""
LONGEST_LINE = 64 * BLOCK
"""A client of a hundred thousand partitions prints documents of this size."""
INSTANCE = "statistics"
"""In the place of a target's port, so that the host is read as from any target."""
NOT_JSON, NOT_STATISTICS, NOT_A_PRODUCER = "not_json", "not_statistics", "not_a_producer"

_BEGINS = re.compile(rb'\{\s*"name"\s*:')


def build(settings: SourceSettings, context: SourceContext) -> LibrdkafkaStats:
    """The source that *settings* describe."""
    if not isinstance(settings, LibrdkafkaStatsSource):
        raise ConfigError(f"{settings.name} is not a librdkafka_stats source.")
    return LibrdkafkaStats(settings, context)


@dataclass
class _Reading:
    """The reader of one file, and how far it has read."""

    position: int = 0
    reader: StatisticsReader = field(default_factory=StatisticsReader)


class LibrdkafkaStats:
    """The source of kind `librdkafka_stats`."""

    def __init__(
        self,
        settings: LibrdkafkaStatsSource,
        context: SourceContext,
        clock: Callable[[], float] = time.time,
    ) -> None:
        self.name = settings.name
        self._cluster = context.cluster
        self._clock = clock
        host = settings.host or socket.gethostname()
        self._instance = f"{host}:{INSTANCE}"
        scope = f"librdkafka_stats/{self._cluster}/{self.name}/{host}"
        self._follower = Follower(settings.paths, METRIC_SAMPLES, scope, settings.rotated)
        self._readings: dict[Key, _Reading] = {}
        self._once = context.once
        self._ended: set[Key] = set()
        """With --once: files read to their end. One that still grows is not read again."""

    def open(self, lake: Lake) -> None:
        """Learn from the lake how far each file was read, as files are met."""
        self._readings.clear()
        self._ended.clear()
        self._follower.open(lake)

    def poll(self, timeout_s: float) -> Iterator[Batch]:  # noqa: ARG002 - never waits
        """What the files have gained, in whole lines."""
        for stream in self._follower.look(self._clock()):
            if stream.key in self._ended:
                continue
            for _ in range(BLOCKS_IN_TURN):
                text, more = _lines(stream)
                if text:
                    yield self._batch(stream, text)
                if not text or not more:
                    if self._once:
                        self._ended.add(stream.key)
                    break

    def committed(self, batch: Batch) -> None:
        """The lake has it."""
        self._follower.committed(batch.positions)

    def health(self) -> Health:
        """Bytes not yet read, and what a person should know."""
        return self._follower.health(self._clock())

    def close(self) -> None:
        """Close all files."""
        self._follower.close()

    def _batch(self, stream: Stream, text: bytes) -> Batch:
        track = stream.track
        assert track is not None, "only identified files are read"
        reading = self._reading(stream, track.read_to)
        dropped: Counter[str] = Counter()
        measured = [m for line in text.splitlines() for m in _read(reading.reader, line, dropped)]
        reading.position += len(text)
        series = [
            SeriesSamples(m.metric, m.labels, self._instance, ((m.at_ms, m.value),))
            for m in measured
        ]
        read_at = datetime.fromtimestamp(self._clock(), UTC)
        return Batch(
            METRIC_SAMPLES,
            sample_rows(self._cluster, self.name, series, read_at),
            self._follower.moved(stream, reading.position),
            received=len(series) + dropped.total(),
            dropped=dict(dropped),
        )

    def _reading(self, stream: Stream, position: int) -> _Reading:
        """The reader of a file; after a restart it first reads again what is in the lake."""
        known = self._readings.get(stream.key)
        if known is not None and known.position == position:
            return known
        reading = _Reading()
        while reading.position < position:
            left = position - reading.position
            text, _ = _lines(stream, reading.position, left)
            if not text:
                break
            for line in text.splitlines():
                _read(reading.reader, line, Counter())
            reading.position += len(text)
        reading.position = position
        self._readings[stream.key] = reading
        return reading


def _lines(stream: Stream, at: int | None = None, most: int = LONGEST_LINE) -> tuple[bytes, bool]:
    """Whole lines from where *stream* was read to, and whether more may follow at once.

    One longer than LONGEST_LINE is handed out in pieces: none of them is a document.
    """
    if at is None:
        block = stream.read(min(BLOCK, most))
        track = stream.track
        assert track is not None, "only identified files are read"
        at, settled = track.read_to, track.settled
    else:
        block, settled = stream.content.read_at(at, min(BLOCK, most)), True
    pieces, size = [block], len(block)
    while settled and len(pieces[-1]) == BLOCK and b"\n" not in pieces[-1] and size < most:
        pieces.append(stream.content.read_at(at + size, min(BLOCK, most - size)))
        size += len(pieces[-1])
    text = b"".join(pieces)
    whole = text[: text.rfind(b"\n") + 1]
    if not whole and size >= LONGEST_LINE:
        whole = text
    return whole, len(block) == BLOCK


def _read(reader: StatisticsReader, line: bytes, dropped: Counter[str]) -> list[StatisticsSample]:
    """What one line says; where it says nothing, why is counted."""
    if not line.strip():
        return []
    document = document_of(line)
    if document is None:
        dropped[NOT_JSON] += 1
        return []
    try:
        found = reader.read(document)
    except ValueError:
        dropped[NOT_STATISTICS] += 1
        return []
    if not found:
        dropped[NOT_A_PRODUCER] += 1
    return found


def document_of(line: bytes) -> Mapping[str, Any] | None:
    """The JSON document that *line* ends with; None where it does not.

    Before it may stand what a logger prints, or a document that was torn when its client died.
    """
    for begin in (0, *(match.start() for match in _BEGINS.finditer(line))):
        try:
            found = json.loads(line[begin:])
        except (ValueError, RecursionError):
            continue
        return found if isinstance(found, dict) else None
    return None
