"""Read one record: which event it is, if any. Match the message, not the layout.

The words that announce events are looked for first; only where they stand is an expression tried.
Nothing is ever raised, whatever the text, and reading costs time in proportion to its length.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import replace

from pipelines.reading import (
    broker,
    consumer,
    delivery_reports,
    failures,
    network,
    other_clients,
    producer,
    rdkafka,
)
from pipelines.reading.configs import read_block
from pipelines.reading.errors import look_up
from pipelines.reading.event import BROKER, KINDS, PRODUCER, Event, Reading, Unread
from pipelines.reading.layout import Layout, Text, read_head, unwrap_record, without_logger
from pipelines.reading.partitions import topic_name
from pipelines.reading.pattern import Fields, Pattern, is_template
from pipelines.reading.source_code import is_source_code

PATTERNS: tuple[Pattern, ...] = (
    *producer.RETRY,
    *broker.PATTERNS,
    *producer.EXPIRED,
    *producer.METADATA,
    *producer.SEQUENCE,
    *producer.CLOSING,
    *other_clients.PATTERNS,
    *network.NETWORK,
    *consumer.PATTERNS,
    *network.BACKGROUND,
)
"""In order: the first that fits is the record's event."""

UNREAD_WORDS = tuple(
    dict.fromkeys(
        (
            "Got error produce response",
            "retrying (",
            "record(s) for ",
            " below high watermark ",
            "The broker returned org.",
            "Shrinking ISR from",
            "Shrinking ISR for",
            *(pattern.marker for pattern in PATTERNS if pattern.sure),
        )
    )
)
"""Words no unread record may hold: what has them and is no event is counted as unread."""

_COMMENT = re.compile(r"\n[ \t]*(?://+|#+|\*|>|--)?[ \t]*")
_WRAP = re.compile(r"\s*\n\s*")
_PRODUCER = "[Producer clientId="
_CONSUMER = re.compile(
    r"\[(?:Share)?Consumer (?:instanceId=\S{1,100}, )?clientId=(.{0,400}), groupId="
)
_OTHER_SPEAKER = re.compile(
    r"\[(?:AdminClient|Admin|Share|Consumer|ReplicaFetcher|Controller|RaftManager|Broker|Connect|"
    r"NodeToController|BrokerToController|ForwardingManager|Transaction|Raft|Worker|Streams|Incremental)"
    r"[A-Za-z]{0,40}[ :\]][^\[]{0,300}\Z"
    r"|\[(?!Producer )[A-Z][\w -]{2,60} "
    r"(?:clientId|id|nodeId|instanceId|broker|brokerId|groupID)=[^\[]{0,300}\Z"
    r"|\[[\w-]{0,60}(?:-to-controller|raft|Thread)[\w-]{0,60}\]:? ?\Z"
)
_OTHER_THREAD = re.compile(
    r"kafka-admin-client-thread|kafka-coordinator-heartbeat|\[Consumer client"
)
# java.util.logging prints a line of time, class and method, and the message on the next.
_OTHER_RETRY = re.compile(r"retrying \(\d{1,18} attempts? left\)\.? Error: ([^\s.,;]{1,100})")
_ATTEMPTS_LEFT = re.compile(r"retrying \(\S{1,40} attempts? left")
_JUL = re.compile(r"[A-Z][a-z]{2} \d\d?, \d{4} .{0,20}[AP]M \S{1,200} \S{1,100}\Z")
_MONITOR = re.compile(
    r'"(?:source|logger|component|coordinator|caller)": ?"[^"]{0,80}'
    r"(?:kafka_client|kminion|kowl|console|kafkametrics|consum|burrow|cluster)"
)
_CONSUMER_SERVICE = re.compile(r"\s{0,16}[\w.-]{0,40}consumer[\w.-]{0,40} {1,40}\|")
_TRANSACTIONAL = re.compile(r"\[TransactionalId (.{1,200})\] ?\Z")
_PYTHON_PRODUCER = re.compile(r"<KafkaProducer client_id=([^\s>]{1,200})[^>]{0,200}>: ?\Z")


