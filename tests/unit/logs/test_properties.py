"""What is written in any layout is read back; no text raises, or costs more than its size."""

from __future__ import annotations

import json
import time
from dataclasses import fields
from datetime import datetime

from hypothesis import given, settings
from hypothesis import strategies as st

from acktrail.logs.event import Event
from acktrail.logs.kafka_errors import catalogue
from acktrail.logs.partitions import split_partition
from acktrail.logs.patterns import PATTERNS
from acktrail.logs.prefilter import EVIDENCE, may_be_evidence
from acktrail.logs.reader import read_record
from acktrail.logs.records import join_records
from acktrail.logs.times import instant, read_timestamp

TOPICS = st.from_regex(r"[A-Za-z0-9._-]{1,60}", fullmatch=True).filter(
    lambda topic: set(topic) - set(".-_xX*")  # dots or crosses alone are a mask
)
PARTITIONS = st.integers(0, 99_999)
NUMBERS = st.integers(0, 2_147_483_647)
CLIENT_IDS = st.text(
    st.characters(codec="utf-8", exclude_categories=("C", "Z"), include_characters=" ,[]()|"),
    min_size=1,
    max_size=40,
).filter(
    # What the prefix itself is made of ends it, or begins another.
    lambda s: (
        s == s.strip() and ", transactionalId=" not in s and "clientId=" not in s and s[0] != "<"
    )
)
CODES = st.sampled_from(sorted(n for n in catalogue() if n.isupper()))
CLASSES = st.sampled_from(sorted(n for n in catalogue() if n.endswith("Exception")))
TIMES = st.datetimes(
    min_value=datetime(2001, 1, 1),
    max_value=datetime(2098, 1, 1),
).map(lambda moment: moment.replace(microsecond=moment.microsecond // 1000 * 1000))


def log4j(message, at, level):
    stamp = at.strftime("%Y-%m-%d %H:%M:%S,") + f"{at.microsecond // 1000:03d}"
    return f"[{stamp}] {level} {message} (org.apache.kafka.clients.producer.internals.Sender)"


def spring(message, at, level):
    stamp = at.strftime("%Y-%m-%dT%H:%M:%S.") + f"{at.microsecond // 1000:03d}"
    return f"{stamp}  {level} 7 --- [ad | x-1] o.a.k.c.producer.internals.Sender    : {message}"


def encoded(message, at, level):
    stamp = at.strftime("%Y-%m-%dT%H:%M:%S.") + f"{at.microsecond // 1000:03d}"
    return json.dumps({"@timestamp": stamp, "level": level, "message": message})


def docker(message, at, level):
    line = log4j(message, at, level) + "\n"
    return json.dumps({"log": line, "stream": "stdout", "time": "2024-05-01T03:00:10.4205Z"})


def compose(message, at, level):
    return f"orders-svc-1  | {log4j(message, at, level)}"


def cri(message, at, level):
    return f"2024-05-01T03:00:10.420512345Z stdout F {log4j(message, at, level)}"


LAYOUTS = st.sampled_from([log4j, spring, encoded, docker, compose, cri])
LEVELS = st.sampled_from(["WARN", "ERROR", "INFO", "DEBUG"])


@given(LAYOUTS, CLIENT_IDS, TOPICS, PARTITIONS, NUMBERS, NUMBERS, CODES, TIMES, LEVELS)
@settings(max_examples=400, deadline=None)
def test_a_retry_written_in_any_layout_is_read_back(
    layout, client_id, topic, partition, correlation_id, left, error, at, level
):
    message = (
        f"[Producer clientId={client_id}] Got error produce response with correlation id "
        f"{correlation_id} on topic-partition {topic}-{partition}, retrying ({left} attempts "
        f"left). Error: {error}"
    )
    event = read_record(layout(message, at, level))
    assert isinstance(event, Event)
    assert (event.kind, event.client_id, event.topic, event.partition) == (
        "retry",
        client_id,
        topic,
        partition,
    )
    assert (event.correlation_id, event.attempts_left, event.error) == (correlation_id, left, error)
    assert event.level == level
    assert event.ts == at.strftime("%Y-%m-%dT%H:%M:%S.") + f"{at.microsecond // 1000:03d}"


@given(TOPICS, PARTITIONS, NUMBERS, NUMBERS, st.sampled_from([":", ": ", " due to "]))
@settings(max_examples=150, deadline=None)
def test_an_expiry_is_read_back(topic, partition, records, elapsed, joint):
    event = read_record(
        "org.apache.kafka.common.errors.TimeoutException: "
        f"Expiring {records} record(s) for {topic}-{partition}{joint}{elapsed} ms has passed since "
        "batch creation"
    )
    assert isinstance(event, Event)
    got = (event.kind, event.topic, event.partition, event.records, event.elapsed_ms)
    assert got == ("expired", topic, partition, records, elapsed)


@given(TOPICS, PARTITIONS, CLASSES, st.integers(0, 999), st.booleans())
@settings(max_examples=150, deadline=None)
def test_an_append_error_is_read_back(topic, partition, error, broker, with_id):
    place = f"{'AMNt6PcpRZOktSh6v-u00A:' if with_id else ''}{topic}-{partition}"
    event = read_record(
        f"[2024-05-01 12:00:10,420] ERROR [ReplicaManager broker={broker}] Error processing append "
        f"operation on partition {place} (kafka.server.ReplicaManager)\n"
        f"org.apache.kafka.common.errors.{error}: why it was"
    )
    assert isinstance(event, Event)
    got = (event.kind, event.topic, event.partition, event.error, event.broker)
    assert got == ("broker_append_error", topic, partition, error, broker)


@given(TOPICS, PARTITIONS)
def test_a_partition_is_split_at_the_last_dash(topic, partition):
    for text in (
        f"{topic}-{partition}",
        f"[{topic},{partition}]",
        f"{topic} [{partition}]",
        f"TopicPartition(topic='{topic}', partition={partition})",
    ):
        assert split_partition(text) == (topic, partition, None)


@given(TIMES)
def test_a_timestamp_without_offset_means_its_zone(at):
    ts = read_timestamp(at.strftime("x %Y-%m-%d %H:%M:%S,") + f"{at.microsecond // 1000:03d} y")
    utc = instant(ts)
    assert utc is not None
    assert utc.replace(tzinfo=None) == at
    tokyo = instant(ts, "Asia/Tokyo")
    assert tokyo is not None
    assert (utc - tokyo).total_seconds() == 9 * 3600


PIECES = st.one_of(
    st.text(max_size=40),
    st.sampled_from([w for p in PATTERNS for w in (*p.words, *p.sure, p.example)]),
    st.sampled_from([literal.decode() for literal in EVIDENCE]),
    st.sampled_from(
        ["\n", "[Producer clientId=", "]", "{", '{"message":"', "-3", "%3|", ", ", "("]
    ),
    st.integers().map(str),
)


@given(st.lists(PIECES, max_size=14).map("".join))
@settings(max_examples=800, deadline=None)
def test_any_text_raises_nothing(text):
    read_record(text)
    raw = text.encode("utf-8", "replace")
    joined = list(join_records(raw.splitlines(keepends=True)))
    assert sum(r.text.count(b"\n") + 1 for r in joined) == len(raw.splitlines())


@given(st.binary(max_size=400))
@settings(max_examples=200, deadline=None)
def test_any_bytes_raise_nothing(raw):
    for record in join_records(raw.splitlines(keepends=True)):
        may_be_evidence(record.text)
        read_record(record.text.decode("utf-8", "replace"))


def test_time_grows_with_the_text_and_no_faster():
    """Every marker repeated, and runs of one character: what breaks careless expressions."""
    seeds = list(dict.fromkeys(w for p in PATTERNS for w in (*p.words, *p.sure)))
    seeds += [
        "a",
        " ",
        "\n",
        "-",
        "[",
        "]",
        "1",
        ".",
        "a.",
        "a_",
        "[a ",
        "{",
        '{"a":',
        "\\",
        "%",
        "|",
    ]
    seeds += ["Got error produce response with correlation id 1 on topic-partition ", "a.b.C", ": "]
    slowest = 0.0
    for seed in seeds:
        for prefix in ("", "[Producer clientId=p] ", "ProducerConfig values: \n", "x | "):
            text = (prefix + seed * (30_000 // len(seed)))[:30_000]
            start = time.process_time()
            read_record(text)
            slowest = max(slowest, time.process_time() - start)
    assert slowest < 0.5


def test_every_field_of_an_event_is_documented():
    names = {f.name for f in fields(Event)}
    assert {"kind", "ts", "client_id", "topic", "partition", "error"} <= names
