"""Against real brokers and a real Java producer: what is in the lake is what is there."""

from __future__ import annotations

import json
import math
import os
import subprocess
import sys
import time
import urllib.request
from contextlib import contextmanager
from datetime import UTC, datetime
from pathlib import Path

import pytest
from confluent_kafka import Consumer, KafkaException, Producer, TopicPartition
from confluent_kafka.admin import AdminClient, AlterConfigOpType, ConfigEntry, ConfigResource
from confluent_kafka.admin import ResourceType as Kind

from acktrail import artifacts
from acktrail.contracts.bronze import (
    AUDIT_REPORTS,
    CLUSTER_CONFIGS,
    CLUSTER_STATES,
    GROUP_OFFSETS,
    LOG_RECORDS,
    METRIC_SAMPLES,
)
from acktrail.contracts.vocabulary import Tier
from acktrail.errors import SourceUnavailable
from acktrail.lake import Lake
from acktrail.metricnames import METRICS, read_name
from acktrail.settings.model import KafkaSettings
from acktrail.settings.sources import (
    ClusterStateSource,
    LogScanSource,
    LogTopicSource,
    ScrapeSource,
    VerifiableSource,
)
from acktrail.wire import BLOCK_BITS, Header, decode_runs, encode_header, new_session
from ingest.audit_files import ingest_files
from ingest.exposition import read_text
from ingest.registry import Surroundings, build_source
from lab.clients import start_producer
from lab.cluster import cluster
from lab.scenario import Producer as JavaProducer
from lab.scenario import Topic
from lab.snapshots import create_topics
from lab.steps import wait_until
from tests.integration.servers import free_port

TOPIC = "audited-orders"
SESSION = new_session(1_790_000_000_000)


@pytest.fixture(scope="module")
def nodes():
    with cluster() as started:
        admin = AdminClient({"bootstrap.servers": started.direct})
        create_topics(
            admin,
            [
                Topic(TOPIC, ((1, 2, 3), (2, 3, 1))),
                Topic("other"),
                Topic("moved", ((1, 2),), {"unclean.leader.election.enable": "true"}),
            ],
        )
        yield started


@pytest.fixture(scope="module")
def java(nodes, tmp_path_factory):
    evidence = tmp_path_factory.mktemp("evidence")
    wanted = JavaProducer("shop", "other", messages=100_000, per_second=200)
    client = start_producer(nodes, wanted, evidence)
    try:
        assert wait_until(lambda: _acks(client) > 200, 60)
        yield client
    finally:
        client.process.kill()


def _acks(client) -> int:
    return client.output.read_bytes().count(b"producer_send_success")


def around(nodes) -> Surroundings:
    return Surroundings("lab", KafkaSettings(bootstrap_servers=nodes.direct), once=True)


def drain(source, lake: Lake) -> int:
    source.open(lake)
    written = 0
    try:
        for batch in source.poll(60):
            assert batch.received == batch.rows.num_rows + sum(batch.dropped.values())
            lake.append(batch.table, batch.rows, batch.positions)
            source.committed(batch)
            written += batch.rows.num_rows
    finally:
        source.close()
    return written


def produce(nodes, topic: str, seqs, partition: int, acks="all") -> dict[int, int]:
    """Audited messages by a plain producer; offset by seq."""
    offsets: dict[int, int] = {}
    producer = Producer({"bootstrap.servers": nodes.direct, "acks": acks, "linger.ms": 5})
    for seq in seqs:
        header = encode_header(Header(SESSION, seq, 1_790_000_000_000 + seq))
        producer.produce(
            topic,
            value=b"x" * 100,
            partition=partition,
            headers=[("trace", b"1"), ("acktrail", header)],
            on_delivery=lambda error, m, seq=seq: (
                offsets.update({seq: m.offset()}) if error is None else None
            ),
        )
    producer.flush(30)
    return offsets


def found(lake: Lake, tier: Tier) -> dict[tuple[str, int, int], int]:
    """(session, partition, seq) to offset, of all ids at *tier*; a second record is an error."""
    ids: dict[tuple[str, int, int], int] = {}
    for row in lake.read(AUDIT_REPORTS).to_pylist():
        if row["tier"] == tier.value:
            runs = decode_runs(row["ids"])
            for i in range(runs.starts.size):
                for k in range(int(runs.lengths[i])):
                    seq = (row["block"] << BLOCK_BITS) + int(runs.starts[i]) + k
                    key = (row["session"], row["partition"], seq)
                    assert key not in ids, f"{key} twice"
                    ids[key] = int(runs.offsets[i]) + k
    return ids


