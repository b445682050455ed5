"""Metric samples: what a series means, and how much a total grew.

Names are translated by `acktrail.metrics.names`; here labels become the columns of silver. A series
of all topics together has no topic and is never added to those of single topics.
"""

from __future__ import annotations

import math
import re
from collections.abc import Mapping
from dataclasses import dataclass

from acktrail.metrics.names import Side, read_name

LOOK_BACK_S = 3600
"""A total's growth is counted only against a sample at most this old: absent is not zero."""

_CLIENT = ("client_id", "clientId", "client-id", "client_Id", "clientid", "client.id")
_NODE = ("node_id", "nodeId", "node-id", "node")
_BROKER = ("broker", "broker_id", "brokerId", "kafka_broker_id", "node_id")
_TOPIC = ("topic",)
_REQUEST = ("request",)
_ERROR = ("error",)
_NUMBER = re.compile(r"(?:node-)?(-?\d{1,9})\Z")
_LAZY = frozenset(
    ("request-errors-total", "failed-produce-requests-total", "produce-expires-total")
)
"""Totals whose series begins with the first event: their first sample has grown from nothing."""


@dataclass(frozen=True, slots=True)
class Meaning:
    """What a series tells, whatever its exporter spelt."""

    side: Side
    metric: str
    client_id: str | None
    topic: str | None
    node: int | None
    broker: int | None
    request: str | None
    error: str | None

    @property
    def is_total(self) -> bool:
        """Whether it only ever grows, until a restart."""
        return self.metric.endswith("-total")

    @property
    def is_rate(self) -> bool:
        """Whether its value is already per second."""
        return self.metric.endswith("-rate")

    @property
    def begins_with_an_event(self) -> bool:
        """Whether the series is made when it first counts something."""
        return self.metric in _LAZY and (self.topic is not None or self.error is not None)


def read_series(metric: str, labels: Mapping[str, str]) -> Meaning | None:
    """What a series means, or None where it is none we know."""
    known = read_name(metric, labels)
    if known is None:
        return None
    producer = known.side == "producer"
    return Meaning(
        side=known.side,
        metric=known.name,
        client_id=_label(labels, _CLIENT) if producer else None,
        topic=_label(labels, _TOPIC),
        node=_number(labels, _NODE) if producer else None,
        broker=None if producer else _number(labels, _BROKER),
        request=None if producer else _label(labels, _REQUEST),
        error=None if producer else _label(labels, _ERROR),
    )


def number(value: float | None) -> float | None:
    """The value, or None where it is not a finite number: NaN and infinities mean "no sample"."""
    return None if value is None or not math.isfinite(value) else value


def increase(before: float | None, now: float | None) -> float | None:
    """How much a total grew; after a reset, what it has counted since."""
    if before is None or now is None:
        return None
    return now - before if now >= before else now


def _label(labels: Mapping[str, str], names: tuple[str, ...]) -> str | None:
    for name in names:
        value = labels.get(name)
        if value:
            return _unquoted(value)
    return None


def _number(labels: Mapping[str, str], names: tuple[str, ...]) -> int | None:
    for name in names:
        found = _NUMBER.match(labels.get(name, ""))
        if found is not None:
            return int(found.group(1))
    return None


def _unquoted(value: str) -> str:
    """javax.management.ObjectName.quote: a value with `:`, `,` and such comes in quotes."""
    if len(value) < 2 or value[0] != '"' or value[-1] != '"':
        return value
    return re.sub(r'\\(["*?\\])', r"\1", value[1:-1]).replace("\\n", "\n")
