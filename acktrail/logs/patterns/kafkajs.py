"""What kafkajs prints: JSON objects of its default logger, or what was copied out of one."""

from __future__ import annotations

import json
import re
from typing import Any

from acktrail.logs.kafka_errors import kafkajs_error, retriable
from acktrail.logs.layout import Layout, Text
from acktrail.logs.pattern import Fields, Found, Pattern
from acktrail.logs.times import read_timestamp

_ERRNO = re.compile(r"\b(EAI_[A-Z]{2,20}|E(?:CONN|TIMED|NOT|HOST|NET|PIPE|ADDR)[A-Z]{0,12})\b")
_QUOTED = {
    "level": re.compile(r'"level": ?"([A-Z]{4,8})"'),
    "ts": re.compile(r'"timestamp": ?"([^"]{10,40})"'),
    "client_id": re.compile(r'"clientId": ?"([^"]{1,200})"'),
    "correlation_id": re.compile(r'"correlationId": ?(\d{1,18})\b'),
    "error": re.compile(r'"error": ?"([^"]{1,300})"'),
}
# src/network/connection.js, src/cluster/brokerPool.js, src/producer/sendMessages.js
_KAFKAJS_CONNECTION = re.compile(
    r"\[Connection\] Connection (?:error|timeout)|KafkaJSConnectionError|"
    r"KafkaJSNumberOfRetriesExceeded: Connection (?:error|timeout)|"
    r"\[BrokerPool\] Failed to connect to|\[Connection\] Failed to"
)
_KAFKAJS_PRODUCE = re.compile(
    r"\[Connection\] Response Produce\(|Failed to send messages|"
    r"\[Producer\] (?:Failed|Error|Request Produce\(|Broker not connected)|"
    r"KafkaJSRequestTimeoutError: Request Produce\("
)
_KAFKAJS_GIVEN_UP = re.compile(r"KafkaJSNumberOfRetriesExceeded: .{1,300}?(?:[Pp]roduce|\bsend)")
_AGAIN = re.compile(r"\bretryTime['\"]?: ?\d")
_KAFKAJS_OBJECT = re.compile(r'\{ ?"level": ?"[A-Z]{4,8}",.{0,40}"')
_FAILED_TO_SEND = re.compile(r"Failed to send messages: ([^\n\"{`]{3,300})")
_NOT_PRODUCER = re.compile(
    r'\[Consumer|\[Runner\]|kafkajs/src/(?:consumer|admin)/|"groupId"|onsumer-server|\[ServerKafka\]|"clientId":"[^"]{0,80}onsumer'
)


def read_kafkajs(shown: Text, text: str) -> Found | None:
    """A record of kafkajs."""
    fields = shown.fields or _kafkajs_object(text)
    said = text if fields is None else f"{text} {fields.get('error') or ''}"
    if _NOT_PRODUCER.search(text) is not None or _names_a_consumer(fields):
        return None
    lost = _KAFKAJS_CONNECTION.search(said)
    produce = _KAFKAJS_PRODUCE.search(said) or (not lost and _KAFKAJS_GIVEN_UP.search(said)) or None
    if produce is None and lost is None:
        return None
    if fields is not None and fields.get("level") == "DEBUG" and not fields.get("error"):
        return None  # every response is printed so, the good ones too
    found: Fields = {"kind": "connection_failure", "detail": "kafkajs_connection"}
    errno = _ERRNO.search(said)
    found["error"] = errno.group(1) if errno is not None else _kafkajs_error(said, fields)
    if produce is not None:
        # src/retry: who prints retryTime tries again; a refused request is, where its error allows.
        again = _AGAIN.search(str(fields or text)) or (
            "Response Produce(" in said and retriable(found["error"])
        )
        found |= {"kind": "retry" if again else "send_failed", "detail": "kafkajs_produce"}
    if fields is not None:
        client_id = fields.get("clientId")
        found["client_id"] = client_id if isinstance(client_id, str) else None
        correlation = fields.get("correlationId")
        found["correlation_id"] = correlation if isinstance(correlation, int) else None
        return Found(found, len(text), _kafkajs_layout(fields))
    values = {name: regex.search(text) for name, regex in _QUOTED.items()}
    got = {name: None if value is None else value.group(1) for name, value in values.items()}
    found["client_id"] = got["client_id"]
    found["correlation_id"] = None if got["correlation_id"] is None else int(got["correlation_id"])
    ts = got["ts"]
    layout = Layout(level=got["level"], ts=None if ts is None else read_timestamp(ts))
    return Found(found, len(text), layout)


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
        return kafkajs_error(str(fields["error"]))
    failed = _FAILED_TO_SEND.search(text)
    if failed is not None:
        return kafkajs_error(failed.group(1).strip())
    if "Connection timeout" in text:
        return "Connection timeout"
    if _KAFKAJS_GIVEN_UP.search(text) is not None:
        return "KafkaJSNumberOfRetriesExceeded"
    if "KafkaJSRequestTimeoutError: " in text:
        return "KafkaJSRequestTimeoutError"
    named = _QUOTED["error"].search(text)
    return None if named is None else kafkajs_error(named.group(1))


PATTERNS: tuple[Pattern, ...] = (
    Pattern(
        "send_failed",
        "kafkajs_produce",
        ("kafkajs", "KafkaJS", "[Producer] Failed to send messages", "[BrokerPool] Failed to "),
        read_kafkajs,
        shared=True,
        example="publish failed KafkaJSRequestTimeoutError: Request Produce(key: 0, version: 7)",
        opens=("^KafkaJS",),
    ),
)
