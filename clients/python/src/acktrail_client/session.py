"""One producer instance under audit: its topics, its transactions and what it reports of itself."""

from __future__ import annotations

import json
import secrets
import time
from collections.abc import Mapping
from typing import Any

from acktrail_client.audit import Audit
from acktrail_client.identity import Headers, header_prefix, new_session
from acktrail_client.reporter import Reporter, log
from acktrail_client.reporters import reporter_for
from acktrail_client.rows import Row
from acktrail_client.sent_ids import SentIds
from acktrail_client.settings import inherited, number, reported
from acktrail_client.statistics import Statistics

_MOST_WAITING = 2_000_000
"""Bytes noted and not yet made into rows, after which the reporter is woken."""
_SPARE = 100
"""43 bytes more could refuse a message so near the limit: it travels without an id."""
_HEADER_COST = 20
_ATTEMPTS = 5
_STATISTICS_S = 9.0


class Session:
    """What `AuditedProducer` notes, and the reporter takes."""

    def __init__(self, conf: Mapping[str, Any], audit: Audit, *, only_errors: bool) -> None:
        self.key = new_session()
        self.reporter = secrets.token_hex(16)
        self._part = 0
        self.on = True
        self.topics: dict[str, SentIds] = {}
        self.noted: dict[str, tuple[Any, ...]] = {}
        """By topic, what the producer needs for each message; empty once the audit is off."""
        self._excluded: set[str] = set()
        self._audit = audit
        self._settings = reported(conf, audit.host, producer=True)
        self._only_errors = only_errors
        self._unacked = self._settings.get("acks") == "0"
        limit = number(conf, ("message.max.bytes",), 1_000_000)
        self.big = max(0, (limit - _SPARE) // 4 - 10_000)
        """Longer values are measured: a character may be four bytes."""
        self._limit = limit - _SPARE
        self._reporter: Reporter = reporter_for(audit, conf)
        self._began: dict[str, int] | None = None
        """In a transaction: the first number of each topic."""
        self._dropped: dict[str, dict[str, int]] = {}
        self._metrics: dict[str, float] = {}
        self._statistics = Statistics()
        self._heard_at = 0.0
        self._cluster_id: str | None = None
        self._access = inherited(conf)
        self.gone = False
        self._attempts = 0

    def begin(self) -> None:
        """Report from now on."""
        self._reporter.add(self)

    # -- called by the application's threads -------------------------------------------------------

    def topic(self, name: str) -> tuple[Any, ...] | None:
        """What it takes to audit a message of the topic; None where it is not audited."""
        if name in self._excluded:
            return None
        if not isinstance(name, str) or not self._audit.audits(name):
            if isinstance(name, str):
                self._excluded.add(name)
            return None
        made = SentIds(name, unacked=self._unacked, only_errors=self._only_errors)
        ids = self.topics.setdefault(name, made)
        return (self.big, ids, header_prefix(self.key), ids.turn)

    def is_too_big(self, value: Any, key: Any, headers: Headers | None) -> bool:
        """Whether a header more could make the message too large for the client."""
        size = _bytes(value) + _bytes(key)
        pairs = headers.items() if isinstance(headers, dict) else headers or ()
        for name, content in pairs:
            size += len(name) + _bytes(content) + _HEADER_COST
        return size > self._limit

    def look_at_memory(self) -> None:
        """Wake the reporter where much is waiting."""
        if self.is_full():
            self._reporter.wake()

    def is_full(self) -> bool:
        """Whether so much is waiting that it is to be reported now."""
        return sum(ids.size for ids in list(self.topics.values())) > _MOST_WAITING

    def transaction_began(self) -> None:
        """Numbers from here on are part of a transaction."""
        self._began = {name: ids.next for name, ids in list(self.topics.items())}

    def transaction_ended(self, tier: str) -> None:
        """The numbers since it began are `committed` or `aborted`."""
        began, self._began = self._began, None
        if began is None:
            return
        for name, ids in list(self.topics.items()):
            first = began.get(name, 0)
            if ids.next > first:
                ids.ended.append((tier, first, ids.next - 1))

    def hear_statistics(self, text: str) -> None:
        """librdkafka's statistics: retries and latencies for the next heartbeat."""
        now = time.monotonic()
        if not self.on or now - self._heard_at < _STATISTICS_S:
            return
        self._heard_at = now
        try:
            self._metrics = self._statistics.metrics_of(json.loads(text))
        except Exception as error:
            log.debug("statistics could not be read: %r", error)

    def end(self) -> None:
        """The producer is closed: the last report."""
        if self.on:
            self._reporter.last_report(self)
            self.switch_off()

    def abandon(self) -> None:
        """The producer was let go without `close()`: the reporter's thread ends the session."""
        self.gone = True

    def switch_off(self) -> None:
        """Nothing is noted any more: a forked child, or a fault of ours."""
        self.on = False
        self.noted.clear()

    # -- called by the reporter ------------------------------------------------------------------

    def fold(self) -> None:
        """Keep what was noted in less memory."""
        for ids in list(self.topics.values()):
            try:
                ids.fold()
            except Exception as error:
                ids.broken = error

    def take(self, now_ms: int, *, closed: bool) -> tuple[list[Row], list[Row]]:
        """Heartbeats for every topic, and the rows of what came since the last report."""
        if not closed:
            self._learn_cluster()
        rows: list[Row] = []
        beats: list[Row] = []
        for ids in list(self.topics.values()):
            if ids.broken is not None:
                raise ids.broken
            here = ids.take(now_ms)
            if closed:
                here += self._left_open(ids, now_ms)
            rows += here
            beats.append(self._beat(ids, closed=closed))
        for row in rows:
            self._part += 1
            row["session"], row["part"] = self.key, self._part
            if self._cluster_id:
                row["cluster_id"] = self._cluster_id
        return beats, rows

    def dropped(self, row: Row) -> None:
        """Evidence was thrown away for want of memory: the next heartbeats say so."""
        counts = self._dropped.setdefault(row["topic"], {})
        counts[row["tier"]] = counts.get(row["tier"], 0) + int(row["records"])

    def _beat(self, ids: SentIds, *, closed: bool) -> Row:
        settings = self._settings
        if ids.unaudited:
            settings = {**settings, "unaudited": str(ids.unaudited)}
        beat: Row = {
            "tier": "heartbeat",
            "topic": ids.topic,
            "session": self.key,
            "records": ids.next,
            "settings": settings,
            "minutes": list(ids.minutes),
            "outcomes": ids.outcomes,
            "metrics": self._numbers(),
        }
        if closed:
            beat["closed"] = True
        if self._cluster_id:
            beat["cluster_id"] = self._cluster_id
        dropped = self._dropped.get(ids.topic)
        if dropped:
            beat["dropped"] = dict(dropped)
        return beat

    def _numbers(self) -> dict[str, float]:
        topics = list(self.topics.values())
        return {
            **self._metrics,
            "record-send-total": float(sum(ids.next for ids in topics)),
            "record-error-total": float(sum(ids.errors for ids in topics)),
        }

    def _left_open(self, ids: SentIds, now_ms: int) -> list[Row]:
        """Ids that nobody called back for: the client ends with them in its queue."""
        left = ids.left_open()
        if not left:
            return []
        ids.told += [(seq, -1, "_DESTROY") for seq in left]
        return ids.take(now_ms)

    def _learn_cluster(self) -> None:
        if self._cluster_id is None and self._attempts < _ATTEMPTS:
            self._attempts += 1
            self._cluster_id = self._reporter.cluster_of(self._access)


def _bytes(content: Any) -> int:
    """At most so many bytes on the wire."""
    if content is None:
        return 0
    return len(content) * (4 if isinstance(content, str) else 1)
