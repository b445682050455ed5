"""Text that only Kafka prints is an event or is counted as unread, whatever stands around it: in the
agent, in the Spark job's reading and in `acktrail read`."""
# ruff: noqa: E501 - log lines.

from __future__ import annotations

import json

import pyarrow as pa
import pytest
from click.testing import CliRunner
from hypothesis import given, settings
from hypothesis import strategies as st

from acktrail.cli import main
from acktrail.contracts.arrow import schema
from acktrail.contracts.bronze import LOG_RECORDS
from acktrail.logs.event import LOSSES, Event, UnreadRecord
from acktrail.logs.pattern import Pattern
from acktrail.logs.patterns import PATTERNS
from acktrail.logs.prefilter import EVIDENCE, clean_text, may_be_evidence
from acktrail.logs.reader import read_record
from acktrail.logs.records import join_records
from ingest.files.block_scan import scan_block
from pipelines.job import Options
from pipelines.silver import log_events, unread_records

JOBS = [
    log_events.PRODUCER_JOB,
    log_events.BROKER_JOB,
    log_events.CONSUMER_JOB,
    unread_records.JOB,
]
SURE = [p for p in PATTERNS if p.sure]

LOOKS_LIKE_A_PROGRAM = [
    "hello {{name}}", "${user}", "console.log(x)", "LIKE 'x'", "{0}", "print(x)", "{}", "%s", "#{x}",
    'throw new IllegalStateException("x")', "if (a == 'b') {", "// a comment", "# a comment", "> quoted",
    "| a | table |", "assertEquals(1, 2);", "import java.util.List;", "If the message is lost then",
    'logger.error("x")', "grep -r 'x'", "String a = \"b\"", "@DisplayName", "it('works')", "topic %s",
]  # fmt: skip
NAMES_ANOTHER = [
    "[Consumer clientId=c, groupId=g] ", "[AdminClient clientId=a] ", "kafka-admin-client-thread | a",
    "ReplicaFetcher", "KafkaConsumer", "consumer_1  | ", "eserializ", "createTopics", "rabbitmq://a",
    "OffsetAndMetadata", '"logger":"kafka_client"', "CommitFailedException", "Node 1 disconnected.",
    "[thrd:b1:9092/1]: ", "%3|1|FAIL|", "ConsumerConfig values:", "Kafka version: 3.9.0",
    "password='", 'token="', "sasl.jaas.config=", "-----BEGIN PRIVATE KEY-----", "\x1b[31m", '{"log":"',
]  # fmt: skip
AROUND = st.lists(
    st.one_of(
        st.text(max_size=30),
        st.sampled_from(LOOKS_LIKE_A_PROGRAM),
        st.sampled_from(NAMES_ANOTHER),
        st.sampled_from([literal.decode() for literal in EVIDENCE]),
        st.sampled_from([p.example for p in PATTERNS]),
    ),
    max_size=4,
).map(" ".join)


def is_read(text: str) -> bool:
    return isinstance(read_record(text), Event | UnreadRecord)


def records_of(text: str) -> list[str]:
    """What an agent keeps of a log: scanned, joined, without credentials."""
    block = text.encode("utf-8", "replace") + b"\n"
    return [clean_text(kept.text) for kept in scan_block(block, closed=True).kept]


def read_by_jobs(texts: list[str]) -> int:
    """How many rows the jobs that read log records make of them."""
    fields = {field.name: field for field in schema(LOG_RECORDS)}
    given = {"cluster": "c", "source": "s", "file_id": "f", "day": "2026-01-31"}
    rows = [given | {"text": text, "position": at} for at, text in enumerate(texts)]
    read = 0
    for job in JOBS:
        out = pa.schema([pa.field(name, fields[name].type) for name in job.columns])
        batch = pa.RecordBatch.from_pylist(rows, schema=out)
        read += sum(part.num_rows for part in job.reader(Options())(batch).rows)
    return read


