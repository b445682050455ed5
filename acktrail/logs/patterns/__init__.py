"""The texts that clients and brokers print, one module per kind of program.

A new wording is one `Pattern` in one of these modules: agents, jobs and `acktrail read` take their
words, expressions and rules for joining lines from `PATTERNS`.
"""

from __future__ import annotations

from acktrail.logs.event import LOSSES
from acktrail.logs.pattern import Pattern
from acktrail.logs.patterns import (
    broker,
    config_blocks,
    consumer,
    delivery_reports,
    expiries,
    failures,
    go_clients,
    kafkajs,
    network,
    other_clients,
    producer,
    python_clients,
    rdkafka,
    truncations,
)

_IN_ORDER: tuple[Pattern, ...] = (
    *config_blocks.PATTERNS,
    *rdkafka.PATTERNS,
    *producer.RETRY,
    *broker.PATTERNS,
    *truncations.PATTERNS,
    *expiries.PATTERNS,
    *producer.METADATA,
    *producer.SEQUENCE,
    *producer.CLOSING,
    *python_clients.PATTERNS,
    *go_clients.PATTERNS,
    *other_clients.PATTERNS,
    *failures.ANNOUNCED,
    *network.NETWORK,
    *consumer.PATTERNS,
    *network.BACKGROUND,
    *kafkajs.PATTERNS,
    *delivery_reports.PATTERNS,
    *failures.EXCEPTIONS,
)


def _decides(pattern: Pattern) -> bool:
    """Whether its words alone decide that a record was lost."""
    return bool(pattern.sure) and pattern.kind in LOSSES and pattern.detail != "exception"


PATTERNS: tuple[Pattern, ...] = (
    *(p for p in _IN_ORDER if _decides(p)),
    *(p for p in _IN_ORDER if not _decides(p)),
)
"""In order: the first that fits is the record's event. A loss comes before what may stand beside
it: a message's text, printed with the loss, may hold any other sentence."""
