"""Files that VerifiableProducer and VerifiableConsumer print, followed as they grow.

A batch's `received` counts the rows it makes and the lines that make none, by reason: many lines
become one row.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from datetime import UTC, datetime

from acktrail.audit.wire import row_of_report
from acktrail.contracts.arrow import rows
from acktrail.contracts.bronze import AUDIT_REPORTS
from acktrail.errors import ConfigError
from acktrail.lake import Lake
from acktrail.settings.sources import SourceSettings, VerifiableSource
from ingest.files.follow import Follower
from ingest.files.stream import BLOCK, Key, Stream
from ingest.recorded import name_hash
from ingest.registry import SourceContext
from ingest.source import Batch, Health
from ingest.sources.verifiable_lines import VerifiableReader

BLOCKS_IN_TURN = 16
"""Blocks read of one file before the next has its turn."""


def build(settings: SourceSettings, context: SourceContext) -> VerifiableFiles:
    """The source that *settings* describe."""
    if not isinstance(settings, VerifiableSource):
        raise ConfigError(f"{settings.name} is not a verifiable source.")
    return VerifiableFiles(settings, context)


@dataclass
class _Reading:
    reader: VerifiableReader
    position: int


class VerifiableFiles:
    """The source of kind `verifiable`."""

    def __init__(
        self,
        settings: VerifiableSource,
        context: SourceContext,
        clock: Callable[[], float] = time.time,
    ) -> None:
        self.name = settings.name
        self._settings = settings
        self._cluster = context.cluster
        self._clock = clock
        self._scope = f"verifiable/{self._cluster}/{self.name}"
        self._follower = Follower(settings.paths, AUDIT_REPORTS, self._scope)
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
                block = stream.read(BLOCK)
                batch = self._next(stream, block)
                if batch is not None:
                    yield batch
                if batch is None or len(block) < BLOCK:
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

    def _next(self, stream: Stream, block: bytes) -> Batch | None:
        text = block[: block.rfind(b"\n") + 1]
        if not text and len(block) == BLOCK:
            text = block  # no line of these tools is that long
        if not text:
            return None  # a torn line waits for its end
        track = stream.track
        assert track is not None, "only identified files are read"
        reading = self._reading(stream, track.file_id, track.read_to)
        piece = reading.reader.read(text, reading.position)
        reading.position += len(text)
        read_at = datetime.fromtimestamp(self._clock(), UTC)
        made = [row_of_report(r, self._cluster, self.name, read_at) for r in piece.reports]
        return Batch(
            AUDIT_REPORTS,
            rows(AUDIT_REPORTS, made),
            self._follower.moved(stream, reading.position),
            received=len(made) + piece.dropped.total(),
            dropped=dict(piece.dropped),
        )

    def _reading(self, stream: Stream, file_id: str, position: int) -> _Reading:
        """The reader of a file; after a restart it first looks again at what is in the lake."""
        known = self._readings.get(stream.key)
        if known is not None and known.position == position:
            return known
        reader = VerifiableReader(
            name_hash(self._scope, file_id), self._settings.group, self._settings.session_settings
        )
        at = 0
        while at < position:
            block = stream.content.read_at(at, min(BLOCK, position - at))
            text = block[: block.rfind(b"\n") + 1] or block
            if not text:
                break
            reader.read(text, at)
            at += len(text)
        self._readings[stream.key] = _Reading(reader, position)
        return self._readings[stream.key]
