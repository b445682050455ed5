"""The Java client under test: its jar, a small application of any version, and what it reported."""

from __future__ import annotations

import os
import subprocess
import sys
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from functools import cache
from pathlib import Path

from confluent_kafka import OFFSET_BEGINNING, Consumer, KafkaError, TopicPartition
from confluent_kafka.admin import AdminClient, NewTopic

from acktrail import artifacts
from acktrail.audit.wire import BLOCK_BITS, Report, decode_header, decode_reports, decode_runs
from acktrail.contracts.vocabulary import Tier
from lab.scratch import new_scratch

ROOT = Path(__file__).parents[2]
OLDEST, NEWEST = "2.8.2", "4.3.1"
VERSIONS = (OLDEST, "3.9.2", "4.0.2", "4.1.2", NEWEST)
EXACT = ("4.1.2", NEWEST)
"""Versions whose callback has the record's headers."""
INTERCEPTOR = "io.acktrail.AuditProducerInterceptor"
_JVM = ("-Xmx160m", "-XX:+UseSerialGC", "-XX:TieredStopAtLevel=1", "-Xshare:auto")


@cache
def built() -> str:
    """The class path of the jar and of its test programs, made when first asked for."""
    subprocess.run(
        ["bash", "scripts/jar.sh", str(Path(sys.executable).parent)], cwd=ROOT, check=True
    )
    (jar,) = (ROOT / "dist").glob("acktrail-client-*.jar")
    return f"{jar}:{ROOT / 'build/java/more'}"


def java(version: str, *options: str, jar: bool = True) -> list[str]:
    """The command of a program with this version of kafka-clients."""
    path = f"{artifacts.resolve(f'kafka-clients-{version}')}/*"
    return [artifacts.java(), *_JVM, *options, "-cp", f"{built()}:{path}" if jar else path]


def create_topics(servers: str, *names: str, partitions: int = 2, **config: str) -> None:
    """Topics with three replicas, where there are three brokers."""
    admin = AdminClient({"bootstrap.servers": servers})
    copies = min(3, len(admin.list_topics(timeout=30).brokers))
    settings = {name.replace("_", "."): value for name, value in config.items()}
    made = [NewTopic(name, partitions, copies, config=settings) for name in names]
    for done in admin.create_topics(made).values():
        done.result(60)


@dataclass
class Told:
    """What the application's callbacks said, by the number of the send."""

    acks: dict[int, tuple[int, int]] = field(default_factory=dict)
    errors: dict[int, tuple[str, str]] = field(default_factory=dict)
    times_ms: dict[str, int] = field(default_factory=dict)
    """How long the last step of each name took."""
    log: str = ""
    code: int = 0
    output: str = ""

    @property
    def error_lines(self) -> list[str]:
        """ERROR lines of the audit."""
        return [s for s in self.log.splitlines() if " ERROR io.acktrail" in s]


def start_producer(
    version: str, settings: Mapping[str, str], steps: Sequence[str], *, jar: bool = True
) -> subprocess.Popen[str]:
    """An application that does *steps*; what it says is read by `ended`."""
    file = new_scratch("java-app") / "app.properties"
    file.write_text("".join(f"{k}={v}\n" for k, v in settings.items()))
    return subprocess.Popen(
        [
            *java(version, "-Dorg.slf4j.simpleLogger.defaultLogLevel=warn", jar=jar),
            "io.acktrail.TryProducer",
            str(file),
            *steps,
        ],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    )


def ended(app: subprocess.Popen[str], within: float = 120) -> Told:
    """What the application said; it fails the test if it does not end by itself."""
    try:
        output, log = app.communicate(timeout=within)
    finally:
        app.kill()
    return _read(subprocess.CompletedProcess(app.args, app.returncode, output, log))


def run_producer(version: str, settings: Mapping[str, str], *steps: str) -> Told:
    """Let the application do *steps*."""
    return ended(start_producer(version, settings, steps))


def run_consumer(
    version: str, settings: Mapping[str, str], topic: str, *steps: str
) -> list[tuple[int, int]]:
    """(partition, offset) of every record that the consumer was given, in order."""
    file = new_scratch("java-app") / "app.properties"
    file.write_text("".join(f"{k}={v}\n" for k, v in settings.items()))
    done = subprocess.run(
        [*java(version), "io.acktrail.TryConsumer", str(file), topic, *steps],
        capture_output=True,
        text=True,
        timeout=180,
        check=False,
    )
    halted = "halt" in steps
    assert halted or done.stdout.endswith("done\n"), done.stdout + done.stderr
    read = [line.split() for line in done.stdout.splitlines() if line.startswith("read ")]
    return [(int(partition), int(offset)) for _, partition, offset in read]


