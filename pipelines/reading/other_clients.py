"""What other clients print: sarama (Go), kafkajs, kafka-python, and Scala's own before 0.11."""

from __future__ import annotations

import json
import re
from typing import Any

from pipelines.reading.errors import sarama_error
from pipelines.reading.layout import Layout
from pipelines.reading.pattern import Fields, Pattern, pattern
from pipelines.reading.times import read_timestamp

_ON_PARTITION = re.compile(r" on (?P<topic>[A-Za-z0-9._-]{1,249})/(?P<partition>\d{1,9})")
_SERVER = re.compile(r"kafka server: (.{5,160})", re.DOTALL)


def _because(fields: Fields, found: re.Match[str], _: str) -> bool:
    why = found["why"]
    if why is not None:
        server = _SERVER.search(why)
        if server is not None:
            fields["error"] = sarama_error(server.group(1))
        fields["message"] = why.strip()[:300] or None
    return True


def _closing(fields: Fields, found: re.Match[str], text: str) -> bool:
    fields["error"] = "EOF" if found["why"].strip() == "EOF" else None
    return _because(fields, found, text)


def _delivered(fields: Fields, found: re.Match[str], _: str) -> bool:
    fields["records"] = int(found["count"])
    return True


def _trailing_partition(fields: Fields, found: re.Match[str], text: str) -> bool:
    if found["tp"] is not None:
        return True
    place = _ON_PARTITION.match(text, found.end())
    if place is not None:
        fields |= {"topic": place["topic"], "partition": int(place["partition"])}
    return place is not None


def _sarama_states(speaker: str) -> tuple[Pattern, Pattern]:
    """What a broker's goroutine says, called a flusher before 2016."""
    marker = f"producer/{speaker}/"
    said = rf"{marker}(?P<node>\d{{1,9}}) state change to "
    # async_producer.go: producer/broker/1 state change to [retrying] on orders/11 because kafka
    #   server: Tried to send a message to a replica that is not the leader for some partition.
    retrying = said + r"\[retrying\] on (?P<tp>\S{1,300}/\d{1,9})(?: because (?P<why>.{1,400}))?"
    # async_producer.go: producer/broker/478 state change to [closing] because EOF
    closing = said + r"\[closing\] because (?P<why>[^\n]{1,400})"
    return (
        pattern(marker, retrying, "retry", "sarama_broker_retrying", _because),
        pattern(marker, closing, "connection_failure", "sarama_closing", _closing),
    )


SARAMA: tuple[Pattern, ...] = (
    # async_producer.go: producer/leader/orders/2 state change to [retrying-2]
    #           before: producer/leader state change to [retrying-2] on orders/2
    pattern(
        "producer/leader",
        r"producer/leader(?:/(?P<tp>\S{1,300}/\d{1,9}))? state change to \[retrying(?:-\d{1,9})?\]",
        "retry",
        "sarama_leader_retrying",
        _trailing_partition,
    ),
    *(each for speaker in ("broker", "flusher") for each in _sarama_states(speaker)),
    # async_producer.go, idempotent: Retrying batch for orders-11 because of kafka server: Tried ...
    pattern(
        "Retrying batch for ",
        r"Retrying batch for (?P<tp>\S{1,300}-\d{1,9}) because of (?P<why>.{1,400})",
        "retry",
        "sarama_retrying_batch",
        _because,
    ),
    # async_producer.go, ProducerError: kafka: Failed to produce message to topic orders: <error>
    pattern(
        "Failed to produce message to topic ",
        r"Failed to produce message to topic (?P<topic>[A-Za-z0-9._-]{1,249}):(?P<why>.{0,400})",
        "send_failed",
        "sarama_producer_error",
        _because,
    ),
    # async_producer.go, ProducerErrors: kafka: Failed to deliver 3 messages.
    pattern(
        "Failed to deliver ",
        r"Failed to deliver (?P<count>\d{1,9}) messages\.",
        "send_failed",
        "sarama_producer_errors",
        _delivered,
    ),
    # errors.go, ErrOutOfBrokers: kafka: client has run out of available brokers to talk to
    pattern(
        "client has run out of available brokers",
        r"client has run out of available brokers",
        "connection_failure",
        "sarama_out_of_brokers",
        lambda _, __, text: "consum" not in text.lower(),
    ),
)


RDKAFKA: tuple[Pattern, ...] = (
    # librdkafka, src/rdkafka.c, where an application printed it without its head:
    #   Producer terminating with 5 messages (3805 bytes) still in queue or transit: use flush() ...
    pattern(
        "Producer terminating with ",
        r"Producer terminating with (?P<records>\d{1,18}) messages? \(\d{1,18} bytes?\) still in",
        "dropped_at_close",
        "rd_terminate",
    ),
)

SCALA: tuple[Pattern, ...] = (
    # kafka/producer/async/DefaultEventHandler.scala, gone with 0.11:
    #   Back off for 100 ms before retrying send. Remaining retries = 2
    # With 0 nothing is tried again: the exception below follows.
    pattern(
        "Back off for ",
        r"Back off for \d{1,9} ms before retrying send\. Remaining retries = "
        r"(?P<attempts_left>[1-9]\d{0,8})",
        "retry",
        "scala_retry",
    ),
    #   kafka.common.FailedToSendMessageException: Failed to send messages after 3 tries.
    pattern(
        "FailedToSendMessageException: ",
        r"(?P<error>FailedToSendMessageException): Failed to send messages after \d{1,9} tries",
        "send_failed",
        "scala_given_up",
    ),
)