def read_record(text: str) -> Reading:
    """What *text*, one record with its continuation lines, says."""
    shown = unwrap_record(text)
    lines = shown.lines
    event = _read(shown, _flat(lines))
    if "\n" in lines and (event is None or _seems_cut(event)):
        # A word was cut where a terminal wrapped the line?
        glued = _read(shown, _WRAP.sub("", lines))
        if glued is not None and not (event is not None and _seems_cut(glued)):
            event = glued
    if event is not None:
        return None if _of_a_consumer(event, text) else event
    for words in UNREAD_WORDS:
        if words in lines and not is_template(lines):
            nothing = _tries_something_else(lines) or is_source_code(lines)
            return None if nothing else Unread(words)
    return None


def _tries_something_else(lines: str) -> bool:
    """Whether another program tries again: it counts no attempts, or not with Kafka's errors."""
    if "retrying (" in lines and _ATTEMPTS_LEFT.search(lines) is None:
        return True
    named = _OTHER_RETRY.search(lines)
    return named is not None and look_up(named.group(1)) is None and "produce" not in lines


def _of_a_consumer(event: Event, text: str) -> bool:
    """Whether a consumer or a monitor lost its connection, by its service's name (consumer_1 | ...)
    or by what its logger says beside the message."""
    if event.kind != "connection_failure" or event.client_id is not None:
        return False
    return _CONSUMER_SERVICE.match(text) is not None or _MONITOR.search(text[:4000]) is not None


def _seems_cut(event: Event) -> bool:
    """Whether a retry's error is no word that Kafka knows."""
    return event.kind in ("retry", "split_retry") and look_up(event.error) is None


def _flat(lines: str) -> str:
    if "\n" not in lines:
        return lines
    start = lines.lstrip()
    return (_COMMENT if start.startswith(("//", "#", ">", "*", "--")) else _WRAP).sub(" ", lines)


def _read(shown: Text, flat: str) -> Event | None:
    if "values:" in flat:
        block = read_block(shown.lines)
        if block is not None:
            kind, settings = block
            fields: Fields = {"kind": kind, "detail": "config_block", "settings": settings}
            fields["client_id"] = settings.get("client.id") or None
            return _event(fields, flat, flat.find("values:"), shown, None)
    if any(mark in flat for mark in rdkafka.MARKS):
        line = rdkafka.read_line(flat)
        if line is not None:
            return _event(line[0], flat, line[2], shown, line[1])
    for pattern in PATTERNS:
        if pattern.marker in flat:
            read = pattern.read(flat)
            if read is not None and (_is_printed(*read, flat) or not is_source_code(flat)):
                event = _spoken(read[0], flat, read[1], shown)
                if event is not None:
                    return event
    return _read_rest(shown, flat)


_NUMBERED = ("retry", "split_retry", "acks0_close", "broker_append_error")


def _is_printed(fields: Fields, position: int, flat: str) -> bool:
    """Whether it stands behind a producer's prefix, or its request's number was filled in: a client
    id may look like a program, and such a line is printed all the same."""
    if _PRODUCER in flat[:position]:
        return True
    return fields["kind"] in _NUMBERED and fields.get("correlation_id") is not None


