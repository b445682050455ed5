"""An event and the record it was read from, as a row of silver."""

from __future__ import annotations

import hashlib
from collections.abc import Mapping
from dataclasses import dataclass
from datetime import datetime
from typing import Any

from acktrail.aliases import Aliases
from acktrail.contracts.vocabulary import ELECTIONS
from acktrail.logs.event import Event
from acktrail.logs.kafka_errors import category, retriable
from acktrail.logs.layout import client_of_thread
from acktrail.logs.times import instant
from acktrail.window import day_of, hour_of

UNDATED = "undated"
_COMMON = ("kind", "detail", "level", "logger", "thread", "topic", "partition", "error", "node")
_PRODUCER = ("transactional_id", "correlation_id", "attempts_left", "records", "elapsed_ms")
_BROKER = (
    "broker",
    "topic_id",
    "offset",
    "high_watermark",
    "leader_epoch",
    "leader",
    "correlation_id",
)
_MESSAGE = 1000
"""Every controller prints them."""


@dataclass(frozen=True, slots=True)
class Origin:
    """Where a record stands: the columns of `log_records` that its events inherit."""

    cluster: str
    source: str
    host: str | None
    file_id: str
    path: str | None
    position: int
    zone: str | None = None
    shipped_at: datetime | None = None

    @property
    def record_key(self) -> str:
        """source/file_id/position."""
        return f"{self.source}/{self.file_id}/{self.position}"


def producer_row(event: Event, origin: Origin, aliases: Aliases) -> dict[str, Any]:
    """A row of `producer_events`."""
    row = _row(event, origin, aliases)
    row |= {name: getattr(event, name) for name in _PRODUCER}
    row["client_version"] = event.version
    row["retriable"] = retriable(event.error, event.version)
    row["category"] = category(event.error)
    return row


def consumer_row(event: Event, origin: Origin, aliases: Aliases) -> dict[str, Any]:
    """A row of `consumer_events`."""
    row = _row(event, origin, aliases)
    return row | {"group": event.group, "offset": event.offset, "elapsed_ms": event.elapsed_ms}


def broker_row(event: Event, origin: Origin, aliases: Aliases) -> dict[str, Any]:
    """A row of `broker_events`."""
    row = _row(event, origin, aliases)
    row |= {name: getattr(event, name) for name in _BROKER}
    row["isr_before"] = None if event.isr_before is None else list(event.isr_before)
    row["isr_after"] = None if event.isr_after is None else list(event.isr_after)
    return row


def client_of(event: Event) -> str | None:
    """The client id: from the message, else the thread; of librdkafka without its instance."""
    if event.client_id is None:
        return client_of_thread(event.thread)
    return event.client_id.partition("#producer-")[0] or None


def _row(event: Event, origin: Origin, aliases: Aliases) -> dict[str, Any]:
    at = instant(event.ts, origin.zone) or origin.shipped_at
    client_id = client_of(event)
    facts = {"path": origin.path, "host": origin.host, "source": origin.source}
    named = aliases.name(facts | {"client_id": client_id})
    row: dict[str, Any] = {name: getattr(event, name) for name in _COMMON}
    row["message"] = None if event.message is None else event.message[:_MESSAGE]
    row |= {
        "cluster": origin.cluster,
        "source": origin.source,
        "record_key": origin.record_key,
        "host": named.host or origin.host,
        "client_id": named.client_id or client_id,
        "at": at,
        "hour": UNDATED if at is None else hour_of(at),
    }
    row["event_key"] = _event_key(event, origin, row)
    return row


def _event_key(event: Event, origin: Origin, row: Mapping[str, Any]) -> str:
    """One key for one event, however often it is printed.

    An election is printed by each controller: its partition and new epoch name it, on its
    day, for a topic that is created again counts its epochs from 0. A batch that expired is printed
    by its callbacks once per record: what they say, within the minute.
    """
    named: tuple[object, ...]
    tells_batch = event.records is not None and event.elapsed_ms is not None
    if event.kind in ELECTIONS and event.leader_epoch is not None:
        epoch = event.leader_epoch + (1 if event.detail == "unclean_triggered" else 0)
        day = None if row["at"] is None else day_of(row["at"])
        named = ("unclean", origin.cluster, event.topic, event.partition, epoch, day)
    elif row["at"] is not None and event.kind == "expired" and tells_batch:
        minute = int(row["at"].timestamp()) // 60
        named = (event.kind, origin.cluster, row["host"], row["client_id"], minute, event.error)
        named += (event.topic, event.partition, event.records, event.elapsed_ms)
    else:
        return origin.record_key
    return hashlib.blake2b(repr(named).encode(), digest_size=16).hexdigest()
