"""Connect, Streams and MirrorMaker 2 for real, with the settings of the page."""

from __future__ import annotations

import os
import subprocess
import time
from collections import Counter
from contextlib import contextmanager
from pathlib import Path

import pytest

from acktrail import artifacts
from acktrail.audit.wire import decode_reports
from acktrail.contracts.vocabulary import Tier
from lab.processes import Process
from lab.scratch import new_scratch
from lab.steps import wait_until
from tests.integration import java_client as kit
from tests.integration.conftest import nodes as cluster_nodes
from tests.integration.java_page import PAGE, block

pytestmark = [
    pytest.mark.timeout(1200),
    pytest.mark.skipif(not os.environ.get("ACKTRAIL_SOAK"), reason="make soak"),
]
nodes = cluster_nodes
REPORTS = "acktrail-reports"
LINES = 500
QUICK = {"acktrail.interval.ms": "1000"}


@pytest.fixture(scope="module")
def reports(nodes):
    kit.create_topics(nodes.direct, REPORTS)
    return REPORTS


def class_path(nodes) -> str:
    more = artifacts.resolve("kafka-frameworks-4.3.1")
    return f"{kit.built()}:{more}/*:{nodes.jars}/*"


@contextmanager
def running(nodes, main: str, *arguments: str, more: str = ""):
    """A framework's process, ended by SIGTERM when the block ends."""
    home = new_scratch("framework")
    output = home / "output.txt"
    command = [nodes.java, "-Xmx256m", "-cp", f"{more}{class_path(nodes)}", main, *arguments]
    process = Process(command, output=output)
    try:
        yield process
        process.terminate(60)
    except BaseException:
        print(output.read_text(errors="replace")[-6000:])
        raise
    finally:
        process.kill()


def write(name: str, settings: dict[str, str]) -> str:
    file = new_scratch("framework") / name
    file.write_text("".join(f"{k}={v}\n" for k, v in settings.items()))
    return str(file)


def rows_of(nodes) -> list:
    messages = kit.records_of(nodes.direct, REPORTS)
    return [row for m in messages for row in decode_reports(m.value())]


def quick(settings: dict[str, str]) -> dict[str, str]:
    """The same, with a short interval wherever there is an audit topic."""
    prefixes = [k.removesuffix("acktrail.topic") for k in settings if k.endswith("acktrail.topic")]
    return settings | {f"{p}{name}": v for p in prefixes for name, v in QUICK.items()}


def test_connect_source_sink_and_dead_letters(nodes, reports, tmp_path):
    kit.create_topics(nodes.direct, "lines", "dead-letters")
    source = tmp_path / "source.txt"
    source.write_text("".join(f"line {n}\n" for n in range(LINES)))
    worker = write(
        "worker.properties",
        {
            "bootstrap.servers": nodes.direct,
            "key.converter": "org.apache.kafka.connect.storage.StringConverter",
            "value.converter": "org.apache.kafka.connect.storage.StringConverter",
            "offset.storage.file.filename": str(tmp_path / "offsets"),
            "offset.flush.interval.ms": "1000",
            "listeners": "http://127.0.0.1:0",
            **quick(block("worker")),
        },
    )
    file = "org.apache.kafka.connect.file.FileStream"
    reading = {
        "name": "reading",
        "connector.class": f"{file}SourceConnector",
        "file": str(source),
        "topic": "lines",
        "tasks.max": "1",
    }
    writing = {
        "name": "writing",
        "connector.class": f"{file}SinkConnector",
        "file": str(tmp_path / "sink.txt"),
        "topics": "lines",
        "tasks.max": "1",
        "consumer.override.auto.offset.reset": "earliest",
    }
    failing = {
        **writing,
        "name": "failing",
        "file": str(tmp_path / "none.txt"),
        "value.converter": "org.apache.kafka.connect.json.JsonConverter",
        "errors.tolerance": "all",
        "errors.deadletterqueue.topic.name": "dead-letters",
        "errors.deadletterqueue.context.headers.enable": "true",
    }
    plans = [write(f"{plan['name']}.properties", plan) for plan in (reading, writing, failing)]
    sink = tmp_path / "sink.txt"
    main = "org.apache.kafka.connect.cli.ConnectStandalone"
    with running(nodes, main, worker, *plans):
        assert wait_until(lambda: sink.exists() and sink.read_text().count("\n") == LINES, 180)
        assert wait_until(lambda: len(kit.records_of(nodes.direct, "dead-letters")) == LINES, 120)
        time.sleep(4)
    for topic in ("lines", "dead-letters"):
        books = kit.books_of(nodes.direct, REPORTS, topic)
        in_log = kit.ids_in_log(nodes.direct, topic)
        assert {(s, n): at for s, b in books.items() for n, at in b.acked.items()} == in_log
        assert len(in_log) == LINES
    dead = kit.records_of(nodes.direct, "dead-letters")
    assert {[k for k, _ in m.headers()].count("acktrail") for m in dead} == {2}  # origin and own
    delivered: Counter[str] = Counter()
    for row in rows_of(nodes):
        if row.tier is Tier.DELIVERED and row.topic == "lines":
            delivered[row.group] += row.records
    assert delivered == {"connect-writing": LINES, "connect-failing": LINES}