def _read(done: subprocess.CompletedProcess[str]) -> Told:
    told = Told(log=done.stderr, code=done.returncode, output=done.stdout)
    for line in done.stdout.splitlines():
        words = line.split(" ", 3)
        if words[0] == "ack":
            number = int(words[1])
            assert number not in told.acks, f"{line}: a second callback"
            told.acks[number] = (int(words[2]), int(words[3]))
        elif words[0] == "error":
            told.errors[int(words[1])] = (words[2], words[3])
        elif words[0] == "step":
            told.times_ms[words[1]] = int(words[2])
    return told


def audited(servers: str, topic: str, **more: str) -> dict[str, str]:
    """Settings of a producer that reports often, by interceptor."""
    settings = {name.replace("_", "."): value for name, value in more.items()}
    return {
        "bootstrap.servers": servers,
        "client.id": "shop",
        "interceptor.classes": INTERCEPTOR,
        "acktrail.topic": topic,
        "acktrail.interval.ms": "300",
        **settings,
    }


def records_of(servers: str, topic: str) -> list:
    """All messages of a topic, those of open and aborted transactions too."""
    settings = {
        "bootstrap.servers": servers,
        "group.id": os.urandom(6).hex(),
        "enable.auto.commit": False,
        "isolation.level": "read_uncommitted",
        "enable.partition.eof": True,
    }
    consumer = Consumer(settings)
    found, ends = [], 0
    try:
        places = consumer.list_topics(topic, timeout=30).topics[topic].partitions
        consumer.assign([TopicPartition(topic, place, OFFSET_BEGINNING) for place in places])
        while ends < len(places):
            message = consumer.poll(20)
            assert message is not None, f"{topic} was not read to its end"
            if message.error() is None:
                found.append(message)
            else:
                assert message.error().code() == KafkaError._PARTITION_EOF, message.error()
                ends += 1
    finally:
        consumer.close()
    return found


@dataclass
class Books:
    """What the reports of one session and topic add up to."""

    sent: set[int] = field(default_factory=set)
    acked: dict[int, tuple[int, int]] = field(default_factory=dict)
    plain: dict[Tier, set[int]] = field(default_factory=dict)
    errors: dict[int, str] = field(default_factory=dict)
    acked_offsets: Counter[tuple[int, int]] = field(default_factory=Counter)
    ack_count: int = 0
    beats: list[Report] = field(default_factory=list)

    @property
    def last(self) -> Report:
        """The newest heartbeat."""
        return max(self.beats, key=lambda beat: beat.number)


def books_of(servers: str, audit_topic: str, topic: str) -> dict[str, Books]:
    """The books of every session on *topic*."""
    messages = records_of(servers, audit_topic)
    found: dict[str, Books] = {}
    for report in (r for m in messages for r in decode_reports(m.value())):
        if report.session and report.topic == topic and report.tier is not Tier.DELIVERED:
            _enter(found.setdefault(report.session, Books()), report)
    return found


def reads_of(servers: str, audit_topic: str, group: str) -> list[Report]:
    """All rows of a group's members."""
    messages = records_of(servers, audit_topic)
    return [r for m in messages for r in decode_reports(m.value()) if r.group == group]


def _enter(books: Books, report: Report) -> None:
    if report.tier is Tier.HEARTBEAT:
        books.beats.append(report)
        return
    assert report.ids is not None
    ids, offsets = decode_runs(report.ids).listed()
    base = report.block << BLOCK_BITS
    if report.tier is Tier.ACKED_OFFSETS:
        books.ack_count += report.records
        for at in ids:
            books.acked_offsets[report.partition, base + int(at)] += 1
        return
    seqs = [base + int(i) for i in ids]
    if report.tier is Tier.SENT:
        books.sent.update(seqs)
    elif report.tier is Tier.ACKED:
        assert offsets is not None
        for seq, at in zip(seqs, offsets, strict=True):
            assert seq not in books.acked
            books.acked[seq] = (report.partition, int(at))
    else:
        books.plain.setdefault(report.tier, set()).update(seqs)
        for error in report.errors:
            books.errors.update(dict.fromkeys(seqs, error))


def ids_in_log(servers: str, topic: str) -> dict[tuple[str, int], tuple[int, int]]:
    """(session, seq) → (partition, offset) of all records with an id, by their last header."""
    found = {}
    for message in records_of(servers, topic):
        ours = [v for k, v in message.headers() or () if k == "acktrail" and len(v) == 33]
        if ours:
            header = decode_header(ours[-1])
            assert header is not None
            found[header.session, header.seq] = (message.partition(), message.offset())
    return found