@pytest.mark.parametrize("pattern", PATTERNS, ids=lambda p: f"{p.kind}-{p.detail}")
def test_a_loss_has_words_of_its_own_or_says_that_it_has_not(pattern: Pattern):
    if pattern.kind in LOSSES:
        assert pattern.example
        assert bool(pattern.sure) != pattern.shared
    for words in (*pattern.words, *pattern.sure):
        assert words.isascii()
        assert len(words.strip()) >= 4, "would keep every line"
        assert not set(words) & set("\"'\\<>&\n"), "JSON may print it otherwise"
    for words in pattern.sure:
        assert may_be_evidence(words.encode())


@pytest.mark.parametrize("pattern", [p for p in PATTERNS if p.example], ids=lambda p: p.detail)
def test_an_example_is_read_by_its_pattern(pattern: Pattern):
    event = read_record(pattern.example)
    assert isinstance(event, Event), event
    assert event.side == pattern.side
    assert not pattern.sure or any(words in pattern.example for words in pattern.sure)
    assert any(words in pattern.example for words in pattern.words)


@given(AROUND, AROUND, st.sampled_from(SURE))
@settings(max_examples=300, deadline=None)
def test_any_text_around_a_sentence_leaves_it_read(before, after, pattern):
    assert is_read(before + pattern.example + after)
    assert is_read(f"[2026-01-31 07:00:00,000] ERROR {before} {pattern.example} {after}")
    assert is_read(json.dumps({"level": "ERROR", "message": f"{before} {pattern.example}{after}"}))
    assert is_read(json.dumps({"message": before, "context": {"thrown": pattern.example}}))


@given(AROUND, AROUND, st.sampled_from(SURE))
@settings(max_examples=150, deadline=None)
def test_any_text_around_a_sentence_leaves_it_to_agents_and_jobs(before, after, pattern):
    kept = records_of(f"[2026-01-31 07:00:00,000] ERROR {before} {pattern.example} {after}")
    assert any(is_read(text) for text in kept)
    assert read_by_jobs(kept) == sum(is_read(text) for text in kept)


TIME = "[2026-01-31 07:00:00,000] ERROR "
SENT = "Exception thrown when sending a message with key='{}' and payload='{}' to topic {}: org.apache.kafka.common.KafkaException: "
PLACES = {
    "payload": TIME + SENT.format("k", "{any}", "orders"),
    "key": TIME + SENT.format("{any}", "v", "orders"),
    "topic": TIME + SENT.format("k", "v", "{any}"),
    "client id": TIME + "[Producer clientId={any}] ",
    "client id of a transactional producer": TIME
    + "[Producer clientId={any}, transactionalId={any}] ",
    "client id in the thread": TIME + "[kafka-producer-network-thread | {any}] ",
}


@pytest.mark.parametrize("place", PLACES)
@given(any_text=AROUND, pattern=st.sampled_from(SURE))
@settings(max_examples=60, deadline=None)
def test_any_text_as_a_field_of_the_line_leaves_its_sentence_read(place, any_text, pattern):
    line = PLACES[place].replace("{any}", any_text) + pattern.example
    assert is_read(line)
    kept = records_of(line)
    assert any(is_read(text) for text in kept)
    assert read_by_jobs(kept) == sum(is_read(text) for text in kept)


PAYLOADS = [*LOOKS_LIKE_A_PROGRAM, *NAMES_ANOTHER]
SPRING = (
    "2026-01-31 07:00:00.000 ERROR 88 --- [ad | producer-2] o.s.k.support.LoggingProducerListener  : Exception thrown "
    "when sending a message with key='{key}' and payload='{payload}' to topic {topic}: org.springframework.kafka."
    "KafkaException: Send failed; nested exception is org.apache.kafka.common.errors.TimeoutException: Expiring 3 "
    "record(s) for {topic}-0:120001 ms has passed since batch creation"
)


@pytest.mark.parametrize("payload", PAYLOADS)
def test_a_payload_does_not_hide_an_expiry(payload, tmp_path):
    lines = [
        SPRING.format(key="k", payload=payload, topic="orders"),
        SPRING.format(key=payload, payload="v", topic="orders"),
    ]
    for text in lines:
        event = read_record(text)
        assert isinstance(event, Event)
        assert (event.kind, event.topic, event.records) == ("expired", "orders", 3)
    log = tmp_path / "app.log"
    log.write_text("\n".join(lines) + "\n")
    done = CliRunner().invoke(main, ["read", str(log), "--format", "json"])
    read = [json.loads(line)["kind"] for line in done.stdout.splitlines()]
    assert read.count("expired") == 2