def test_a_whole_scan_says_what_is_in_the_log_once(nodes, tmp_path):
    lake = Lake(tmp_path)
    settings = LogScanSource(
        kind="log_scan", name="scan", topics=(TOPIC,), mode="whole", max_records=700
    )
    first = produce(nodes, TOPIC, range(1500), 0)
    second = produce(nodes, TOPIC, range(40_000, 40_100), 1)
    drain(build_source(settings, around(nodes)), lake)
    wanted = {(SESSION, 0, seq): offset for seq, offset in first.items()}
    wanted |= {(SESSION, 1, seq): offset for seq, offset in second.items()}
    assert found(lake, Tier.IN_LOG) == wanted

    third = produce(nodes, TOPIC, range(1500, 1600), 0)
    drain(build_source(settings, around(nodes)), lake)
    assert drain(build_source(settings, around(nodes)), lake) == 0
    wanted |= {(SESSION, 0, seq): offset for seq, offset in third.items()}
    assert found(lake, Tier.IN_LOG) == wanted

    covered = [r for r in lake.read(AUDIT_REPORTS).to_pylist() if r["tier"] == "scanned"]
    ranges = sorted((r["partition"], r["first_offset"], r["last_offset"]) for r in covered)
    assert [r for r in ranges if r[0] == 0] == [
        (0, 0, 699),
        (0, 700, 1399),
        (0, 1400, 1499),
        (0, 1500, 1599),
    ]
    assert sum(r["records"] for r in covered) == 1700
    assert all(r["began_at"] <= r["ended_at"] and r["topic_id"] for r in covered)
    assert sum(r["closed"] for r in covered) == 3


def test_the_state_of_the_cluster_is_what_it_says(nodes, tmp_path):
    lake = Lake(tmp_path)
    member = Consumer(
        {
            "bootstrap.servers": nodes.direct,
            "group.id": "billing",
            "enable.auto.commit": False,
            "auto.offset.reset": "earliest",
        }
    )
    place = TopicPartition(TOPIC, 0, 17, metadata="processed=15")
    member.commit(offsets=[place], asynchronous=False)
    low, high = member.get_watermark_offsets(TopicPartition(TOPIC, 0), timeout=10)
    member.close()
    settings = ClusterStateSource(kind="cluster_state", name="state")
    drain(build_source(settings, around(nodes)), lake)
    states = {(r["topic"], r["partition"]): r for r in lake.read(CLUSTER_STATES).to_pylist()}
    assert set(states) == {(TOPIC, 0), (TOPIC, 1), ("other", 0), ("moved", 0)}
    state = states[TOPIC, 0]
    assert (state["earliest_offset"], state["latest_offset"]) == (low, high)
    assert (state["leader"], state["replicas"], state["isr"]) == (1, [1, 2, 3], [1, 2, 3])
    assert state["leader_epoch"] == 0
    assert len(state["topic_id"]) == 22
    (commit,) = lake.read(GROUP_OFFSETS).to_pylist()
    assert (commit["group"], commit["committed_offset"]) == ("billing", 17)
    assert (commit["metadata"], commit["members"]) == ("processed=15", 0)
    assert commit["topic_id"] == state["topic_id"]


def test_settings_are_written_when_they_change(nodes, tmp_path):
    lake = Lake(tmp_path)
    settings = ClusterStateSource(kind="cluster_state", name="state", topics=("other",))

    def changed() -> list[tuple[str, str]]:
        before = lake.read(CLUSTER_CONFIGS).num_rows
        drain(build_source(settings, around(nodes)), lake)
        rows = sorted(lake.read(CLUSTER_CONFIGS).to_pylist(), key=lambda r: r["at"])[before:]
        return sorted((r["entity_kind"], r["entity"]) for r in rows)

    assert changed() == [("broker", "1"), ("broker", "2"), ("broker", "3"), ("topic", "other")]
    assert changed() == []
    admin = AdminClient({"bootstrap.servers": nodes.direct})
    entry = ConfigEntry("min.insync.replicas", "2", incremental_operation=AlterConfigOpType.SET)
    resource = ConfigResource(Kind.TOPIC, "other", incremental_configs=[entry])
    for done in admin.incremental_alter_configs([resource]).values():
        done.result(20)
    assert wait_until(lambda: changed() == [("topic", "other")], 10)
    newest = max(lake.read(CLUSTER_CONFIGS).to_pylist(), key=lambda r: r["at"])
    assert dict(newest["settings"])["min.insync.replicas"] == "2"


