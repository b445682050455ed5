"""Failures that only an exception reports: the client prints nothing, the application does.

Kafka's own exceptions have no stack frames: often one line is all there is. Sentences that only a
failed send has are read whatever stands around them. An exception alone counts if only a send ends
with it; one that other requests end with too counts only where something reports a send.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from functools import partial

from acktrail.logs.layout import Layout, Text
from acktrail.logs.partitions import topic_name
from acktrail.logs.pattern import Fields, Found, Pattern
from acktrail.logs.patterns.exceptions import (
    FENCED,
    NOT_A_SEND,
    ends_a_send,
    of_the_wait,
    thrown,
    wrapped_by,
)
from acktrail.logs.patterns.topics import topic_of

_STATED = re.compile(
    r"(?:[Ff]ailed to|[Ee]rror|[Uu]nable to|[Cc]ould not) (?:send|publish|produce|sending|"
    r"publishing|producing) (?:the |a |an )?(?:message|record|event)s? to "
    r"(?:[Kk]afka\b|(?:[Kk]afka )?topic\b(?! ?['\"\[]?[\w.-]{0,249}/))"
)
_METADATA = re.compile(
    r"(?:Failed to update metadata after|not present in metadata after) (?P<ms>\d{1,18})\s?ms"
)
_BUFFER = re.compile(
    r"Failed to allocate (?:memory|\d{1,18} bytes) within the configured max blocking time"
    r"(?: (?P<ms>\d{1,18}) ?ms)?"
)
_TOO_LARGE = re.compile(r"The message is \d{1,18} bytes when serialized which is larger than")


def _read_announced(words: str, detail: str, shown: Text, flat: str) -> Found | None:
    """A failed send that *words* announce."""
    position = flat.find(words)
    if position < 0:
        return None
    name, message = thrown(shown.lines)
    name = name or wrapped_by(flat, position) or of_the_wait(flat)
    return Found(_fields(detail, name, message, flat), position)


def _read_refused(shown: Text, flat: str) -> Found | None:
    """A send that ended before its record was sent: no metadata, no memory, too large a record."""
    if not any(regex.search(flat) for regex in (_METADATA, _BUFFER, _TOO_LARGE)):
        return None
    name, message = thrown(shown.lines)
    if name is None and (too_large := _TOO_LARGE.search(flat)) is not None:
        name = wrapped_by(flat, too_large.start())
    return Found(_fields("exception", name, message, flat), len(flat))


def _read_stated(shown: Text, flat: str) -> Found | None:
    """A failed send in an application's own words."""
    words = _stated(flat)
    return None if words is None else _read_announced(words, "send_error", shown, flat)


def _read_exception(shown: Text, flat: str) -> Found | None:
    """An exception that a send ended with, and no other words about it."""
    if NOT_A_SEND.search(flat) is not None:
        return None
    name, message = thrown(shown.lines)
    if not ends_a_send(name, message, shown.lines):
        return None
    return Found(_fields("exception", name, message, flat), len(flat))


def _fields(detail: str, name: str | None, message: str | None, flat: str) -> Fields:
    metadata, buffer = _METADATA.search(flat), _BUFFER.search(flat)
    waited = metadata or buffer
    if waited is not None:
        detail = "buffer_exhausted" if metadata is None else "metadata_timeout"
    elif _TOO_LARGE.search(flat) is not None:
        detail = "record_too_large"
    topic, partition = topic_of(flat)
    return {
        "kind": "fatal_sequence" if name in FENCED else "send_failed",
        "detail": detail,
        "error": name,
        "message": message,
        "elapsed_ms": None if waited is None or waited["ms"] is None else int(waited["ms"]),
        "topic": topic,
        "partition": partition,
    }


_OTHER_BROKER = re.compile(r"(?i)rocketmq|pulsar|\bnats\b|mqtt|arn:aws|rabbit|pub/?sub|amqp|\w://")
_REASON = re.compile(r"[^:\n]{0,80}: \S")
_HEADED = re.compile(r"[^A-Za-z]{0,40}\d\d:\d\d|[^A-Za-z]{0,8}(?:[A-Z]{4,8}|\w{4,8}:)[\s\]:!]")
"""Words that stand in prose too are an event behind a time or a level, or with a reason."""


def _stated(flat: str) -> str | None:
    """An application's own words for it, where they are plain."""
    found = _STATED.search(flat[:4000])
    if found is None or _OTHER_BROKER.search(flat[:4000]) is not None:
        return None
    said = found.group(0)
    if said.endswith("topic") or _REASON.match(flat, found.end()) is not None:
        return said
    return said if _HEADED.match(flat) is not None else None


def read_verifiable(shown: Text, _: str) -> Found | None:
    """What tools/VerifiableProducer.java prints for a message that failed.

    {"timestamp":1769842800000,"name":"producer_send_error","topic":"orders","exception":"class
    org.apache.kafka.common.errors.NotEnoughReplicasException","message":"Messages are ...", ...}
    """
    said: Mapping[str, object] = shown.fields or {}
    if said.get("name") != "producer_send_error":
        return None
    topic, raised, message = (said.get(name) for name in ("topic", "exception", "message"))
    error = raised.rpartition(".")[2] if isinstance(raised, str) else None
    fields = {
        "kind": "fatal_sequence" if error in FENCED else "send_failed",
        "detail": "verifiable_send_error",
        "error": error or None,
        "message": message if isinstance(message, str) else None,
        "topic": topic_name(topic) if isinstance(topic, str) else None,
    }
    return Found(fields, 0, Layout())


