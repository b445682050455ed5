"""Against real brokers and a real Java producer: what is in the lake is what is there."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import time
from datetime import UTC, datetime
from pathlib import Path

import pytest
from confluent_kafka import Consumer, Producer, TopicPartition
from confluent_kafka.admin import AdminClient, AlterConfigOpType, ConfigEntry, ConfigResource
from confluent_kafka.admin import ResourceType as Kind

from acktrail.audit.wire import decode_runs
from acktrail.contracts.bronze import (
    AUDIT_REPORTS,
    CLUSTER_CONFIGS,
    CLUSTER_STATES,
    GROUP_OFFSETS,
    METRIC_SAMPLES,
)
from acktrail.contracts.vocabulary import Tier
from acktrail.errors import SourceUnavailable
from acktrail.lake import Lake
from acktrail.settings.model import KafkaSettings
from acktrail.settings.sources import (
    ClusterStateSource,
    LogScanSource,
    VerifiableSource,
)
from ingest.messages.message_files import ingest_files
from ingest.registry import SourceContext, build_source
from lab.scenario import Topic
from lab.snapshots import create_topics
from lab.steps import wait_until
from tests.integration.kafka_nodes import SESSION, TOPIC, around, drain, found, produce
from tests.integration.servers import free_port


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


def test_a_scan_and_a_state_note_what_the_lake_had_before_them(nodes, tmp_path):
    """The newest receipt is looked up first; records without an id are named by their offset."""
    lake = Lake(tmp_path)
    create_topics(AdminClient({"bootstrap.servers": nodes.direct}), [Topic("noted")])
    state = ClusterStateSource(kind="cluster_state", name="state", topics=("noted",))
    scan = LogScanSource(kind="log_scan", name="noted", topics=("noted",), mode="whole")
    named = produce(nodes, "noted", range(90_000, 90_005), 0)
    producer = Producer({"bootstrap.servers": nodes.direct, "enable.idempotence": True})
    places: list[int] = []
    for value in (b"anything", b"8", None):
        producer.produce(
            "noted", value, partition=0, on_delivery=lambda _, m: places.append(m.offset())
        )
    assert producer.flush(120) == 0
    unreadable, readable, empty = places
    for source in (state, scan):
        drain(build_source(source, around(nodes)), lake)
    reports = lake.read(AUDIT_REPORTS).to_pylist()
    nothing = datetime.fromtimestamp(0, UTC)
    assert {r["after_at"] for r in reports} == {nothing}, "there was nothing before"
    states = lake.read(CLUSTER_STATES).to_pylist()
    assert {r["after_at"] for r in states} == {nothing}
    (covered,) = [r for r in reports if r["tier"] == "scanned" and r["partition"] == 0]
    unnamed = decode_runs(covered["unnamed"]).listed()[0] + covered["first_offset"]
    assert set(unnamed.tolist()) >= {unreadable, empty}
    assert not set(unnamed.tolist()) & {*named.values(), readable}, "VerifiableProducer writes an 8"

    newest = datetime.fromtimestamp(lake.receipt("lab") / 1000, UTC)
    produce(nodes, "noted", range(90_005, 90_009), 0)
    for source in (state, scan):
        drain(build_source(source, around(nodes)), lake)
    added = [r for r in lake.read(AUDIT_REPORTS).to_pylist() if r not in reports]
    assert {r["tier"] for r in added} == {"in_log", "scanned"}
    assert {r["after_at"] for r in added} == {newest}
    assert all(r["read_at"] > newest for r in added)
    told = [r["after_at"] for r in lake.read(CLUSTER_STATES).to_pylist() if r not in states]
    assert set(told) == {newest}


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
    assert set(states) >= {(TOPIC, 0), (TOPIC, 1), ("other", 0), ("moved", 0)}
    state = states[TOPIC, 0]
    assert (state["earliest_offset"], state["latest_offset"]) == (low, high)
    said = AdminClient({"bootstrap.servers": nodes.direct}).list_topics(TOPIC, timeout=30)
    leader = said.topics[TOPIC].partitions[0].leader
    assert (state["leader"], state["replicas"], state["isr"]) == (leader, [1, 2, 3], [1, 2, 3])
    assert state["leader_epoch"] >= 0
    assert len(state["topic_id"]) == 22
    (commit,) = [
        row
        for row in lake.read(GROUP_OFFSETS).to_pylist()
        if (row["group"], row["topic"]) == ("billing", TOPIC)
    ]
    assert commit["committed_offset"] == 17
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
    assert wait_until(lambda: changed() == [("topic", "other")], 60)
    newest = max(lake.read(CLUSTER_CONFIGS).to_pylist(), key=lambda r: r["at"])
    assert dict(newest["settings"])["min.insync.replicas"] == "2"


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
    last = max(got)
    assert set(got) == {seq for seq in told if seq <= last}


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
    time.sleep(1.1)
    drain(build_source(settings, around(nodes)), lake)  # sets the receipt: nobody else reports
    time.sleep(0.1)
    drain(build_source(settings, around(nodes)), lake)
    scans = [r for r in lake.read(AUDIT_REPORTS).to_pylist() if r["tier"] == "scanned"]
    (scanned,) = [r for r in scans if r["records"]]
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
    last = max(scanned)
    assert {seq for seq in acked if seq <= last} <= scanned


def test_an_unreachable_cluster_is_an_error_to_try_again(tmp_path):
    kafka = KafkaSettings(bootstrap_servers=f"127.0.0.1:{free_port()}")
    around = SourceContext("lab", kafka, once=True)
    state = ClusterStateSource(kind="cluster_state", name="state", timeout_s=1)
    with pytest.raises(SourceUnavailable):
        drain(build_source(state, around), Lake(tmp_path))
