"""What applications, kcat among them, print of librdkafka's delivery reports and error callbacks.

The words behind `Broker: ` and `Local: ` are librdkafka's: src/rdkafka.c rd_kafka_err_descs.
"""

from __future__ import annotations

import re

from acktrail.logs.event import UnreadRecord
from acktrail.logs.kafka_errors import RDKAFKA_WORDS
from acktrail.logs.layout import Layout, Text
from acktrail.logs.partitions import topic_name
from acktrail.logs.pattern import Fields, Found, Pattern
from acktrail.logs.patterns.rdkafka import AFTER, AT_LINE, FATAL_FOR, LOST

_KAFKA_ERROR = re.compile(r"KafkaError\{code=(?P<code>_?[A-Z][A-Z_]{2,60})[,}.…]")
_WORDS = re.compile(r"\b(?:Broker|Local): (?P<error>[A-Z][^\n\"“”'\]\[{}|:,;.]{2,120})")
_PLACES = (
    # confluent-kafka-go: orders[3]@unset;  kcat and C: orders [3]
    re.compile(r"\b(?P<topic>[A-Za-z0-9._-]{1,249})\[(?P<partition>\d{1,9})\]@"),
    re.compile(
        r"\b(?:to|for)(?: topic)? (?P<topic>[A-Za-z0-9._-]{1,249}) \[(?P<partition>\d{1,9})\]"
    ),
    # rsyslog: to topic 'orders' partition 3;  Streams: to topic orders for task;  topic=orders
    re.compile(
        r"(?:\b(?:to|for|on|sink) topic |\btopic(?:[=:] ?| (?=['\"`])))(?P<quote>['\"`]?)"
        r"(?P<topic>[A-Za-z0-9._-]{1,249})(?P=quote)(?![\w/])"
        r"(?:,? partition[=: ]{1,2}(?P<partition>\d{1,9})\b)?"
    ),
)
_PRODUCTION = re.compile(
    r"(?i)deliver(?:y|ed)?\b.{0,40}\bfail|fail.{0,40}\bdeliver|\bproduce(?:error|exception)?\b|"
    r"\bproducing\b|\bproducer\b|Message production error|\bsend|\bvalue:|MessageProduction|"
    r"\bpublish|^\W{0,8}% ERROR: Local: "
)
_GIVEN_UP = re.compile(
    r"(?i)deliver(?:y|ed)?\b.{0,40}\bfail|fail.{0,40}\bdeliver|produc(?:e|ing)\b.{0,20}\bfail|"
    r"fail(?:ed)? to (?:produce|send|publish)|"
    r"(?:fail|error|could not)\w{0,3} (?:produc|send|publish)ing|\b_?MessageProduction|"
    r"ProduceException|Message production error"
)
"""Words by which a message, not only a connection, was given up."""
_INSTANCE = re.compile(r"#producer-\d{1,6}")
_NOT_DELIVERY = re.compile(
    r"onsumer|onsuming|ubscri|eserializ|\bfetch|\bFetch|PARTITION_EOF|commit|GroupCoordinator|"
    r"component_kind=.{0,2}source|kafka_source|StorageKafka|AdminClient|_INVALID_ARG|"
    r"TOPIC_ALREADY_EXISTS|(?i:creat(?:e|ing) ?topics?)|No such configuration|"
    r"Failed to create (?:producer|consumer|thread|handle)"
)
_OTHER_REQUEST = re.compile(
    r"\bMetadata ?[Rr]equest failed: (?:Local|Broker): |\[thrd:|RDKAFKA-[0-7]-|"
    r"Failed to acquire (?:idempotence |transactional )?PID|(?:broker|leader) unavailable: |"
    r"Error in metadata reply"
)
"""A request that carries no message, or librdkafka's own words: those it has been read for."""
_DOWN = {"_TRANSPORT", "_ALL_BROKERS_DOWN", "_RESOLVE", "Broker transport failure"}
_DOWN |= {"All broker connections are down", "Host resolution failure", "_AUTHENTICATION", "_SSL"}
_DOWN |= {"Authentication failure", "SSL error"}
_ERROR_CALLBACK = re.compile(
    r"(?i)\(after \d{1,18}ms in state |Global error: |librd?kafka|omkafka|^\W{0,4}ERROR \(Local: "
)
_EXPIRED = {"Message timed out", "_MSG_TIMED_OUT"}
_DESYNCHRONIZED = {"Broker received an out of order sequence number", "_GAPLESS_GUARANTEE"}
_ONLY_PRODUCERS = {"_QUEUE_FULL", "Queue full", "_PURGE_QUEUE", "_PURGE_INFLIGHT"}
_ONLY_PRODUCERS |= {"Purged in queue", "Purged in flight", "OUT_OF_ORDER_SEQUENCE_NUMBER"}
_ONLY_PRODUCERS |= {"MSG_SIZE_TOO_LARGE", "Message size too large", *_DESYNCHRONIZED}
_ONLY_PRODUCERS |= {"_UNKNOWN_PARTITION", "NOT_ENOUGH_REPLICAS", "Not enough in-sync replicas"}
_ONLY_PRODUCERS |= {"Broker failed to validate record", "All broker connections are down"}
"""What no fetch ends with (or nearly so): nothing else need say that it was a delivery."""


