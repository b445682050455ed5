"""One consumer instance under audit: what it was given, what it processed, what it reports."""

from __future__ import annotations

import secrets
import struct
import threading
import time
from collections import Counter
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any

from confluent_kafka import Consumer, Message

from acktrail_client.audit import Audit
from acktrail_client.identity import (
    BLOCK_BITS,
    BLOCK_IDS,
    HEADER_LENGTH,
    HEADER_NAME,
    own_header,
)
from acktrail_client.processing import Progress
from acktrail_client.read_offsets import Place, Range, ReadOffsets
from acktrail_client.reporter import Reporter, log
from acktrail_client.reporters import reporter_for
from acktrail_client.rows import Row
from acktrail_client.settings import reported

_ATTEMPTS = 5
_MOST_IDS = 100_000
_IN_BLOCK = BLOCK_IDS - 1
_seq_of = struct.Struct(">Q").unpack_from


class Membership:
    """What `AuditedConsumer` notes, and the reporter takes."""

    def __init__(self, conf: Mapping[str, Any], audit: Audit, *, tracks: bool) -> None:
        self.on = True
        self.gone = False
        self._audit = audit
        self._settings = reported(conf, producer=False)
        self._group = str(conf.get("group.id", ""))
        self._reporter: Reporter = reporter_for(audit, conf)
        self.reporter = secrets.token_hex(16)
        self.key = f"{self._group}/{self.reporter}"
        self._lock = threading.Lock()
        self._read = ReadOffsets(self._group)
        self._tracks = tracks
        self._progress: dict[Place, Progress] = {}
        self._outcomes: Counter[str] = Counter()
        self._noted = 0
        self._dropped: dict[str, dict[str, int]] = {}
        self._cluster_id: str | None = None
        self._consumer: Callable[[], Consumer | None] = _nobody
        self._attempts = 0

    def begin(self, consumer: Callable[[], Consumer | None]) -> None:
        """Report from now on; *consumer*: the audited one, None once it is gone."""
        self._consumer = consumer
        self._reporter.add(self)

    # -- called by the application's threads -------------------------------------------------------

    def given(self, messages: Sequence[Message]) -> None:
        """These were given to the application."""
        if self._tracks:
            self._follow(messages)
        if not self.on:
            return
        try:
            with self._lock:
                self._note(messages)
        except Exception as error:
            self._broke(error)
        if self._noted > _MOST_IDS:
            self._noted = 0
            self._reporter.wake()

    def _follow(self, messages: Iterable[Any]) -> None:
        """What is still to be processed, audited or not: the application's commits depend on it."""
        with self._lock:
            for message in messages:
                if message.error() is None:
                    place = (message.topic(), message.partition())
                    progress = self._progress.get(place)
                    if progress is None:
                        progress = self._progress[place] = Progress()
                    progress.give(message.offset())

    def _note(self, messages: Iterable[Any]) -> None:
        now_ms = int(time.time() * 1000)
        place: Place | None = None
        found = last = latest = None
        for message in messages:
            if message.error() is not None:
                continue
            topic, partition, offset = message.topic(), message.partition(), message.offset()
            if place is None or partition != place[1] or topic != place[0]:
                self._end_of_run(last, latest, now_ms)
                last = None
                if not self._audit.audits(topic):
                    place = None
                    continue
                place = (topic, partition)
            if last is not None and last.last + 1 == offset:
                last.last = offset
                last.records += 1
            else:
                found = self._read.read(place, offset, message.leader_epoch(), now_ms)
                last = found.ranges[-1]
            latest = message
            headers = message.headers()
            if headers:
                self._note_id(found, headers, offset)
        self._end_of_run(last, latest, now_ms)

    @staticmethod
    def _end_of_run(last: Range | None, message: Message | None, now_ms: int) -> None:
        """A range has the epoch and the time of its last record."""
        if last is not None and message is not None:
            last.epoch, last.ended_ms = message.leader_epoch(), now_ms

    def _note_id(self, found: Any, headers: Any, offset: int) -> None:
        name, value = headers[-1]
        if name != HEADER_NAME or len(value or b"") != HEADER_LENGTH or value[0] != 1:
            value = own_header(headers)  # something on the way added headers of its own
            if value is None:
                return
        seq = _seq_of(value, 17)[0]
        key = (value[1:17], seq >> BLOCK_BITS)
        ids = found.ids.get(key)
        if ids is None:
            ids = found.ids[key] = []
        ids.append((seq & _IN_BLOCK, offset))
        self._noted += 1

    def assigned(self, places: list[Place]) -> None:
        """A rebalance, or the application, gave these partitions to this member."""
        with self._lock:
            self._read.assigned([place for place in places if self._audit.audits(place[0])])
            for place in places if self._tracks else ():
                self._progress[place] = Progress()

    def revoked(self, places: Sequence[Place]) -> None:
        """These partitions are not this member's any more."""
        with self._lock:
            self._read.revoked(list(places))
            for place in places:
                self._progress.pop(place, None)

    def processed(self, message: Any, outcome: str) -> None:
        """The application is done with *message*."""
        if not self._tracks:
            raise ValueError("processed() needs AuditedConsumer(..., processed='explicit')")
        self._outcomes[outcome] += 1
        progress = self._progress.get((message.topic(), message.partition()))
        if progress is not None:
            with self._lock:
                progress.done(message.offset())

    def all_processed(self) -> None:
        """The application is done with all that it was given."""
        with self._lock:
            for progress in self._progress.values():
                progress.all_done()

    def to_store(self, places: Sequence[Place] | None) -> list[tuple[str, int, int]]:
        """Topic, partition and next offset to process, where that has changed."""
        found = []
        with self._lock:
            for place, progress in self._progress.items():
                asked = places is None or place in places
                if asked and progress.dirty and progress.next is not None:
                    progress.dirty = False
                    found.append((*place, progress.next))
        return found

    def end(self) -> None:
        """The consumer is closed: the last report."""
        if self.on:
            self._reporter.last_report(self)
            self.on = False

    def abandon(self) -> None:
        """The consumer was let go without `close()`."""
        self.gone = True

    def switch_off(self) -> None:
        """Nothing is noted any more."""
        self.on = False

    def _broke(self, error: Exception) -> None:
        self.on = False
        log.error("The audit of a consumer is off: %r", error)

    # -- called by the reporter ------------------------------------------------------------------

    def take(self, now_ms: int, *, closed: bool) -> tuple[list[Row], list[Row]]:
        """Heartbeats for every topic, and the rows of what was read since the last report."""
        if not closed:
            self._learn_cluster()
        with self._lock:
            rows = self._read.take(now_ms)
            topics = sorted(self._read.topics)
            self._noted = 0
        same = {"cluster_id": self._cluster_id} if self._cluster_id else {}
        for row in rows:
            row.update(same)
        return [{**self._beat(topic, closed=closed), **same} for topic in topics], rows

    def dropped(self, row: Row) -> None:
        """Evidence was thrown away for want of memory: the next heartbeats say so."""
        counts = self._dropped.setdefault(row["topic"], {})
        counts[row["tier"]] = counts.get(row["tier"], 0) + int(row["records"])

    def _beat(self, topic: str, *, closed: bool) -> Row:
        counted = {f"processed.{name}": str(n) for name, n in sorted(self._outcomes.items())}
        beat: Row = {
            "tier": "heartbeat",
            "topic": topic,
            "group": self._group,
            "settings": {**self._settings, **counted},
        }
        if closed:
            beat["closed"] = True
        if topic in self._dropped:
            beat["dropped"] = dict(self._dropped[topic])
        return beat

    def _learn_cluster(self) -> None:
        if self._cluster_id is None and self._attempts < _ATTEMPTS:
            self._attempts += 1
            consumer = self._consumer()
            try:
                if consumer is not None:
                    self._cluster_id = consumer.cluster_id(timeout=0.5)
            except Exception as error:
                log.debug("the cluster gave no id: %r", error)


def _nobody() -> None:
    return None
