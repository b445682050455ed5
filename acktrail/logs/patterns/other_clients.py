"""What other clients print: the Scala client before 0.11, ruby-kafka, Logstash."""

from __future__ import annotations

import re

from acktrail.logs.pattern import OF_OTHER_CLIENTS, Fields, Pattern, pattern

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
        words=("before retrying send",),
    ),
    #   kafka.common.FailedToSendMessageException: Failed to send messages after 3 tries.
    pattern(
        "FailedToSendMessageException: ",
        r"(?P<error>FailedToSendMessageException): Failed to send messages after \d{1,9} tries",
        "send_failed",
        "scala_given_up",
        words=("FailedToSendMessage",),
        sure=True,
        example="kafka.common.FailedToSendMessageException: Failed to send messages after 3 tries.",
    ),
)

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
        shared=True,
        example="Failed to send messages to orders/3, orders/4",
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
        lambda _, __, text: OF_OTHER_CLIENTS.search(text) is None,
        words=("Kafka::ConnectionError", "seed broker"),
    ),
    #   Cannot produce to orders, max buffer size (1000 messages) reached
    pattern(
        "Cannot produce to ",
        r"Cannot produce to (?P<topic>[A-Za-z0-9._-]{1,249}), max buffer (?:byte)?size \(",
        "send_failed",
        "buffer_exhausted",
        _ruby,
        sure=True,
        example="Cannot produce to orders, max buffer size (1000 messages) reached",
    ),
)

PATTERNS: tuple[Pattern, ...] = (*SCALA, *RUBY, *LOGSTASH)