def read_report(_: Text, text: str) -> Found | UnreadRecord | None:
    """What an application printed of a delivery report's error, or kcat of its own.

    Where a message was given up, but a consumer, another request or a commit is named beside it
    (in the message's text?), it cannot be read.
    """
    code = _KAFKA_ERROR.search(text)
    words = _WORDS.search(text)
    if code is not None:
        error = code["code"]
    elif words is not None:
        error = _known_words(words["error"])
    else:
        return None
    given_up = _GIVEN_UP.search(text) is not None
    if AT_LINE.search(text) is not None or _OTHER_REQUEST.search(text) is not None:
        return UnreadRecord("delivery failed") if given_up else None
    kind = _kind(error, _INSTANCE.sub("", text))
    if kind is None:
        return UnreadRecord("delivery failed") if given_up else None
    fields: Fields = {"kind": kind, "detail": "rd_delivery_report", "error": error}
    after = AFTER.search(text)
    fields["elapsed_ms"] = None if after is None else int(after.group(1))
    return Found(fields | _place(text), len(text), Layout())


def _kind(error: str, text: str) -> str | None:
    if error in _EXPIRED:
        return "expired"
    if _NOT_DELIVERY.search(text) is not None:
        return None
    if error in _DOWN and _GIVEN_UP.search(text) is None:
        told = _PRODUCTION.search(text) or _ERROR_CALLBACK.search(text) or LOST.search(text)
        return "connection_failure" if told or error in _ONLY_PRODUCERS else None
    if error in _DESYNCHRONIZED and FATAL_FOR.search(text) is not None:
        return "fatal_sequence"
    return "send_failed" if error in _ONLY_PRODUCERS or _PRODUCTION.search(text) else None


def _place(text: str) -> Fields:
    of = FATAL_FOR.search(text)
    if of is not None:
        return {
            "topic": of["topic"],
            "partition": int(of["partition"]),
            "records": int(of["records"]),
        }
    place = next((found for each in _PLACES if (found := each.search(text)) is not None), None)
    if place is None:
        return {}
    partition = place["partition"]
    return {
        "topic": topic_name(place["topic"]),
        "partition": None if partition is None else int(partition),
    }


_FRAME = re.compile(r" ---> | at [A-Z]\w{1,60}(?:[.`]|\Z)")


def _known_words(text: str) -> str:
    """The error's own words, without what an application printed behind them."""
    for known in RDKAFKA_WORDS:
        if text.startswith(known) and not text[len(known) : len(known) + 1].isalpha():
            return known
    text = _FRAME.split(text, maxsplit=1)[0]
    error = text if "(s)" in text else text.partition("(")[0].partition(")")[0]
    return error.strip()


PATTERNS: tuple[Pattern, ...] = (
    Pattern(
        "send_failed",
        "rd_delivery_report",
        ("KafkaError{", "Local: ", "Broker: "),
        read_report,
        shared=True,
        may_refuse=True,
        example="% Delivery failed for message: Broker: Message size too large",
        opens=("elivery failed", "ailed to deliver"),
    ),
)
