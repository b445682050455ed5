"""What clients in Go print: sarama, kafka-go and franz-go."""

from __future__ import annotations

import re

from acktrail.logs.kafka_errors import look_up, name_of, sarama_error
from acktrail.logs.pattern import Fields, Pattern, pattern

_ON_PARTITION = re.compile(r" on (?P<topic>[A-Za-z0-9._-]{1,249})/(?P<partition>\d{1,9})")
_SERVER = re.compile(r"kafka server: (.{5,160})", re.DOTALL)


def _because(fields: Fields, found: re.Match[str], _: str) -> bool:
    why = found["why"]
    if why is not None:
        server = _SERVER.search(why)
        if server is not None:
            fields["error"] = sarama_error(server.group(1))
        elif "not the leader for some partition" in why:
            fields["error"] = "NOT_LEADER_FOR_PARTITION"
        fields["message"] = why.strip()[:300] or None
    return True


def _closing(fields: Fields, found: re.Match[str], text: str) -> bool:
    fields["error"] = "EOF" if found["why"].strip() == "EOF" else None
    return _because(fields, found, text)


def _delivered(fields: Fields, found: re.Match[str], text: str) -> bool:
    fields["records"] = int(found["count"])
    said = _because(fields, found, text)
    return said and (fields.get("error") is not None or "afka" in text)


_NO_PRODUCER = re.compile(
    r"(?i)consum|admin|kafka_exporter|init kafka client|burrow|\"coordinator\":|root\.input|"
    r"kafka_client|kminion|kowl|kafkametrics|receiver"
)
"""Monitors, consoles and consumers lose connections too."""


def _named(fields: Fields, _: re.Match[str], text: str) -> bool:
    return look_up(fields["error"]) is not None and _NO_PRODUCER.search(text) is None


def _franz_go(verb: str) -> Pattern:
    """franz-go, kerr.go, in an application's words: unable to produce record: NAME: sentence"""
    return pattern(
        f" to {verb} ",
        rf" to {verb} [^:\n]{{0,80}}: (?P<error>[A-Z][A-Z_]{{6,60}}): ",
        "send_failed",
        "franz_error",
        _named,
        words=(f"ailed to {verb}", f"nable to {verb}"),
        shared=True,
        example=f"unable to {verb} record: UNKNOWN_TOPIC_OR_PARTITION: This server does not host",
    )


def _trailing_partition(fields: Fields, found: re.Match[str], text: str) -> bool:
    if found["tp"] is not None:
        return True
    place = _ON_PARTITION.match(text, found.end())
    if place is not None:
        fields |= {"topic": place["topic"], "partition": int(place["partition"])}
    return place is not None


def _is_go(fields: Fields, found: re.Match[str], text: str) -> bool:
    """Whether sarama says so: other programs connect to brokers too."""
    why = found["why"] or ""
    known = "arama" in text or "dial tcp" in why or why.strip(": ").startswith("EOF")
    return known and _NO_PRODUCER.search(text) is None and _because(fields, found, text)


_NUMBER = re.compile(r"\[(\d{1,3})\] ")


def _numbered(fields: Fields, found: re.Match[str], text: str) -> bool:
    number = _NUMBER.match(found["why"])
    if number is not None:
        fields["error"] = name_of(int(number.group(1)))
    return _because(fields, found, text)


_TO_TOPIC = re.compile(r"\bto topic (?P<topic>[A-Za-z0-9._-]{1,249})\b")
_A_SEND = re.compile(r"(?i)\bsend|\bpubli|\bproduc|\bwrit")


def _is_send(fields: Fields, found: re.Match[str], text: str) -> bool:
    head = text[max(0, found.start() - 400) : found.start()]
    topic = _TO_TOPIC.search(head)
    if topic is not None:
        fields["topic"] = topic["topic"]
    return _A_SEND.search(head) is not None and "consum" not in text.lower()


def _of_an_application(fields: Fields, found: re.Match[str], text: str) -> bool:
    return _is_send(fields, found, text) and _numbered(fields, found, text)


_KAFKA_GO_TITLES = {
    3: "Unknown Topic Or Partition",
    5: "Leader Not Available",
    6: "Not Leader For Partition",
    7: "Request Timed Out",
    10: "Message Size Too Large",
    19: "Not Enough Replicas",
    20: "Not Enough Replicas After Append",
}


