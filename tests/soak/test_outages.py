"""Brokers restarted, killed and paused again and again: the agent lives, and misses nothing.

A real cluster with many consumer groups, so that coordinators move at every outage, and a real
`acktrail agent` that reads its state and a topic of log lines. `make soak` runs it for long.
"""

from __future__ import annotations

import os
import random
import signal
import subprocess
import sys
import time

from confluent_kafka import Consumer, TopicPartition
from confluent_kafka.admin import AdminClient

from acktrail.contracts.bronze import CLUSTER_STATES, GROUP_OFFSETS, LOG_RECORDS
from acktrail.lake import Lake
from lab.cluster import Cluster, cluster
from lab.scenario import Topic
from lab.snapshots import create_topics
from lab.steps import wait_until
from tests.integration.shipped_lines import ship, shipped_numbers
from tests.integration.test_isolated_sources import SETTINGS

OUTAGES = int(os.environ.get("OUTAGES", "40"))
GROUPS = 30


def commit(brokers: Cluster, group: str) -> None:
    """Let *group* commit an offset."""
    member = Consumer({"bootstrap.servers": brokers.direct, "group.id": group, "log_level": 0})
    place = TopicPartition("isolated", 0, 1)
    member.commit(offsets=[place], asynchronous=False)
    member.close()


def outage(brokers: Cluster, id: int, kind: str, seconds: float) -> None:
    """One broker away for a while; it serves again when this returns."""
    process = brokers.brokers[id].process
    assert process is not None
    if kind == "paused":
        process.pause()
        time.sleep(seconds)
        process.resume()
        return
    process.kill() if kind == "killed" else process.terminate()
    time.sleep(seconds)
    brokers.launch(id)
    brokers.wait_started(id)


def test_repeated_outages_neither_end_the_agent_nor_lose_a_record(tmp_path):
    chance, written = random.Random(11), 0
    lake = Lake(tmp_path / "lake")
    with cluster() as brokers:
        admin = AdminClient({"bootstrap.servers": brokers.direct, "log_level": 0})
        create_topics(admin, [Topic("isolated", ((1, 2, 3), (2, 3, 1)))])
        for number in range(GROUPS):
            commit(brokers, f"group-{number}")
        settings = SETTINGS.format(home=tmp_path, servers=brokers.direct, secret="none")
        (tmp_path / "acktrail.toml").write_text(settings)
        (tmp_path / "app.log").write_text("")
        words = [sys.executable, "-m", "acktrail", "agent", "--config", tmp_path / "acktrail.toml"]
        with (tmp_path / "err").open("wb") as err:
            agent = subprocess.Popen(words, stderr=err)
        try:
            for _ in range(OUTAGES):
                kind = chance.choice(("killed", "paused", "ended"))
                outage(brokers, chance.choice((1, 2, 3)), kind, chance.uniform(0.5, 6))
                ship(brokers, "isolated", range(written, written + 50))
                written += 50
                assert agent.poll() is None, (tmp_path / "err").read_text()[-2000:]
            assert wait_until(lambda: len(shipped_numbers(lake)) >= written, 180)
            agent.send_signal(signal.SIGTERM)
            assert agent.wait(60) == 0
        finally:
            agent.kill()
            agent.wait()
    assert shipped_numbers(lake) == list(range(written)), "each record once"
    assert lake.read(LOG_RECORDS).num_rows >= written
    seen = {row["group"] for row in lake.read(GROUP_OFFSETS).to_pylist()}
    assert len(seen) == GROUPS
    assert lake.read(CLUSTER_STATES).num_rows > 2 * OUTAGES
    crashes = (tmp_path / "err").read_text().count("ended by signal")
    print(f"{OUTAGES} outages, {written} records, {crashes} crashes of a source's process")