def test_jmx_values_in_the_lake_are_those_of_the_exporters(nodes, java, tmp_path):
    """Counters move between two readings: each stored value lies between one before and after."""
    lake = Lake(tmp_path)
    ports = [b.exporter_port for b in nodes.brokers.values()] + [java.exporter_port]
    dead = free_port()
    targets = tuple(f"http://127.0.0.1:{port}/metrics" for port in (*ports, dead))
    settings = ScrapeSource(kind="scrape", name="jmx", targets=targets)
    before = {port: _direct(port) for port in ports}
    drain(build_source(settings, around(nodes)), lake)
    after = {port: _direct(port) for port in ports}
    stored = lake.read(METRIC_SAMPLES).to_pylist()
    compared = 0
    for port in ports:
        rows = [r for r in stored if r["instance"] == f"127.0.0.1:{port}"]
        got = {(r["metric"], tuple(sorted(r["labels"]))): r["value"] for r in rows}
        assert set(before[port]) <= set(got) <= set(after[port])
        for key, value in got.items():
            low, high = before[port].get(key, 0.0), after[port][key]
            if key[0].endswith("_total"):
                assert low <= value <= high, key
                compared += 1
    assert compared > 30
    names = {r["metric"] for r in stored}
    assert "kafka_producer_producer_metrics_record_send_total" in names
    assert "kafka_server_brokertopicmetrics_failedproducerequests_total" in names
    (gap,) = [r for r in stored if r["instance"] == f"127.0.0.1:{dead}"]
    assert gap["value"] != gap["value"]
    assert "Connection" in gap["scrape_error"]


def _direct(port: int) -> dict[tuple, float]:
    with urllib.request.urlopen(f"http://127.0.0.1:{port}/metrics", timeout=10) as answer:
        text = answer.read().decode()
    return {(s.metric, s.labels): s.value for s in read_text(text, METRICS).samples}


def test_a_growing_verifiable_file_is_the_producers_own_account(nodes, java, tmp_path):
    lake = Lake(tmp_path)
    settings = VerifiableSource(kind="verifiable", name="shop", paths=(str(java.output),))
    source = build_source(settings, around(nodes))
    for _ in range(3):
        drain(source, lake)
        time.sleep(0.3)
    told = {}
    with java.output.open() as file:
        for line in file:
            event = json.loads(line) if line.startswith("{") and line.endswith("\n") else {}
            if event.get("name") == "producer_send_success":
                told[int(event["value"].partition(".")[2])] = event["offset"]
    got = {key[2]: offset for key, offset in found(lake, Tier.ACKED).items()}
    assert len(got) > 200
    assert got == {seq: told[seq] for seq in got}
    assert set(got) == {seq for seq in told if seq <= max(got)}


def test_on_suspicion_only_what_is_missing_is_read(nodes, tmp_path):
    """An id was promised at an offset and nobody has seen it: exactly that place is looked at."""
    lake = Lake(tmp_path)
    offsets = produce(nodes, TOPIC, range(2000, 3000), 1)
    rows = [
        {
            "session": SESSION,
            "topic": TOPIC,
            "seq": seq,
            "tier": tier,
            "time": int(time.time() * 1000) - 60_000,
            "partition": 1,
            "offset": offsets[seq],
            "group": "g" if tier == "delivered" else "",
        }
        for tier in ("acked", "delivered")
        for seq in range(2000, 3000)
        if tier == "acked" or not 2500 <= seq < 2510
    ]
    file = tmp_path / "audit.jsonl"
    file.write_text("".join(json.dumps(row) + "\n" for row in rows))
    ingest_files([file], lake, "lab", datetime.now(UTC))
    settings = LogScanSource(
        kind="log_scan", name="look", topics=(TOPIC,), settle_s=1, margin=5, interval_s=0.01
    )
    drain(build_source(settings, around(nodes)), lake)
    (scanned,) = [r for r in lake.read(AUDIT_REPORTS).to_pylist() if r["tier"] == "scanned"]
    assert scanned["first_offset"] == offsets[2000]
    assert scanned["last_offset"] == offsets[2509] + 5
    seen = found(lake, Tier.IN_LOG)
    assert {(SESSION, 1, seq) for seq in range(2500, 2510)} <= set(seen)
    assert drain(build_source(settings, around(nodes)), lake) == 0


