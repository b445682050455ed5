"""One consumer instance under audit: what it was given, what it processed, what it reports."""

from __future__ import annotations

import secrets
import threading
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from time import time_ns
from typing import Any

from confluent_kafka import Message

from acktrail_client.audit import Audit
from acktrail_client.given_records import note_ids, runs_of, size_of
from acktrail_client.processing import Progress
from acktrail_client.read_offsets import Place, ReadOffsets
from acktrail_client.reporter import Reporter, log
from acktrail_client.reporters import reporter_for
from acktrail_client.rows import Row
from acktrail_client.settings import inherited, reported

_ATTEMPTS = 5
_MOST_IDS = 100_000
_FIRST = 500
_MOST_BYTES = 4_000_000
"""Of messages that wait to be looked at."""
_AT_ONCE = 2_000


class Membership:
    """What `AuditedConsumer` notes, and the reporter takes."""

    def __init__(self, conf: Mapping[str, Any], audit: Audit, *, tracks: bool) -> None:
        self.on = True
        self.gone = False
        self._audit = audit
        self._settings = reported(conf, audit.host, producer=False)
        self._group = str(conf.get("group.id", ""))
        self._reporter: Reporter = reporter_for(audit, conf)
        self.reporter = secrets.token_hex(16)
        self.key = f"{self._group}/{self.reporter}"
        self._lock = threading.Lock()
        self._reading = threading.Lock()
        self._given: list[tuple[int, Sequence[Message]]] = []
        """What was given and not looked at yet, and when."""
        self._waiting = 0
        self._enough = _FIRST
        """So many messages may wait to be looked at."""
        self._read = ReadOffsets(self._group)
        self._tracks = tracks
        self._progress: dict[Place, Progress] = {}
        self._outcomes: Counter[str] = Counter()
        self._noted = 0
        self._dropped: dict[str, dict[str, int]] = {}
        self._cluster_id: str | None = None
        self._access = inherited(conf)
        self._attempts = 0

    def begin(self) -> None:
        """Report from now on."""
        self._reporter.add(self)

    # -- called by the application's threads -------------------------------------------------------

    def given(self, messages: Sequence[Message]) -> None:
        """These were given to the application. They are looked at later, by *fold*."""
        if self._tracks:
            self._follow(messages)
        if not self.on:
            return
        self._given.append((time_ns(), messages))
        self._waiting += len(messages)
        if self._waiting > self._enough:
            self._reporter.wake()
            if self._waiting > 2 * self._enough:
                self.fold()  # the reporter does not keep up: this thread does its work

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

    def fold(self) -> None:
        """Look at the messages that were given, and let go of them."""
        if self._given:
            try:
                with self._reading:
                    self._fold()
            except Exception as error:
                self._broke(error)

    def _fold(self) -> None:
        count = len(self._given)
        given = self._given[:count]
        del self._given[:count]
        self._waiting = 0
        for at_ns, messages in _together(given):
            self._note([m for m in messages if m.error() is None], at_ns // 1_000_000)

    def _note(self, messages: list[Any], now_ms: int) -> None:
        """Ranges of offsets, and the ids of the records in them."""
        if not messages:
            return
        places = [(m.topic(), m.partition()) for m in messages]
        offsets = [m.offset() for m in messages]
        for place, first, end in runs_of(places, offsets):
            if not self._audit.audits(place[0]):
                continue
            run, at = messages[first:end], offsets[first:end]
            epoch = run[-1].leader_epoch()
            found = self._read.read(place, at[0], at[-1], epoch, now_ms)
            self._noted += note_ids(found.ids, [m.headers() for m in run], at, epoch)
        self._enough = max(1, _MOST_BYTES // size_of(messages[-1]))

    def assigned(self, places: list[Place]) -> None:
        """A rebalance, or the application, gave these partitions to this member."""
        self.fold()
        with self._reading:
            self._read.assigned([place for place in places if self._audit.audits(place[0])])
        with self._lock:
            for place in places if self._tracks else ():
                self._progress[place] = Progress()

    def revoked(self, places: Sequence[Place]) -> None:
        """These partitions are not this member's any more."""
        self.fold()
        with self._reading:
            self._read.revoked(list(places))
        with self._lock:
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
        self.fold()
        with self._reading:
            rows = self._read.take(now_ms)
            topics = sorted(self._read.topics)
            self._noted = 0
        same = {"cluster_id": self._cluster_id} if self._cluster_id else {}
        for row in rows:
            row.update(same)
        return [{**self._beat(topic, closed=closed), **same} for topic in topics], rows

    def is_full(self) -> bool:
        """Whether so much is waiting that it is to be reported now."""
        return self._noted > _MOST_IDS

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
            self._cluster_id = self._reporter.cluster_of(self._access)


def _together(
    given: Iterable[tuple[int, Sequence[Message]]],
) -> Iterator[tuple[int, list[Message]]]:
    """What many polls gave, some thousand messages at once, and when the last of them came."""
    some: list[Message] = []
    at_ns = 0
    for at_ns, messages in given:
        some += messages
        if len(some) >= _AT_ONCE:
            yield at_ns, some
            some = []
    if some:
        yield at_ns, some
