"""Read one record: which event it is, if any. Match the message, not the layout.

A pattern is tried only where one of its words stands. No text raises an error, and reading costs
time in proportion to the text's length. A record that holds words of a pattern which only Kafka's
programs print is an event or is unread, whatever stands around them.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import replace
from itertools import groupby

from acktrail.logs.event import BROKER, KINDS, PRODUCER, Event, Reading, UnreadRecord
from acktrail.logs.kafka_errors import look_up
from acktrail.logs.layout import MAX_TEXT, Layout, Text, read_head, unwrap_record, without_logger
from acktrail.logs.partitions import topic_name
from acktrail.logs.pattern import Fields, Found, Pattern
from acktrail.logs.patterns import PATTERNS
from acktrail.logs.patterns.broker import broker_of
from acktrail.logs.prefilter import SURE_WORDS

_GROUPS = tuple((words, tuple(group)) for words, group in groupby(PATTERNS, lambda p: p.words))
"""The patterns in order, those with the same words together."""
_WRAP = re.compile(r"\s*\n\s*")
_PRODUCER = "[Producer clientId="
_CONSUMER = re.compile(
    r"\[(?:Share)?Consumer (?:instanceId=\S{1,100}, )?clientId=(.{0,400}), groupId="
)
_OTHER_PROGRAM = re.compile(
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
_JUL = re.compile(r"[A-Z][a-z]{2} \d\d?, \d{4} .{0,20}[AP]M \S{1,200} \S{1,100}\Z")
_MONITOR = re.compile(
    r'"(?:source|logger|component|coordinator|caller)": ?"[^"]{0,80}'
    r"(?:kafka_client|kminion|kowl|console|kafkametrics|consum|burrow|cluster)"
)
_CONSUMER_SERVICE = re.compile(r"\s{0,16}[\w.-]{0,40}consumer[\w.-]{0,40} {1,40}\|")
_TRANSACTIONAL = re.compile(r"\[TransactionalId (.{1,200})\] ?\Z")
_PYTHON_PRODUCER = re.compile(r"<KafkaProducer client_id=([^\s>]{1,200})[^>]{0,200}>: ?\Z")


def read_record(text: str) -> Reading:
    """The event in *text*, one record with its continuation lines; or why it is not one."""
    shown = unwrap_record(text)
    lines = shown.lines
    flat = _WRAP.sub(" ", lines) if "\n" in lines else lines
    reading = _read(shown, flat, text)
    if "\n" in lines and (not isinstance(reading, Event) or _seems_cut(reading)):
        # A word was cut where a terminal wrapped the line?
        glued = _read(shown, _WRAP.sub("", lines), text)
        if isinstance(glued, Event) and not (isinstance(reading, Event) and _seems_cut(glued)):
            reading = glued
    if isinstance(reading, Event):
        return None if _of_a_consumer(reading, text) else reading
    return reading or _unread(flat, text)


def _unread(flat: str, text: str) -> UnreadRecord | None:
    """Whether words stand here that only an event has: in the message, or in what wraps it."""
    whole = f"{flat}\n{text}"
    return next((UnreadRecord(words) for words in SURE_WORDS if words in whole), None)


def _of_a_consumer(event: Event, text: str) -> bool:
    """Whether a consumer or a monitor lost its connection, by its service's name (consumer_1 | ...)
    or by what its logger says beside the message."""
    if event.kind != "connection_failure" or event.client_id is not None:
        return False
    return _CONSUMER_SERVICE.match(text) is not None or _MONITOR.search(text[:4000]) is not None


def _seems_cut(event: Event) -> bool:
    """Whether a retry's error is not one of Kafka's."""
    return event.kind in ("retry", "split_retry") and look_up(event.error) is None


def _read(shown: Text, flat: str, text: str) -> Event | UnreadRecord | None:
    """The first pattern's event; else what a pattern could not read."""
    held = flat if shown.fields is None else f"{flat}\n{text[:MAX_TEXT]}"
    unread: UnreadRecord | None = None
    for words, group in _GROUPS:
        for word in words:
            if word in held:
                break
        else:
            continue
        for pattern in group:
            found = pattern.read(shown, flat)
            if isinstance(found, UnreadRecord):
                unread = unread or found
            elif found is not None:
                event = _attributed(pattern, found, shown, flat)
                if event is not None:
                    return event
    return unread


def _attributed(pattern: Pattern, found: Found, shown: Text, flat: str) -> Event | None:
    """The event, with the client or broker that printed it; None where another program did."""
    if found.layout is not None:
        return _event(found.fields, flat, found.position, shown, found.layout)
    fields = found.fields
    side = KINDS[fields["kind"]][0]
    head = flat[: found.position]
    if side == PRODUCER:
        named = _producer(head)
        if named is None and not pattern.sure and _is_of_another(fields["kind"], head):
            return None
        fields |= named or {}
    elif side == BROKER:
        if fields.get("broker") is None:
            fields["broker"] = broker_of(head)
    else:
        consumer = _CONSUMER.search(head[-900:])
        if consumer is not None:
            fields["client_id"] = consumer.group(1)
            behind = head[-900:][consumer.end() :].partition("] ")[0]
            fields["group"] = behind.rstrip().removesuffix("]")[:249]
    return _event(fields, flat, found.position, shown, None)


def _is_of_another(kind: str, head: str) -> bool:
    """Whether a client that is not a producer prints the text behind *head*."""
    if kind == "client_version":
        return False
    other = _OTHER_PROGRAM.search(head[-400:]) or _OTHER_THREAD.search(head[-600:])
    return other is not None


def _producer(head: str) -> Fields | None:
    """The producer that printed the message. Its id may hold brackets, commas and blanks: the
    prefix ends at the message, so everything between is the id."""
    start = head.rfind(_PRODUCER)
    if start >= 0:
        inside = head[start + len(_PRODUCER) :].rstrip()
        closing = inside.rfind("]")
        inside = inside if closing < 0 else inside[:closing]
        client_id, marker, transactional_id = inside.partition(", transactionalId=")
        masked = client_id.startswith("<") and client_id.endswith(">")
        return {
            "client_id": None if masked else client_id,
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


def _event(fields: Fields, flat: str, position: int, shown: Text, layout: Layout | None) -> Event:
    """The event of *fields*, with level, time, logger and thread from what stands around it."""
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