def _kafka_go_error(number: int, title: str) -> Pattern:
    """kafka-go, error.go, in an application's words: publishing to topic orders: [6] Not Leader"""
    marker = f"[{number}] {title}: "
    return pattern(
        marker,
        rf"(?P<why>{re.escape(marker)}.{{1,400}})",
        "send_failed",
        "kafka_go_error",
        _of_an_application,
        words=(title,),
        shared=True,
        example=f"publishing to topic orders: {marker}the client attempted to send messages",
    )


_ONLY_PRODUCERS = {"MESSAGE_TOO_LARGE", "NOT_ENOUGH_REPLICAS", "NOT_ENOUGH_REPLICAS_AFTER_APPEND"}


def _of_sarama(fields: Fields, found: re.Match[str], text: str) -> bool:
    """sarama's words for a broker's error, where nothing but the application tells of it."""
    fields["error"] = sarama_error(found["said"])
    if fields["error"] in _ONLY_PRODUCERS:
        return True
    return fields["error"] is not None and _is_send(fields, found, text)


def _sarama_states(speaker: str) -> tuple[Pattern, Pattern]:
    """What a broker's goroutine says, called a flusher before 2016."""
    marker = f"producer/{speaker}/"
    words = ("state change to [",)
    said = rf"{marker}(?P<node>\d{{1,9}}) state change to "
    # async_producer.go: producer/broker/1 state change to [retrying] on orders/11 because kafka
    #   server: Tried to send a message to a replica that is not the leader for some partition.
    retrying = said + r"\[retrying\] on (?P<tp>\S{1,300}/\d{1,9})(?: because (?P<why>.{1,400}))?"
    # async_producer.go: producer/broker/478 state change to [closing] because EOF
    closing = said + r"\[closing\] because (?P<why>[^\n]{1,400})"
    return (
        pattern(marker, retrying, "retry", "sarama_broker_retrying", _because, words=words),
        pattern(marker, closing, "connection_failure", "sarama_closing", _closing, words=words),
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
        words=("state change to [",),
        opens=(r"state change to \[retrying",),
    ),
    *(each for speaker in ("broker", "flusher") for each in _sarama_states(speaker)),
    # async_producer.go, idempotent: Retrying batch for orders-11 because of kafka server: Tried ...
    pattern(
        "Retrying batch for ",
        r"Retrying batch for (?P<tp>\S{1,300}-\d{1,9}) because of (?P<why>.{1,400})",
        "retry",
        "sarama_retrying_batch",
        _because,
        words=("Retrying batch",),
        opens=("Retrying batch",),
    ),
    # producer.go, before 2015: Producer requeueing batch of 16 messages due to error: kafka server:
    pattern(
        "Producer requeueing batch of ",
        r"Producer requeueing batch of (?P<records>\d{1,9}) messages due to error: "
        r"(?P<why>.{1,400})",
        "retry",
        "sarama_requeueing",
        _because,
        words=("requeueing batch",),
    ),
    # async_producer.go, ProducerError: kafka: Failed to produce message to topic orders: <error>
    pattern(
        "Failed to produce message to topic ",
        r"Failed to produce message to topic (?P<topic>[A-Za-z0-9._-]{1,249}):(?P<why>.{0,400})",
        "send_failed",
        "sarama_producer_error",
        _because,
        words=("Failed to produce message",),
        sure=True,
        example="kafka: Failed to produce message to topic orders: kafka server: Request "
        "exceeded the user-specified time limit in the request.",
        opens=("Failed to produce message",),
    ),
    # async_producer.go, ProducerErrors: kafka: Failed to deliver 3 messages.
    # OpenTelemetry's exporter: Failed to deliver 3 messages due to kafka server: ...
    pattern(
        "Failed to deliver ",
        r"Failed to deliver (?P<count>\d{1,9}) messages(?:\.| due to (?P<why>[^\n\"]{1,400}))",
        "send_failed",
        "sarama_producer_errors",
        _delivered,
        shared=True,
        example="kafka: Failed to deliver 3 messages.",
        opens=("ailed to deliver",),
    ),
    # errors.go, ErrOutOfBrokers: kafka: client has run out of available brokers to talk to
    pattern(
        "client has run out of available brokers",
        r"client has run out of available brokers",
        "connection_failure",
        "sarama_out_of_brokers",
        lambda _, __, text: _NO_PRODUCER.search(text) is None,
    ),
    # broker.go: Failed to connect to broker b1:9092: dial tcp 10.0.0.1:9092: connection refused
    pattern(
        "Failed to connect to broker ",
        r"Failed to connect to broker (?!at )\S{1,300}(?P<why>: .{1,300})?",
        "connection_failure",
        "sarama_no_connection",
        _is_go,
    ),
)