def test_all_of_them_by_one_command(nodes, java, tmp_path):
    """`acktrail agent --once`, twice: everything is there, and the accounts balance."""
    (tmp_path / "acktrail.toml").write_text(f"""
cluster = "lab"
lake.uri = "{tmp_path}/lake"
kafka.bootstrap_servers = "{nodes.direct}"
[[sources]]
kind = "cluster_state"
name = "state"
[[sources]]
kind = "log_scan"
name = "scan"
topics = ["{TOPIC}", "other"]
mode = "whole"
[[sources]]
kind = "scrape"
name = "jmx"
targets = ["http://127.0.0.1:{java.exporter_port}/metrics"]
[[sources]]
kind = "verifiable"
name = "shop"
paths = ["{java.output}"]
""")
    for _ in range(2):
        done = subprocess.run(
            [sys.executable, "-m", "acktrail", "agent", "--once"],
            check=False,
            cwd=tmp_path,
            env={**os.environ, "PYTHONPATH": str(Path(__file__).parents[2])},
            capture_output=True,
            text=True,
            timeout=180,
        )
        assert done.returncode == 0, done.stderr
        assert done.stderr.count(" received = ") == 4, done.stderr
    lake = Lake(tmp_path / "lake")
    tables = (CLUSTER_STATES, CLUSTER_CONFIGS, GROUP_OFFSETS, METRIC_SAMPLES, AUDIT_REPORTS)
    assert all(lake.read(table).num_rows for table in tables)
    scanned = {key[2] for key in found(lake, Tier.IN_LOG) if key[0] != SESSION}
    acked = {key[2] for key in found(lake, Tier.ACKED)}
    assert len(acked) > 200
    assert {seq for seq in acked if seq <= max(scanned)} <= scanned


def test_shipped_lines_are_read_once_whatever_dies(nodes, tmp_path):
    admin = AdminClient({"bootstrap.servers": nodes.direct})
    create_topics(admin, [Topic("logs", ((1, 2, 3), (2, 3, 1)))])
    wanted = LogTopicSource(kind="log_topic", name="fleet", topics=("logs",), shape="filebeat")
    lake = Lake(tmp_path / "lake")
    made = build_source(wanted, around(nodes))
    assert drain_all(made, lake) == 0  # nothing there yet
    ship(nodes, range(300))
    made.open(lake)
    for number, batch in enumerate(made.poll(10)):
        if number == 0:  # the second is lost with the agent that read it
            lake.append(batch.table, batch.rows, batch.positions)
    made.close()
    assert drain_all(made, lake) > 0
    ship(nodes, range(300, 400))
    drain_all(made, lake)
    assert drain_all(made, lake) == 0
    found = lake.read(LOG_RECORDS).to_pylist()
    torn = [row for row in found if "number " not in row["text"]]
    assert not torn
    numbers = sorted(int(row["text"].split("number ")[1].split()[0]) for row in found)
    assert numbers == list(range(400))
    assert all(row["text"].endswith("TimeoutException: late") for row in found)
    assert {row["host"] for row in found} == {"app-0", "app-1", "app-2"}
    ship(nodes, range(400, 410))
    for future in admin.delete_records([TopicPartition("logs", 0, -1)]).values():
        future.result(30)
    made.open(lake)
    (expired,) = [batch for batch in made.poll(5) if "expired_before_read" in batch.dropped]
    made.close()
    assert expired.received == expired.dropped["expired_before_read"] > 0


