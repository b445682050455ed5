"""What other clients print: kafkajs, kafka-python, aiokafka, ruby-kafka, Scala's before 0.11."""

from __future__ import annotations

import json
import re
from typing import Any

from pipelines.reading import go_clients
from pipelines.reading.errors import kafkajs_error, look_up, retriable
from pipelines.reading.layout import Layout
from pipelines.reading.pattern import Fields, Pattern, pattern
from pipelines.reading.times import read_timestamp

RDKAFKA: tuple[Pattern, ...] = (
    # librdkafka, src/rdkafka.c, where an application printed it without its head:
    #   Producer terminating with 5 messages (3805 bytes) still in queue or transit: use flush() ...
    pattern(
        "Producer terminating with ",
        r"Producer terminating with (?P<records>\d{1,18}) messages?(?: \(|: use flush| still in)",
        "dropped_at_close",
        "rd_terminate",
        sure=True,
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

_OF_OTHERS = re.compile(r"onsumer|dminClient|KafkaAdmin")
_NODE = re.compile(r"\bNode (bootstrap-\d{1,9}|\d{1,10})\Z")


def _python_node(fields: Fields, found: re.Match[str], text: str) -> bool:
    node = _NODE.search(text[max(0, found.start() - 40) : found.start()])
    if node is not None and node.group(1).isdigit():
        fields["node"] = int(node.group(1))
    return node is not None and "onsumer" not in text


_PRODUCERS_ERRORS = {
    "MessageSizeTooLargeError",
    "RecordListTooLargeError",
    "NotEnoughReplicasError",
}
_PRODUCERS_ERRORS |= {"NotEnoughReplicasAfterAppendError"}
_SENDING = re.compile(r"(?i)\bsend|\bpubli|\bproduc")
_ANOTHER_REQUEST = re.compile(
    r"(?i)consum|fetch|commit|offset|metadata|coordinator|admin|(?-i:(?<!Produce)(?<=[a-z])Request)|group|"
    r"create.?topic|AlreadyExists"
)


def _python_send(fields: Fields, _: re.Match[str], text: str) -> bool:
    if fields["error"] in _PRODUCERS_ERRORS:
        return True
    sent = look_up(fields["error"]) is not None and _SENDING.search(text) is not None
    return sent and _ANOTHER_REQUEST.search(text) is None


LOGSTASH: tuple[Pattern, ...] = (
    # logstash-output-kafka, which goes on until all are sent:
    #   Sending batch to Kafka failed. Will retry after a delay. {:batch_size=>125, :failures=>3,
    pattern(
        "Sending batch to Kafka failed. Will retry",
        r"Sending batch to Kafka failed\. Will retry",
        "retry",
        "logstash_retry",
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
        lambda fields, found, text: _seconds(fields, found) and "kafka/consumer" not in text,
    ),
    # kafka-python, producer/future.py: KafkaTimeoutError: Timeout after waiting for 10 secs.
    pattern(
        "KafkaTimeoutError: Timeout after waiting for ",
        r"(?P<error>KafkaTimeoutError): Timeout after waiting for "
        r"(?P<seconds>\d{1,9}(?:\.\d{1,9})?) secs",
        "send_failed",
        "future_timeout",
        lambda fields, found, _: _seconds(fields, found),
    ),
    # kafka-python, errors.py, in an application's words: [Error 10] MessageSizeTooLargeError
    pattern(
        "[Error ",
        r"\[Error \d{1,3}\] (?P<error>[A-Z]\w{4,50}Error)\b",
        "send_failed",
        "python_error",
        _python_send,
    ),
    # kafka-python, conn.py: <BrokerConnection client_id=pay-producer, node_id=0 ...>: Connect
    #   attempt returned error 111. Disconnecting.
    pattern(
        "<BrokerConnection client_id=",
        r"<BrokerConnection client_id=(?P<client_id>[^,\s>]{1,200}), .{0,400}?>: (?:Connect "
        r"attempt returned error \d{1,5}|Closing connection\. (?P<error>[A-Z]\w{2,50}Error)\b)",
        "connection_failure",
        "python_no_connection",
        lambda _, __, text: "roducer" in text and "onsumer" not in text,
    ),
    # aiokafka, client.py: KafkaConnectionError: Unable to bootstrap from [('b1', 9092, ...
    pattern(
        "KafkaConnectionError: Unable to bootstrap from",
        r"(?P<error>KafkaConnectionError): Unable to bootstrap from",
        "connection_failure",
        "no_brokers",
        lambda _, __, text: _OF_OTHERS.search(text) is None,
    ),
    # kafka-python 1.x left its text unformatted:
    #   KafkaTimeoutError: ('Failed to update metadata after %s secs.', 60.0)
    pattern(
        "KafkaTimeoutError: ('Failed to update metadata",
        r"(?P<error>KafkaTimeoutError): \('Failed to update metadata after %s secs\.', "
        r"(?P<seconds>\d{1,9}(?:\.\d{1,9})?)",
        "send_failed",
        "metadata_timeout",
        lambda fields, found, text: _seconds(fields, found) and "kafka/consumer" not in text,
    ),
    # kafka-python before 1.0, producer/base.py:
    #   FailedPayloadsError sending ProduceRequest (#1 of 1) to orders:3 with msgs ...
    pattern(
        "FailedPayloadsError sending ProduceRequest",
        r"(?P<error>FailedPayloadsError) sending ProduceRequest \(#\d{1,9} of \d{1,9}\) to "
        r"(?P<topic>[A-Za-z0-9._-]{1,249}):(?P<partition>\d{1,9})",
        "send_failed",
        "failed_payloads",
    ),
    # aiokafka, producer/sender.py: KafkaError: Unexpected error during batch delivery
    pattern(
        "KafkaError: Unexpected error during batch delivery",
        r"(?P<error>KafkaError): Unexpected error during batch delivery",
        "send_failed",
        "aiokafka_delivery",
    ),
    # aiokafka, client.py: Unable connect to node with id 1: [Errno 111] Connect call failed
    pattern(
        "Unable connect to node with id ",
        r"Unable connect to node with id (?P<node>\d{1,10}): (?P<message>.{0,300})",
        "connection_failure",
        "aiokafka_no_connection",
        lambda _, __, text: _OF_OTHERS.search(text) is None,
    ),
    # kafka-python, producer/buffer.py: Failed to allocate memory within the configured max blocking
    pattern(
        "KafkaTimeoutError: Failed to allocate memory",
        r"(?P<error>KafkaTimeoutError): Failed to allocate memory",
        "send_failed",
        "buffer_exhausted",
    ),
    # kafka-python, client_async.py: Node 3 connection failed -- refreshing metadata
    pattern(
        " connection failed -- refreshing metadata",
        r" connection failed -- refreshing metadata",
        "connection_failure",
        "python_connection_failed",
        _python_node,
    ),
    # kafka-python, client_async.py: kafka.errors.NoBrokersAvailable: NoBrokersAvailable
    pattern(
        "kafka.errors.NoBrokersAvailable",
        r"kafka\.errors\.(?P<error>NoBrokersAvailable)",
        "connection_failure",
        "no_brokers",
        lambda _, __, text: _OF_OTHERS.search(text) is None,
    ),
    #   in an application's words: Failed to create Kafka producer: NoBrokersAvailable
    pattern(
        ": NoBrokersAvailable",
        r": (?P<error>NoBrokersAvailable)\b",
        "connection_failure",
        "no_brokers",
        lambda _, found, text: "afka" in text[: found.start()] and _OF_OTHERS.search(text) is None,
    ),
)


_RUBY_CLASS = re.compile(r"Kafka::(DeliveryFailed|BufferOverflow)\b")


def _ruby(fields: Fields, found: re.Match[str], text: str) -> bool:
    named = _RUBY_CLASS.search(text)
    fields["error"] = None if named is None else named.group(1)
    if found.groupdict().get("more"):
        fields["partition"] = None
    return True


RUBY: tuple[Pattern, ...] = (
    # ruby-kafka, lib/kafka/producer.rb: Failed to send messages to orders/3, orders/4
    pattern(
        "Failed to send messages to ",
        r"Failed to send messages to (?P<tp>[A-Za-z0-9._-]{1,249}/\d{1,9})(?P<more>, \S)?",
        "send_failed",
        "ruby_delivery_failed",
        _ruby,
    ),
    #   Failed to send all messages; attempting retry 1 of 3 after 1s
    pattern(
        "Failed to send all messages",
        r"Failed to send all messages[^;\n]{0,60}; attempting retry \d{1,6} of \d{1,6}",
        "retry",
        "ruby_retry",
    ),
    # lib/kafka/cluster.rb, in fluentd's words: error_class=Kafka::ConnectionError error="Could not
    #   connect to any of the seed brokers: ...
    pattern(
        "Kafka::ConnectionError",
        r"Kafka::(?P<error>ConnectionError)\b.{0,40}?Could not connect to any of the seed brokers",
        "connection_failure",
        "no_brokers",
        lambda _, __, text: _OF_OTHERS.search(text) is None,
    ),
    #   Cannot produce to orders, max buffer size (1000 messages) reached
    pattern(
        "Cannot produce to ",
        r"Cannot produce to (?P<topic>[A-Za-z0-9._-]{1,249}), max buffer (?:byte)?size \(",
        "send_failed",
        "buffer_exhausted",
        _ruby,
    ),
)

PATTERNS: tuple[Pattern, ...] = (*go_clients.PATTERNS, *RDKAFKA, *SCALA, *PYTHON, *RUBY, *LOGSTASH)


def _seconds(fields: Fields, found: re.Match[str]) -> bool:
    if found["seconds"] is not None:
        fields["elapsed_ms"] = round(float(found["seconds"]) * 1000)
    return True


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
KAFKAJS_WORDS = (
    "kafkajs",
    "KafkaJS",
    "[Producer] Failed to send messages",
    "[BrokerPool] Failed to ",
)
"""One of them stands in whatever kafkajs prints of a producer."""
_KAFKAJS_GIVEN_UP = re.compile(r"KafkaJSNumberOfRetriesExceeded: .{1,300}?(?:[Pp]roduce|\bsend)")
_AGAIN = re.compile(r"\bretryTime['\"]?: ?\d")
_KAFKAJS_OBJECT = re.compile(r'\{ ?"level": ?"[A-Z]{4,8}",.{0,40}"')
_FAILED_TO_SEND = re.compile(r"Failed to send messages: ([^\n\"{`]{3,300})")
_NOT_PRODUCER = re.compile(
    r'\[Consumer|\[Runner\]|kafkajs/src/(?:consumer|admin)/|"groupId"|onsumer-server|\[ServerKafka\]|"clientId":"[^"]{0,80}onsumer'
)


def read_kafkajs(text: str, fields: dict[str, Any] | None) -> tuple[Fields, Layout] | None:
    """A record of kafkajs: JSON as its default logger prints it, or what was copied out of one."""
    fields = fields or _kafkajs_object(text)
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
        return found, _kafkajs_layout(fields)
    values = {name: regex.search(text) for name, regex in _QUOTED.items()}
    got = {name: None if value is None else value.group(1) for name, value in values.items()}
    found["client_id"] = got["client_id"]
    found["correlation_id"] = None if got["correlation_id"] is None else int(got["correlation_id"])
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