OTHER: tuple[Pattern, ...] = (
    # Beats, libbeat/outputs/kafka/client.go: Kafka publish failed with: circuit breaker is open
    pattern(
        "Kafka publish failed with: ",
        r"Kafka publish failed with: (?P<why>.{1,400})",
        "send_failed",
        "beats_publish_failed",
        _because,
        words=("Kafka publish failed",),
        sure=True,
        example="Kafka publish failed with: circuit breaker is open",
    ),
    # the same: Kafka (topic=orders): dropping too large message of size 666.
    pattern(
        "Kafka (topic=",
        r"Kafka \(topic=(?P<topic>[A-Za-z0-9._-]{1,249})\): dropping (?:too large|invalid) message",
        "send_failed",
        "beats_dropped",
        sure=True,
        example="Kafka (topic=orders): dropping too large message of size 666.",
    ),
    # kafka-go, writer.go: error writing messages to orders (partition 3): [6] Not Leader For ...
    pattern(
        "error writing messages to ",
        r"error writing messages to (?P<topic>[A-Za-z0-9._-]{1,249}) \(partition "
        r"(?P<partition>\d{1,9})\): (?P<why>.{1,400})",
        "send_failed",
        "kafka_go_write_failed",
        _numbered,
        sure=True,
        example="error writing messages to orders (partition 3): [6] Not Leader For Partition: "
        "the client",
    ),
    # kafka-go, produce.go: kafka.(*Client).Produce: fetch request error: topic partition has no
    #   leader (topic="orders" partition=2)
    pattern(
        "kafka.(*Client).Produce: ",
        r"kafka\.\(\*Client\)\.Produce: (?P<why>(?:(?!\(topic=).){1,400})"
        r"(?:\(topic=\"?(?P<topic>[A-Za-z0-9._-]{1,249})\"? partition=(?P<partition>\d{1,9})\))?",
        "send_failed",
        "kafka_go_produce",
        _numbered,
        words=("(*Client).Produce",),
        sure=True,
        example="kafka.(*Client).Produce: fetch request error: topic partition has no leader "
        "(topic=orders partition=2)",
    ),
    *(_kafka_go_error(number, title) for number, title in _KAFKA_GO_TITLES.items()),
    *(_franz_go(verb) for verb in ("produce", "send", "publish")),
    # franz-go, sink.go, its error beside it: batch in a produce request failed
    pattern(
        "batch in a produce request failed",
        r"batch in a produce request failed(?: \((?P<error>[A-Z][A-Z_]{4,60}):)?",
        "send_failed",
        "franz_batch_failed",
        sure=True,
        example="batch in a produce request failed (INVALID_RECORD: This record has failed)",
    ),
    # franz-go, broker.go: unable to open connection to broker addr=b1:9092 broker=1 err=dial ...
    pattern(
        "unable to open connection to broker",
        r"unable to open connection to broker\b",
        "connection_failure",
        "franz_no_connection",
        lambda _, __, text: _NO_PRODUCER.search(text) is None,
    ),
)

RETOLD: tuple[Pattern, ...] = (
    # What is left of sarama's lines where their front was cut, or an application tells of them:
    #   state change to [retrying] on orders/11 because kafka server: ...
    pattern(
        "state change to [retrying] on ",
        r"state change to \[retrying\] on (?P<tp>\S{1,300}/\d{1,9})(?: because (?P<why>.{1,400}))?",
        "retry",
        "sarama_retrying_cut",
        _because,
        words=("state change to [",),
    ),
    #   cannot send to orders: kafka server: In the middle of a leadership election, ...
    pattern(
        "kafka server: ",
        r"kafka server: (?P<said>.{5,300})",
        "send_failed",
        "sarama_error",
        _of_sarama,
        words=("kafka server:",),
        shared=True,
        example="cannot send to orders: kafka server: In the middle of a leadership election, "
        "there is",
    ),
)

PATTERNS: tuple[Pattern, ...] = (*SARAMA, *OTHER, *RETOLD)
