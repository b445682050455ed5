"""Batches that expired, as the Java producer and kafka-python word it.

Sources: Apache Kafka, clients/src/main/java/org/apache/kafka; kafka-python, kafka/producer.
"""

from __future__ import annotations

import re

from acktrail.logs.pattern import Fields, Pattern, pattern
from acktrail.logs.patterns.exceptions import wrapped_by


def _expired(fields: Fields, found: re.Match[str], text: str) -> bool:
    named = "imeoutException" in text
    fields["error"] = "TimeoutException" if named else wrapped_by(text, found.start())
    return True


def _expired_cut(fields: Fields, found: re.Match[str], text: str) -> bool:
    told = any(w in text for w in ("TimeoutException", "batch creation", " due to timeout"))
    return _expired(fields, found, text) and (told or found["tp"] is not None)


def _expired_python(fields: Fields, found: re.Match[str], text: str) -> bool:
    if "KafkaTimeoutError" in text:
        fields["error"] = "KafkaTimeoutError"
    seconds = found["seconds"]
    if seconds is not None:
        fields["elapsed_ms"] = round(float(seconds) * 1000)
    return True


PATTERNS: tuple[Pattern, ...] = (
    # producer/internals/Sender.java and RecordAccumulator/ProducerBatch.java: text of the
    # TimeoutException that callbacks get; the client itself prints nothing.
    #   2.1 to 4.2: Expiring 12 record(s) for orders-3:120004 ms has passed since batch creation
    #   4.3: the same, and ". The request has not been sent, or no server response has been ..."
    #   0.10.2 to 2.0: Expiring 1 record(s) for orders-3: 30042 ms has passed since last append
    #   0.10.1: Expiring 3 record(s) for orders-3 due to 30042 ms has passed since last append
    pattern(
        "Expiring ",
        r"Expiring (?P<records>\d{1,18}|\S{1,20}) record\(s\) for "
        r"(?P<tp>[^:]{1,320}?|[\w-]{22}:[^:]{1,300}?)(?::| due to) ?"
        r"(?P<elapsed_ms>\d{1,18}|[^\s:]{1,20}) ?ms has passed since",
        "expired",
        "batch_expired",
        _expired,
        words=("record(s)",),
        sure=("record(s) for ",),
        example="org.apache.kafka.common.errors.TimeoutException: Expiring 12 record(s) for "
        "orders-3:120004 ms has passed since batch creation",
        continues=(r"(?:record\(s\)|(?:\d{1,12} )?ms has|passed since|due to)\s",),
    ),
    # The same, cut by whoever quoted it: Expiring 3 record(s) for orders-0
    pattern(
        "Expiring ",
        r"Expiring (?P<records>\d{1,18}|[A-Zn]) record\(s\)(?: for (?P<tp>[\w.-]{1,249}-\d{1,9})\b|"
        r"(?= ?(?:\.\.\.|…|\Z|['\"`)]| due to timeout)))",
        "expired",
        "batch_expired_cut",
        _expired_cut,
        words=("record(s)",),
        sure=("record(s) for ",),
        example="org.apache.kafka.common.errors.TimeoutException: Expiring 7 record(s) for "
        "orders-2",
    ),
    # 0.10.0: Batch containing 3 record(s) expired due to timeout while requesting metadata from
    #         brokers for orders-3
    pattern(
        "Batch containing ",
        r"Batch containing (?P<records>\d{1,18}) record\(s\) expired due to timeout while "
        r"requesting metadata from brokers for (?P<tp>\S{1,320})",
        "expired",
        "batch_expired_0_10_0",
        _expired,
        words=("record(s)",),
        sure=("record(s) expired due to timeout",),
        example="Batch containing 3 record(s) expired due to timeout while requesting metadata "
        "from brokers for orders-3",
    ),
    # kafka-python 1.x left its text unformatted: ('Batch containing %s record(s) expired due to
    # timeout while requesting metadata from brokers for %s', 49, TopicPartition(topic='o', ...))
    pattern(
        "Batch containing %s",
        r"Batch containing %s record\(s\) expired .{0,100}?', (?P<records>\d{1,18}), "
        r"(?P<tp>TopicPartition\([^()]{1,300}\))(?P<seconds>(?!))?",
        "expired",
        "batch_expired_python",
        _expired_python,
        words=("record(s)",),
        sure=("record(s) expired due to timeout",),
        example="('Batch containing %s record(s) expired due to timeout while requesting metadata "
        "from brokers for %s', 49, TopicPartition(topic='orders', partition=3))",
    ),
    # 0.9: org.apache.kafka.common.errors.TimeoutException: Batch Expired
    pattern(
        "TimeoutException: Batch Expired",
        r"TimeoutException: Batch Expired",
        "expired",
        "batch_expired_0_9",
        _expired,
        words=("Batch Expired",),
        sure=True,
        example="org.apache.kafka.common.errors.TimeoutException: Batch Expired",
    ),
    #   and in the words of the console producer, producer/internals/ErrorLoggingCallback.java:
    #   Error when sending message to topic orders with key: null, value: 6 bytes with error: Batch
    #   Expired
    pattern(
        "Error when sending message to topic ",
        r"Error when sending message to topic (?P<topic>\S{1,249}) with key: .{0,400}? with error: "
        r"Batch Expired",
        "expired",
        "batch_expired_0_9",
        _expired,
        words=("Batch Expired",),
        sure=True,
        example="Error when sending message to topic orders with key: null, value: 6 bytes with "
        "error: Batch Expired",
    ),
    # kafka-python, producer/record_accumulator.py:
    #   KafkaTimeoutError: Batch for TopicPartition(topic='sales', partition=0) containing 19
    #   record(s) expired: 30.01 seconds have passed since batch creation plus linger time
    pattern(
        "Batch for ",
        r"Batch for (?P<tp>TopicPartition\([^()]{1,300}\)) containing "
        r"(?P<records>\d{1,18}|\S{1,20}) record\(s\)(?: expired)?"
        r"(?::? ?(?P<seconds>\d{1,9}(?:\.\d{1,9})?) seconds have passed)?",
        "expired",
        "batch_expired_python",
        _expired_python,
        words=("record(s)",),
        sure=("Batch for TopicPartition(",),
        example="KafkaTimeoutError: Batch for TopicPartition(topic='sales', partition=0) "
        "containing 19 record(s) expired: 30.01 seconds have passed since batch creation plus "
        "linger time",
        opens=("^KafkaTimeoutError",),
    ),
    #   cut by whoever quoted it: KafkaTimeoutError: Batch ... containing 8 record(s)
    pattern(
        "KafkaTimeoutError: Batch ",
        r"(?P<error>KafkaTimeoutError): Batch (?:\.\.\.|…) (?:containing (?P<records>\d{1,18}) "
        r"record\(s\)|expired)(?P<seconds>(?!))?",
        "expired",
        "batch_expired_python",
        _expired_python,
        sure=True,
        example="KafkaTimeoutError: Batch ... containing 8 record(s)",
    ),
)