def _read_rest(shown: Text, flat: str) -> Event | None:
    """What has no announcing words of its own: kafkajs, delivery reports, exceptions."""
    if shown.around.logger == "kafkajs" or any(w in flat for w in other_clients.KAFKAJS_WORDS):
        read = other_clients.read_kafkajs(flat, shown.fields)
        if read is not None:
            return _event(read[0], flat, len(flat), shown, read[1])
        if "Local: " not in flat:  # confluent-kafka-javascript borrows its names
            return None
    if "Local: " in flat or "Broker: " in flat or "KafkaError{" in flat:
        report = None if is_source_code(flat) else delivery_reports.read_report(flat)
        if report is not None:
            return _event(report, flat, len(flat), shown, None)
    if shown.fields is not None and shown.fields.get("name") == "producer_send_error":
        verifiable = failures.read_verifiable(shown.fields)
        return _event(verifiable, flat, 0, shown, None)
    if any(words in flat for words in failures.WORDS):
        failure = failures.read_failure(shown.lines, flat)
        if failure is not None:
            return _spoken(failure[0], flat, failure[1], shown)
    return None


def _spoken(fields: Fields, flat: str, position: int, shown: Text) -> Event | None:
    """The event, if the one who speaks may say such a thing."""
    side = KINDS[fields["kind"]][0]
    head = flat[:position]
    if side == PRODUCER:
        named = _producer(head)
        if named is None and fields["kind"] != "client_version":
            if _OTHER_SPEAKER.search(head[-400:]) is not None:
                return None
            if _OTHER_THREAD.search(head[-600:]) is not None:
                return None
        for name, value in (named or {}).items():
            fields[name] = value
    elif side == BROKER:
        if fields.get("broker") is None:
            fields["broker"] = broker.broker_of(head)
    else:
        speaker = _CONSUMER.search(head[-900:])
        if speaker is not None:
            fields["client_id"] = speaker.group(1)
            behind = head[-900:][speaker.end() :].partition("] ")[0]
            fields["group"] = behind.rstrip().removesuffix("]")[:249]
    return _event(fields, flat, position, shown, None)


def _producer(head: str) -> Fields | None:
    """The client that speaks. Its id may hold brackets, commas and blanks: the prefix ends at the
    message, so everything between is the id."""
    start = head.rfind(_PRODUCER)
    if start >= 0:
        inside = head[start + len(_PRODUCER) :].rstrip()
        closing = inside.rfind("]")
        inside = inside if closing < 0 else inside[:closing]
        client_id, marker, transactional_id = inside.partition(", transactionalId=")
        return {
            "client_id": None if _masked(client_id) else client_id,
            "transactional_id": transactional_id if marker else None,
        }
    old = _TRANSACTIONAL.search(head[-260:])
    if old is not None:
        return {"transactional_id": old.group(1)}
    python = _PYTHON_PRODUCER.search(head[-420:])
    return None if python is None else {"client_id": python.group(1)}


def _beside(said: Mapping[str, object]) -> Fields:
    """Topic and partition that a logger printed beside the message."""
    topic, partition = said.get("topic"), said.get("partition")
    if not isinstance(topic, str) or topic_name(topic) is None:
        return {}
    number = partition if isinstance(partition, int) and not isinstance(partition, bool) else None
    return {"topic": topic_name(topic), "partition": number}


def _masked(text: str) -> bool:
    return text.startswith("<") and text.endswith(">")


def _event(fields: Fields, flat: str, position: int, shown: Text, layout: Layout | None) -> Event:
    lines = shown.lines
    first_line = lines.partition("\n")[0]
    if layout is None or layout.level is None or layout.ts is None:
        head = flat[: min(position, len(first_line) if not _JUL.match(first_line) else 400)]
        prefix = head.rfind(_PRODUCER)
        seen = read_head(head if prefix < 0 else head[:prefix], first_line)
        own = layout or Layout()
        layout = replace(seen, level=own.level or seen.level, ts=own.ts or seen.ts)
    around = shown.around
    if shown.fields is not None and fields.get("topic") is None:
        fields |= _beside(shown.fields)
    if fields.get("message"):
        fields["message"] = without_logger(fields["message"]).strip() or None
    return Event(
        level=layout.level or around.level,
        ts=layout.ts or around.ts,
        logger=layout.logger or around.logger,
        thread=layout.thread or around.thread,
        **fields,
    )