@pytest.mark.parametrize("guarantee", ["at_least_once", "exactly_once_v2"])
def test_streams_leaves_out_its_internal_topics(nodes, reports, tmp_path, guarantee):
    inputs, outputs = f"in-{guarantee}", f"out-{guarantee}"
    kit.create_topics(nodes.direct, inputs, outputs)
    plain = {"bootstrap.servers": nodes.direct}
    kit.run_producer(kit.NEWEST, plain, f"keyed:{inputs}:300", "wait:30", "close")
    classes = tmp_path / "classes"
    source = Path(__file__).parent / "java" / "TryStreams.java"
    subprocess.run(["javac", "-cp", class_path(nodes), "-d", str(classes), str(source)], check=True)
    settings = write(
        "streams.properties",
        {
            "application.id": f"counting-{guarantee}",
            "bootstrap.servers": nodes.direct,
            "state.dir": str(tmp_path / "state"),
            "processing.guarantee": guarantee,
            "commit.interval.ms": "500",
            "replication.factor": "3",
            "auto.offset.reset": "earliest",
            **quick(block("streams")),
        },
    )
    with running(nodes, "TryStreams", settings, inputs, outputs, "25", more=f"{classes}:") as app:
        assert app.wait(120) == 0
    books = kit.books_of(nodes.direct, REPORTS, outputs)
    in_log = kit.ids_in_log(nodes.direct, outputs)
    assert in_log
    assert {(s, n): at for s, b in books.items() for n, at in b.acked.items()} == in_log
    rows = rows_of(nodes)
    internal = {r.topic for r in rows if r.topic.startswith("counting-")}
    assert internal == set()
    group = f"counting-{guarantee}"
    assert sum(r.last_offset - r.first_offset + 1 for r in newest(rows, group, inputs)) == 300


def newest(rows, group: str, topic: str):
    """Ranges that were read, each once."""
    kept = {}
    for row in rows:
        if row.tier is Tier.CONSUMED and row.group == group and row.topic == topic:
            kept[row.reporter, row.partition, row.part] = row
    return kept.values()