PYTHON: tuple[Pattern, ...] = (
    # kafka-python, producer/kafka.py: KafkaTimeoutError: Failed to update metadata after 60.0 secs.
    pattern(
        "KafkaTimeoutError: Failed to update metadata",
        r"(?P<error>KafkaTimeoutError): Failed to update metadata(?: after (?P<seconds>\d{1,9}"
        r"(?:\.\d{1,9})?) secs)?",
        "send_failed",
        "metadata_timeout",
        lambda fields, found, _: _seconds(fields, found),
    ),
    # kafka-python, producer/buffer.py: Failed to allocate memory within the configured max blocking
    pattern(
        "KafkaTimeoutError: Failed to allocate memory",
        r"(?P<error>KafkaTimeoutError): Failed to allocate memory",
        "send_failed",
        "buffer_exhausted",
    ),
    # kafka-python, client_async.py: kafka.errors.NoBrokersAvailable: NoBrokersAvailable
    pattern(
        "kafka.errors.NoBrokersAvailable",
        r"kafka\.errors\.(?P<error>NoBrokersAvailable)",
        "connection_failure",
        "no_brokers",
        lambda _, __, text: "onsumer" not in text,
    ),
)


def _seconds(fields: Fields, found: re.Match[str]) -> bool:
    if found["seconds"] is not None:
        fields["elapsed_ms"] = round(float(found["seconds"]) * 1000)
    return True


_ERRNO = re.compile(r"\b(EAI_[A-Z]{2,20}|E(?:CONN|TIMED|NOT|HOST|NET|PIPE|ADDR)[A-Z]{0,12})\b")
_QUOTED = {
    "level": re.compile(r'"level":"([A-Z]{4,8})"'),
    "ts": re.compile(r'"timestamp":"([^"]{10,40})"'),
    "client_id": re.compile(r'"clientId":"([^"]{1,200})"'),
    "error": re.compile(r'"error":"([^"]{1,300})"'),
}
# src/network/connection.js, src/cluster/brokerPool.js, src/producer/sendMessages.js
_KAFKAJS_CONNECTION = re.compile(
    r"\[Connection\] Connection (?:error|timeout)|KafkaJSConnectionError|"
    r"KafkaJSNumberOfRetriesExceeded: Connection (?:error|timeout)|"
    r"\[BrokerPool\] Failed to connect to|\[Connection\] Failed to"
)
_KAFKAJS_PRODUCE = re.compile(
    r"\[Connection\] Response Produce\(|\[Producer\] (?:Failed|Error)|Failed to send messages"
)
_KAFKAJS_OBJECT = re.compile(r'\{"level":"[A-Z]{4,8}",.{0,40}"')
_FAILED_TO_SEND = re.compile(r"Failed to send messages: ([^\n\"]{3,300})")
_NOT_PRODUCER = re.compile(
    r'\[Consumer|\[Runner\]|"groupId"|onsumer-server|\[ServerKafka\]|"clientId":"[^"]{0,80}onsumer'
)


def read_kafkajs(text: str, fields: dict[str, Any] | None) -> tuple[Fields, Layout] | None:
    """A record of kafkajs: JSON as its default logger prints it, or what was copied out of one."""
    fields = fields or _kafkajs_object(text)
    said = text if fields is None else f"{text} {fields.get('error') or ''}"
    if _NOT_PRODUCER.search(text) is not None or _names_a_consumer(fields):
        return None
    produce = _KAFKAJS_PRODUCE.search(said)
    if produce is None and _KAFKAJS_CONNECTION.search(said) is None:
        return None
    if fields is not None and fields.get("level") == "DEBUG" and not fields.get("error"):
        return None  # every response is printed so, the good ones too
    found: Fields = {"kind": "connection_failure", "detail": "kafkajs_connection"}
    if produce is not None:
        found = {"kind": "send_failed", "detail": "kafkajs_produce"}
    errno = _ERRNO.search(said)
    found["error"] = errno.group(1) if errno is not None else _kafkajs_error(said, fields)
    if fields is not None:
        client_id = fields.get("clientId")
        found["client_id"] = client_id if isinstance(client_id, str) else None
        correlation = fields.get("correlationId")
        found["correlation_id"] = correlation if isinstance(correlation, int) else None
        return found, _kafkajs_layout(fields)
    values = {name: regex.search(text) for name, regex in _QUOTED.items()}
    got = {name: None if value is None else value.group(1) for name, value in values.items()}
    found["client_id"] = got["client_id"]
    ts = got["ts"]
    return found, Layout(level=got["level"], ts=None if ts is None else read_timestamp(ts))


def _kafkajs_object(text: str) -> dict[str, Any] | None:
    """The object that a logger printed behind a head of its own: [12:59:37] [ERROR] {"level":..."""
    start = _KAFKAJS_OBJECT.search(text)
    if start is None:
        return None
    try:
        value, _ = json.JSONDecoder().raw_decode(text, start.start())
    except (ValueError, RecursionError):
        return None
    return value if isinstance(value, dict) else None


def _names_a_consumer(fields: dict[str, Any] | None) -> bool:
    if fields is None:
        return False
    return bool(fields.get("groupId")) or "onsumer" in str(fields.get("clientId") or "")


def _kafkajs_layout(fields: dict[str, Any]) -> Layout:
    level, ts = fields.get("level"), fields.get("timestamp")
    return Layout(
        level=level if isinstance(level, str) else None,
        ts=read_timestamp(ts) if isinstance(ts, str) else None,
    )


def _kafkajs_error(text: str, fields: dict[str, Any] | None) -> str | None:
    if fields is not None and isinstance(fields.get("error"), str):
        return str(fields["error"])
    failed = _FAILED_TO_SEND.search(text)
    if failed is not None:
        return failed.group(1).strip()
    if "Connection timeout" in text:
        return "Connection timeout"
    named = _QUOTED["error"].search(text)
    return None if named is None else named.group(1)
