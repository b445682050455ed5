"""Reports on an audit topic: each row once, whatever dies; several clusters; what is counted."""

from __future__ import annotations

import json
import os
import random
import signal
import subprocess
import sys
import time
from collections import Counter
from pathlib import Path

from confluent_kafka import Producer, TopicPartition
from confluent_kafka.admin import AdminClient

from acktrail.audit.wire import Report, encode_reports
from acktrail.contracts.bronze import AUDIT_REPORTS, METRIC_SAMPLES
from acktrail.contracts.vocabulary import Tier
from acktrail.lake import Lake
from acktrail.settings.sources import AuditTopicSource
from ingest.registry import build_source
from lab.scenario import Topic
from lab.snapshots import create_topics
from tests.integration.kafka_nodes import around
from tests.integration.test_kafka_shipped import drain_all

ROOT = Path(__file__).parents[2]
SESSION = "0194b8a3c80070008000000000000001"
AT = 1_790_000_000_000


def report(number: int, cluster_id: str | None = None, tier: Tier = Tier.SENT, **more) -> Report:
    return Report("r1", tier, "orders", number, AT + number, SESSION, cluster_id=cluster_id, **more)


def beat(number: int) -> Report:
    settings = {"client_id": "shop", "host": "shop-1"}
    metrics = {"record-retry-total": float(number), "no-such-metric": 1.0}
    return report(number, tier=Tier.HEARTBEAT, settings=settings, metrics=metrics)


def send(nodes, topic: str, messages) -> None:
    producer = Producer({"bootstrap.servers": nodes.direct, "enable.idempotence": True})
    for number, message in enumerate(messages):
        body = message if isinstance(message, bytes) else encode_reports(message)
        producer.produce(topic, body, key=SESSION, partition=number % 2)
    assert producer.flush(60) == 0


def numbers(lake: Lake, table=AUDIT_REPORTS) -> Counter[int]:
    if table is AUDIT_REPORTS:
        return Counter(lake.read(table, columns=["number"]).column("number").to_pylist())
    found = lake.read(table, columns=["value"]).column("value").to_pylist()
    return Counter(int(value) for value in found)


def test_each_row_once_of_each_cluster(nodes, tmp_path):
    admin = AdminClient({"bootstrap.servers": nodes.direct})
    create_topics(admin, [Topic("reports", ((1, 2, 3), (2, 3, 1)))])
    own = admin.list_topics(timeout=20).cluster_id
    wanted = AuditTopicSource(
        kind="audit_topic", name="clients", topics=("reports",), cluster_names={"OTHER": "prod-us"}
    )
    lake = Lake(tmp_path / "lake")
    made = build_source(wanted, around(nodes))
    assert drain_all(made, lake) == 0  # nothing there yet
    send(
        nodes,
        "reports",
        [
            [beat(0), report(1)],
            [report(2, own), report(3, "OTHER"), report(4, "STRANGE")],
            b"not a report",
            json.dumps({"v": 1, "reports": [{"reporter": 7}]}).encode(),
            *([beat(number), report(number + 100)] for number in range(10, 40)),
        ],
    )
    made.open(lake)
    first = next(iter(made.poll(10)))  # reports of one partition; the metrics die with the agent
    assert first.table is AUDIT_REPORTS
    lake.append(first.table, first.rows, first.positions)
    made.close()
    drain_all(made, lake)
    assert drain_all(made, lake) == 0
    sent = {0, 1, 2, 3, *range(10, 40), *range(110, 140)}
    assert numbers(lake) == Counter(sent)
    assert numbers(lake, METRIC_SAMPLES) == Counter({0, *range(10, 40)})
    clusters = {r["number"]: r["cluster"] for r in lake.read(AUDIT_REPORTS).to_pylist()}
    assert (clusters[1], clusters[2], clusters[3]) == ("lab", "lab", "prod-us")
    samples = lake.read(METRIC_SAMPLES).to_pylist()
    assert {s["metric"] for s in samples} == {"kafka_producer_producer_metrics_record_retry_total"}
    assert {dict(s["labels"])["client_id"] for s in samples} == {"shop"}
    assert {s["instance"] for s in samples} == {"shop-1:audit"}
    _what_is_counted(made, lake, nodes, admin)


def _what_is_counted(made, lake: Lake, nodes, admin) -> None:
    """Messages that are no reports, clusters without a name, and what retention took."""
    send(nodes, "reports", [b"\xff\xfe", [report(200, "STRANGE")], b"{}", [report(201)]])
    made.open(lake)
    dropped: Counter[str] = Counter()
    while batches := list(made.poll(5)):
        for batch in batches:
            assert batch.received == batch.rows.num_rows + sum(batch.dropped.values())
            dropped.update(batch.dropped)
            lake.append(batch.table, batch.rows, batch.positions)
    assert dropped == {"poison": 2, "unknown_cluster": 1}
    notes = " ".join(made.health().notes)
    assert "not audit reports are dropped and counted; the first: reports-" in notes
    assert (
        "Reports about cluster STRANGE are dropped and counted: name it in `cluster_names`" in notes
    )
    made.close()
    send(nodes, "reports", [[report(number)] for number in range(300, 310)])
    for future in admin.delete_records([TopicPartition("reports", 0, -1)]).values():
        future.result(30)
    send(nodes, "reports", [[report(number)] for number in range(310, 312)])
    made.open(lake)
    gone = Counter()
    while batches := list(made.poll(5)):
        for batch in batches:
            gone.update(batch.dropped)
            lake.append(batch.table, batch.rows, batch.positions)
    made.close()
    assert gone == {"expired_before_read": 5}
    assert numbers(lake)[310] == numbers(lake)[311] == numbers(lake)[301] == 1
    assert numbers(lake)[300] == 0


def test_each_row_once_through_kills(nodes, tmp_path):
    """An agent that is killed again and again while reports come."""
    admin = AdminClient({"bootstrap.servers": nodes.direct})
    create_topics(admin, [Topic("killed-reports", ((1, 2, 3), (2, 3, 1)))])
    config = tmp_path / "acktrail.toml"
    config.write_text(
        f'cluster = "lab"\n[lake]\nuri = "{tmp_path / "lake"}"\n'
        f'[kafka]\nbootstrap_servers = "{nodes.direct}"\n[agent]\nflush_s = 0.2\n'
        '[[sources]]\nkind = "audit_topic"\nname = "clients"\ntopics = ["killed-reports"]\n'
    )
    command = [sys.executable, "-m", "acktrail", "agent", "--config", str(config)]
    environment = {**os.environ, "PYTHONPATH": str(ROOT)}
    chance, sent = random.Random(5), 0
    for _ in range(5):
        agent = subprocess.Popen(command, env=environment, stderr=subprocess.DEVNULL)
        ends = time.monotonic() + chance.uniform(2.0, 5.0)
        while time.monotonic() < ends:
            send(nodes, "killed-reports", [[beat(n)] for n in range(sent, sent + 20)])
            sent += 20
            time.sleep(0.2)
        agent.send_signal(signal.SIGKILL)
        agent.wait()
    done = subprocess.run([*command, "--once"], env=environment, capture_output=True, check=False)
    assert done.returncode == 0, done.stderr
    lake = Lake(tmp_path / "lake")
    assert numbers(lake) == Counter(range(sent))
    assert numbers(lake, METRIC_SAMPLES) == Counter(range(sent))