def test_mirror_maker_keeps_the_origin(nodes, reports):
    kit.create_topics(nodes.direct, "mirrored", "mirrored-reports")
    kit.run_producer(
        *(kit.NEWEST, kit.audited(nodes.direct, "mirrored-reports")),
        *("send:mirrored:200", "wait:30", "close"),
    )
    origin = kit.ids_in_log(nodes.direct, "mirrored")
    settings = write(
        "mm2.properties",
        {
            "clusters": "a, b",
            "a.bootstrap.servers": nodes.direct,
            "b.bootstrap.servers": nodes.direct,
            "a->b.enabled": "true",
            "a->b.topics": "mirrored",
            "b->a.enabled": "false",
            "replication.factor": "3",
            "checkpoints.topic.replication.factor": "3",
            "heartbeats.topic.replication.factor": "3",
            "offset-syncs.topic.replication.factor": "3",
            "offset.storage.replication.factor": "3",
            "status.storage.replication.factor": "3",
            "config.storage.replication.factor": "3",
            "a.consumer.auto.offset.reset": "earliest",
            **quick(block("mm2")),
        },
    )

    def arrived() -> bool:
        try:
            return len(kit.records_of(nodes.direct, "a.mirrored")) >= 200
        except KeyError:
            return False

    with running(nodes, "org.apache.kafka.connect.mirror.MirrorMaker", settings):
        assert wait_until(arrived, 240, pause=2)
        time.sleep(4)
    copies = kit.records_of(nodes.direct, "a.mirrored")
    first = [next(v for k, v in m.headers() if k == "acktrail") for m in copies]
    assert len({bytes(v) for v in first}) == len(origin) == 200
    assert {(v[1:17].hex(), int.from_bytes(v[17:25])) for v in first} == set(origin)
    hop = kit.ids_in_log(nodes.direct, "a.mirrored")
    books = kit.books_of(nodes.direct, REPORTS, "a.mirrored")
    assert {(s, n): at for s, b in books.items() for n, at in b.acked.items()} == hop
    internal = {r.topic for r in rows_of(nodes) if r.topic.endswith(".internal")}
    assert internal == set()


SPRING = "spring.kafka.{}.properties["


def spring_settings(role: str) -> dict[str, str]:
    """The settings of the page that Spring Boot would give to the clients of this role."""
    prefix = SPRING.format(role)
    lines = [line for line in PAGE.read_text().splitlines() if line.startswith(prefix)]
    pairs = [line.removeprefix(prefix).split("]=", 1) for line in lines]
    assert len(pairs) == 2
    return dict(pairs)


@pytest.mark.parametrize("way", ["interceptor", "wrapper"])
def test_spring_kafka_by_its_settings_and_by_its_post_processor(nodes, reports, tmp_path, way):
    topic = f"spring-{way}"
    kit.create_topics(nodes.direct, topic)
    jars = f"{kit.built()}:{artifacts.resolve('spring-kafka-3.3.4')}/*"
    source = Path(__file__).parent / "java" / "TrySpring.java"
    subprocess.run(["javac", "-cp", jars, "-d", str(tmp_path), str(source)], check=True)
    plain = {"bootstrap.servers": nodes.direct, **QUICK}
    producer = plain | spring_settings("producer")
    if way == "wrapper":
        del producer["interceptor.classes"]
    reading = {"group.id": topic, "auto.offset.reset": "earliest"}
    consumer = plain | reading | spring_settings("consumer")
    done = subprocess.run(
        [
            *(nodes.java, "-cp", f"{tmp_path}:{jars}", "TrySpring"),
            *(write("producer.properties", producer), write("consumer.properties", consumer)),
            *(topic, "50", way),
        ],
        capture_output=True,
        text=True,
        timeout=300,
        check=False,
    )
    assert done.stdout.endswith("done\n"), done.stdout + done.stderr
    books = kit.books_of(nodes.direct, REPORTS, topic)
    in_log = kit.ids_in_log(nodes.direct, topic)
    assert len(in_log) == 50
    if way == "interceptor":  # kafka-clients 3.8.1: acks have no ids
        (only,) = books.values()
        assert only.acked_offsets == Counter(in_log.values())
    else:
        assert {(s, n): at for s, b in books.items() for n, at in b.acked.items()} == in_log
        committed = {(s, n) for s, b in books.items() for n in b.plain[Tier.COMMITTED]}
        assert committed == set(in_log)
    delivered = [r for r in rows_of(nodes) if r.tier is Tier.DELIVERED and r.group == topic]
    assert sum(r.records for r in delivered) == 50
