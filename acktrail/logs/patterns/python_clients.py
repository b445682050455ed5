"""What clients in Python print: kafka-python and aiokafka."""

from __future__ import annotations

import re

from acktrail.logs.kafka_errors import look_up
from acktrail.logs.pattern import OF_OTHER_CLIENTS, Fields, Pattern, pattern

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


def _seconds(fields: Fields, found: re.Match[str]) -> bool:
    if found["seconds"] is not None:
        fields["elapsed_ms"] = round(float(found["seconds"]) * 1000)
    return True


PATTERNS: tuple[Pattern, ...] = (
    # kafka-python, producer/kafka.py: KafkaTimeoutError: Failed to update metadata after 60.0 secs.
    pattern(
        "KafkaTimeoutError: Failed to update metadata",
        r"(?P<error>KafkaTimeoutError): Failed to update metadata(?: after (?P<seconds>\d{1,9}"
        r"(?:\.\d{1,9})?) secs)?",
        "send_failed",
        "metadata_timeout",
        lambda fields, found, text: _seconds(fields, found) and "kafka/consumer" not in text,
        words=("KafkaTimeoutError",),
        shared=True,
        example="KafkaTimeoutError: Failed to update metadata after 60.0 secs.",
    ),
    # kafka-python, producer/future.py: KafkaTimeoutError: Timeout after waiting for 10 secs.
    pattern(
        "KafkaTimeoutError: Timeout after waiting for ",
        r"(?P<error>KafkaTimeoutError): Timeout after waiting for "
        r"(?P<seconds>\d{1,9}(?:\.\d{1,9})?) secs",
        "send_failed",
        "future_timeout",
        lambda fields, found, _: _seconds(fields, found),
        words=("KafkaTimeoutError",),
        sure=True,
        example="KafkaTimeoutError: Timeout after waiting for 10 secs.",
    ),
    # kafka-python, errors.py, in an application's words: [Error 10] MessageSizeTooLargeError
    pattern(
        "[Error ",
        r"\[Error \d{1,3}\] (?P<error>[A-Z]\w{4,50}Error)\b",
        "send_failed",
        "python_error",
        _python_send,
        shared=True,
        example="could not send: [Error 10] MessageSizeTooLargeError",
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
        words=("BrokerConnection client_id=",),
    ),
    # aiokafka, client.py: KafkaConnectionError: Unable to bootstrap from [('b1', 9092, ...
    pattern(
        "KafkaConnectionError: Unable to bootstrap from",
        r"(?P<error>KafkaConnectionError): Unable to bootstrap from",
        "connection_failure",
        "no_brokers",
        lambda _, __, text: OF_OTHER_CLIENTS.search(text) is None,
        words=("Unable to bootstrap from",),
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
        words=("KafkaTimeoutError",),
        shared=True,
        example="KafkaTimeoutError: ('Failed to update metadata after %s secs.', 60.0)",
    ),
    # kafka-python before 1.0, producer/base.py:
    #   FailedPayloadsError sending ProduceRequest (#1 of 1) to orders:3 with msgs ...
    pattern(
        "FailedPayloadsError sending ProduceRequest",
        r"(?P<error>FailedPayloadsError) sending ProduceRequest \(#\d{1,9} of \d{1,9}\) to "
        r"(?P<topic>[A-Za-z0-9._-]{1,249}):(?P<partition>\d{1,9})",
        "send_failed",
        "failed_payloads",
        words=("ProduceRequest (#", "FailedPayloadsError"),
        sure=True,
        example="FailedPayloadsError sending ProduceRequest (#1 of 1) to orders:3 with msgs",
    ),
    # aiokafka, producer/sender.py: KafkaError: Unexpected error during batch delivery
    pattern(
        "KafkaError: Unexpected error during batch delivery",
        r"(?P<error>KafkaError): Unexpected error during batch delivery",
        "send_failed",
        "aiokafka_delivery",
        sure=True,
        example="KafkaError: Unexpected error during batch delivery",
    ),
    # aiokafka, client.py: Unable connect to node with id 1: [Errno 111] Connect call failed
    pattern(
        "Unable connect to node with id ",
        r"Unable connect to node with id (?P<node>\d{1,10}): (?P<message>.{0,300})",
        "connection_failure",
        "aiokafka_no_connection",
        lambda _, __, text: OF_OTHER_CLIENTS.search(text) is None,
    ),
    # kafka-python, producer/buffer.py: Failed to allocate memory within the configured max blocking
    pattern(
        "KafkaTimeoutError: Failed to allocate memory",
        r"(?P<error>KafkaTimeoutError): Failed to allocate memory",
        "send_failed",
        "buffer_exhausted",
        words=("KafkaTimeoutError",),
        sure=True,
        example="KafkaTimeoutError: Failed to allocate memory within the configured max "
        "blocking time",
    ),
    # kafka-python, client_async.py: Node 3 connection failed -- refreshing metadata
    pattern(
        " connection failed -- refreshing metadata",
        r" connection failed -- refreshing metadata",
        "connection_failure",
        "python_connection_failed",
        _python_node,
        words=("-- refreshing metadata",),
    ),
    # kafka-python, client_async.py: kafka.errors.NoBrokersAvailable: NoBrokersAvailable
    pattern(
        "kafka.errors.NoBrokersAvailable",
        r"kafka\.errors\.(?P<error>NoBrokersAvailable)",
        "connection_failure",
        "no_brokers",
        lambda _, __, text: OF_OTHER_CLIENTS.search(text) is None,
        words=("NoBrokersAvailable",),
    ),
    #   in an application's words: Failed to create Kafka producer: NoBrokersAvailable
    pattern(
        ": NoBrokersAvailable",
        r": (?P<error>NoBrokersAvailable)\b",
        "connection_failure",
        "no_brokers",
        lambda _, found, text: (
            "afka" in text[: found.start()] and OF_OTHER_CLIENTS.search(text) is None
        ),
        words=("NoBrokersAvailable",),
    ),
)