DELIVERY = "% Delivery failed for message {payload}: Broker: Message size too large"


@given(AROUND)
@settings(max_examples=60, deadline=None)
def test_a_message_that_librdkafka_gave_up_is_read_whatever_it_said(payload):
    line = DELIVERY.format(payload=payload.replace("\n", " "))
    assert is_read(line)
    assert read_by_jobs([line]) == 1


def test_a_sentence_beyond_what_is_read_is_unread():
    text = "ERROR " + "x" * 300_000 + "\n" + SURE[0].example
    assert isinstance(read_record(text), UnreadRecord)


def test_exceptions_without_a_header_are_a_record_each():
    thrown = "org.apache.kafka.common.errors.TimeoutException: Expiring 3 record(s) for a-0:1 ms has passed since batch creation\n"
    text = "[2026-01-31 07:00:00,000] INFO started\n" + thrown * 5
    records = [r.text.decode() for r in join_records(text.encode().splitlines(keepends=True))]
    assert len([r for r in records if isinstance(read_record(r), Event)]) == 5


FRAMES = "\n\tat org.apache.kafka.connect.runtime.WorkerSourceTask.execute(WorkerSourceTask.java:1)\n\tat org.apache.kafka.clients.producer.KafkaProducer.close(KafkaProducer.java:1)"
NOT_SENT = {
    "an admin call": "[2026-01-31 07:00:00,000] WARN Topic configuration check for orders failed, will retry later (io.x.TopicCheck)\norg.apache.kafka.common.errors.UnknownTopicOrPartitionException: This server does not host this topic-partition.",
    "an admin call, wrapped": "[2026-01-31 07:00:00,000] WARN topic configuration check failed; will retry later (io.x.TopicCheck)\njava.util.concurrent.ExecutionException: org.apache.kafka.common.errors.UnknownTopicOrPartitionException: This server does not host this topic-partition.",
    "a commit": f"[2026-01-31 07:00:00,000] ERROR WorkerSourceTask{{id=a-0}} Exception thrown while calling task.commit() (org.apache.kafka.connect.runtime.WorkerSourceTask:5)\njava.lang.IllegalStateException: The channel is not writable{FRAMES}",
    "a state of another": f"[2026-01-31 07:00:00,000] ERROR Exception thrown while calling task.commit()\njava.lang.IllegalStateException: Invalid transition attempted{FRAMES}",
    "an interrupted stop": f"[2026-01-31 07:00:00,000] ERROR Interrupted while stopping the worker (org.apache.kafka.connect.runtime.Worker)\norg.apache.kafka.common.errors.InterruptException: java.lang.InterruptedException{FRAMES}",
    "an interrupted close": f"[2026-01-31 07:00:00,000] WARN Could not close the producer (org.apache.kafka.connect.runtime.WorkerSourceTask)\norg.apache.kafka.common.errors.InterruptException: java.lang.InterruptedException{FRAMES}",
    "an exception in somebody's store": f"[2026-01-31 07:00:00,000] ERROR Failed to read the offset store\norg.apache.kafka.common.errors.TimeoutException: The request timed out.{FRAMES}",
}


@pytest.mark.parametrize("case", NOT_SENT)
def test_what_was_not_a_send_is_not_a_failed_send(case):
    assert read_record(NOT_SENT[case]) is None


def test_a_call_of_send_in_the_frames_is_a_send():
    text = "[2026-01-31 07:00:00,000] ERROR boom\norg.apache.kafka.common.errors.InterruptException: java.lang.InterruptedException\n\tat org.apache.kafka.clients.producer.KafkaProducer.doSend(KafkaProducer.java:1)"
    event = read_record(text)
    assert isinstance(event, Event)
    assert (event.kind, event.error) == ("send_failed", "InterruptException")