def ship(nodes, numbers) -> None:
    """Lines of three hosts, mixed in two partitions, each with an exception behind it."""
    producer = Producer({"bootstrap.servers": nodes.direct, "enable.idempotence": True})
    for number in numbers:
        host = number % 3
        for text in (
            f"2026-01-31 10:00:00,001 ERROR no luck with number {number} x",
            "org.apache.kafka.common.errors.TimeoutException: late",
        ):
            message = {"@timestamp": "2026-01-31T10:00:00Z", "message": text}
            message |= {"host": {"name": f"app-{host}"}, "log": {"file": {"path": "/a.log"}}}
            producer.produce("logs", json.dumps(message), partition=host % 2)
        if number % 50 == 0:
            producer.produce("logs", b"not JSON", partition=0)
    producer.flush(30)


def drain_all(source, lake: Lake) -> int:
    """As the loop does with --once: until a poll gives nothing."""
    source.open(lake)
    received = 0
    try:
        while batches := list(source.poll(5)):
            for batch in batches:
                assert batch.received == batch.rows.num_rows + sum(batch.dropped.values())
                lake.append(batch.table, batch.rows, batch.positions)
                received += batch.received
    finally:
        source.close()
    return received


@contextmanager
def with_jolokia():
    """Every JVM started within carries a Jolokia agent on the port given."""
    (jar,) = artifacts.resolve("jolokia").iterdir()
    port = free_port()
    os.environ["JAVA_TOOL_OPTIONS"] = f"-javaagent:{jar}=port={port},host=127.0.0.1"
    try:
        yield port
    finally:
        del os.environ["JAVA_TOOL_OPTIONS"]


def _jolokia_says_what_the_exporter_says(nodes, port, exporter_port, directory) -> int:
    """Both read the same beans, under other names: the same canonical values."""
    lake = Lake(directory / f"jolokia-{port}")
    target = f"http://127.0.0.1:{port}/jolokia"
    settings = ScrapeSource(kind="scrape", name="jolokia", targets=(target,), format="jolokia")
    before = _canonical(_direct(exporter_port))
    drain(build_source(settings, around(nodes)), lake)
    after = _canonical(_direct(exporter_port))
    rows = lake.read(METRIC_SAMPLES).to_pylist()
    assert [r["scrape_error"] for r in rows if r["scrape_error"]] == []
    got = _canonical({(r["metric"], tuple(sorted(r["labels"]))): r["value"] for r in rows})
    both = [key for key in got if key in before and key in after]
    for key in both:
        if key[0].endswith("-total"):
            assert before[key] <= got[key] <= after[key], key
    assert len(both) > 12
    return len(both)


def _canonical(samples: dict[tuple, float]) -> dict[tuple, float]:
    """Canonical name, and the labels that tell series apart, to value."""
    found = {}
    for (metric, labels), value in samples.items():
        named = dict(labels)
        meaning = read_name(metric, named)
        if meaning is not None and not math.isnan(value):
            kept = ("topic", "partition", "request", "error", "client_id", "node_id")
            place = tuple(named.get(label) for label in kept)
            found[meaning.name, meaning.scope, place] = value
    return found


def test_jolokia_of_a_java_producer(nodes, tmp_path):
    with with_jolokia() as port:
        wanted = JavaProducer("cart", "other", messages=100_000, per_second=100)
        client = start_producer(nodes, wanted, tmp_path)
    try:
        assert wait_until(lambda: _acks(client) > 50, 60)
        assert _jolokia_says_what_the_exporter_says(nodes, port, client.exporter_port, tmp_path)
    finally:
        client.process.kill()


def _is(admin: AdminClient, topic: str, **wanted) -> bool:
    """Whether the partition is so; a broker that hangs answers nothing, and that is no yes."""
    try:
        partition = admin.list_topics(topic, timeout=5).topics[topic].partitions[0]
    except KafkaException:
        return False
    return all(getattr(partition, name) == value for name, value in wanted.items())


def _drain_in_the_end(source, lake: Lake) -> int:
    """As the agent does it: a broker that hangs is an error, and the next try begins anew."""
    for _ in range(6):
        try:
            return drain(source, lake)
        except SourceUnavailable:
            time.sleep(1)
    raise AssertionError("the cluster never answered")


def test_an_unreachable_cluster_is_an_error_to_try_again(tmp_path):
    kafka = KafkaSettings(bootstrap_servers=f"127.0.0.1:{free_port()}")
    around = Surroundings("lab", kafka, once=True)
    state = ClusterStateSource(kind="cluster_state", name="state", timeout_s=1)
    with pytest.raises(SourceUnavailable):
        drain(build_source(state, around), Lake(tmp_path))