def _announced(
    words: str, example: str, detail: str = "send_error", prefilter: str | None = None
) -> Pattern:
    """A pattern of words that only a failed send is announced with."""
    read: Callable[[Text, str], Found | None] = partial(_read_announced, words, detail)
    return Pattern(
        "send_failed", detail, (prefilter or words,), read, sure=(words,), example=example
    )


_REJECTED = (
    "org.apache.kafka.common.errors.NotEnoughReplicasException: Messages are rejected since there "
    "are fewer in-sync replicas than required."
)
ANNOUNCED: tuple[Pattern, ...] = (
    # producer/internals/ErrorLoggingCallback.java
    _announced(
        "Error when sending message to topic ",
        "Error when sending message to topic orders with key: null, value: 5 bytes with error:",
    ),
    # spring-kafka, support/LoggingProducerListener.java
    _announced(
        "Exception thrown when sending a message",
        "Exception thrown when sending a message with key='k' and payload='v' to topic orders:",
    ),
    # streams/processor/internals/RecordCollectorImpl.java
    _announced(
        "Error encountered sending record to topic ",
        "Error encountered sending record to topic orders for task 0_0 due to:",
    ),
    _announced(
        "Abort sending since an error caught",
        "task [0_1] Abort sending since an error caught with a previous record (key k) to topic t",
    ),
    # connect/runtime/AbstractWorkerSourceTask.java
    _announced("ailed to send record to ", "WorkerSourceTask{id=a-0} failed to send record to t:"),
    _announced(
        "Unrecoverable exception from producer send callback",
        "ConnectException: Unrecoverable exception from producer send callback",
    ),
    # flink, connector/kafka/sink/KafkaWriter.java
    _announced("Failed to send data to Kafka", "Failed to send data to Kafka orders-0@-1 with"),
    # spring-kafka, core/KafkaTemplate.java
    _announced(
        "kafka.core.KafkaProducerException: Failed to send",
        "org.springframework.kafka.core.KafkaProducerException: Failed to send",
    ),
    _announced(
        "Failed to send: ProducerRecord(",
        "Failed to send: ProducerRecord(topic=orders, partition=null, key=a)",
    ),
    # smallrye-reactive-messaging, SRMSG18206
    _announced(
        "Unable to write to Kafka from channel",
        "SRMSG18206: Unable to write to Kafka from channel out (topic: orders)",
    ),
    # log4j, core/appender/mom/kafka/KafkaAppender.java
    _announced(
        "Unable to write to Kafka in appender", "Unable to write to Kafka in appender [kafka]"
    ),
    # producer/internals/RecordAccumulator.java and Sender.java
    _announced(
        "Aborting producer batches due to fatal error",
        "[Producer clientId=p] Aborting producer batches due to fatal error",
        "fatal_abort",
    ),
    _announced(
        "Producer is closed forcefully",
        "org.apache.kafka.common.KafkaException: Producer is closed forcefully.",
        "closed_forcefully",
    ),
    # producer/internals/TransactionManager.java
    *(
        _announced(
            f"Transiting to {state} error state due to ",
            f"Transiting to {state} error state due to {_REJECTED}",
            "transaction_error_state",
            "error state due to",
        )
        for state in ("abortable", "fatal")
    ),
    # Prometheus' and Confluent's metrics reporters
    _announced(
        "Could not submit metrics to Kafka topic ",
        "Could not submit metrics to Kafka topic _metrics: Topic _metrics not present in metadata",
    ),
    # tools/VerifiableProducer.java
    Pattern(
        "send_failed",
        "verifiable_send_error",
        ("producer_send_error",),
        read_verifiable,
        sure=("producer_send_error",),
        example='{"timestamp":1769842800000,"name":"producer_send_error","topic":"orders",'
        '"exception":"class org.apache.kafka.common.errors.NotEnoughReplicasException",'
        '"message":"Messages are rejected"}',
    ),
    # producer/KafkaProducer.java and internals/BufferPool.java
    Pattern(
        "send_failed",
        "metadata_timeout",
        ("metadata after", "max blocking time", "when serialized which is larger"),
        _read_refused,
        sure=(
            "not present in metadata after ",
            "within the configured max blocking time",
            "when serialized which is larger than",
        ),
        example="org.apache.kafka.common.errors.TimeoutException: Topic orders not present in "
        "metadata after 60000 ms.",
    ),
)
"""What only a failed send prints."""

EXCEPTIONS: tuple[Pattern, ...] = (
    # an application's own words: Failed to send message to topic orders
    Pattern(
        "send_failed",
        "send_error",
        tuple(
            f"{failed} {verb}"
            for failed in ("ailed to", "nable to", "ould not", "rror")
            for verb in ("send", "publish", "produc")
        ),
        _read_stated,
        shared=True,
        example="ERROR Failed to send message to topic orders: broken",
    ),
    Pattern(
        "send_failed",
        "exception",
        (
            "kafka.common.errors.",
            "kafka.clients.producer.",
            "kafka.common.KafkaException",
            "KafkaCommonErrors::",
            "producer has been closed",
            "Invalid transition attempted",
            "SequenceException",
            "FencedException",
            "EpochException",
            "ReplicasException",
            "AppendException",
            "FollowerException",
            "PartitionException",
            "AuthorizationException",
            "NetworkException",
            "TimeoutException",
            "TooLargeException",
            "ExhaustedException",
        ),
        _read_exception,
        sure=tuple(
            f"{name}Exception: "
            for name in (
                "NotEnoughReplicas",
                "NotEnoughReplicasAfterAppend",
                "RecordTooLarge",
                "OutOfOrderSequence",
                "ProducerFenced",
                "InvalidProducerEpoch",
                "BufferExhausted",
            )
        ),
        example=_REJECTED,
    ),
)
