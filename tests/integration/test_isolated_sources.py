"""Sources in processes of their own, against real brokers: what kills one stops nothing else."""

from __future__ import annotations

import os
import random
import signal
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path

from confluent_kafka.admin import AdminClient

from acktrail.contracts.bronze import CLUSTER_STATES, LOG_RECORDS
from acktrail.contracts.runs import SOURCE_STATES
from acktrail.lake import Lake
from lab.scenario import Topic
from lab.snapshots import create_topics
from lab.steps import wait_until
from tests.integration.process_list import process_list
from tests.integration.shipped_lines import ship, shipped_numbers

SECRET = "hunter2-is-not-it"
SETTINGS = """
cluster = "lab"
[lake]
uri = "{home}/lake"
[agent]
flush_s = 0.2
[kafka]
bootstrap_servers = "{servers}"
[kafka.secrets]
"sasl.password" = "{secret}"
[[sources]]
kind = "cluster_state"
name = "state"
topics = ["isolated"]
interval_s = 0.5
[[sources]]
kind = "log_topic"
name = "fleet"
topics = ["isolated"]
shape = "filebeat"
idle_s = 0.1
[[sources]]
kind = "log_files"
name = "app"
host = "h"
paths = ["{home}/app.log"]
"""
DEATHS = (signal.SIGKILL, signal.SIGSEGV, signal.SIGABRT)


def children(pid: int) -> list[int]:
    """Process ids of the direct children."""
    tasks = Path(f"/proc/{pid}").glob("task/*/children")
    return [int(child) for task in tasks for child in task.read_text().split()]


def start(home: Path) -> subprocess.Popen[bytes]:
    words = [sys.executable, "-m", "acktrail", "agent", "--config", str(home / "acktrail.toml")]
    with (home / "err").open("ab") as err:
        return subprocess.Popen(words, stderr=err, start_new_session=True)


def gone(pids: list[int]) -> Callable[[], bool]:
    return lambda: not any(Path(f"/proc/{pid}").exists() for pid in pids)


def test_killed_processes_of_sources_lose_nothing_and_leave_the_others_alone(nodes, tmp_path):
    chance = random.Random(7)
    create_topics(
        AdminClient({"bootstrap.servers": nodes.direct}),
        [Topic("isolated", ((1, 2, 3), (2, 3, 1)))],
    )
    settings = SETTINGS.format(home=tmp_path, servers=nodes.direct, secret=SECRET)
    (tmp_path / "acktrail.toml").write_text(settings)
    lake, written = Lake(tmp_path / "lake"), 0
    agent = start(tmp_path)
    try:
        assert wait_until(lambda: len(children(agent.pid)) == 2, 180)
        hosted = lambda: [  # noqa: E731
            line for line in process_list(agent.pid) if "ingest.agent.source_process" in line
        ]
        assert wait_until(lambda: len(hosted()) == 2, 180), "one that is forked has no name yet"
        listed = process_list(agent.pid)
        for death in DEATHS:
            ship(nodes, "isolated", range(written, written + 100))
            with (tmp_path / "app.log").open("a") as log:
                log.writelines(f"WARN Got error produce response {n}\n" for n in range(100))
            written += 100
            assert wait_until(lambda: len(hosted()) == 2, 180)
            time.sleep(chance.uniform(0, 1.5))
            os.kill(chance.choice(children(agent.pid)), death)
        assert wait_until(lambda: len(shipped_numbers(lake)) >= written, 180)
        assert wait_until(lambda: lake.read(CLUSTER_STATES).num_rows > 0, 180)
        os.killpg(agent.pid, signal.SIGTERM)  # as a service manager does
        assert agent.wait(180) == 0, (tmp_path / "err").read_text()[-2000:]
        agent = start(tmp_path)
        assert wait_until(lambda: len(children(agent.pid)) == 2, 180)
        orphans = children(agent.pid)
    finally:
        agent.kill()
        agent.wait()
    assert wait_until(gone(orphans), 120), "they end with their parent"
    said = (tmp_path / "err").read_text()
    assert "ended by signal" in said
    assert SECRET not in " ".join([*listed, said])
    assert shipped_numbers(lake) == list(range(written)), "each record once"
    lines = [r["position"] for r in lake.read(LOG_RECORDS).to_pylist() if r["source"] == "app"]
    assert len(lines) == len(set(lines)) >= written - 1  # the last may wait for its successor
    failed = {r["source"] for r in lake.read(SOURCE_STATES).to_pylist() if r["state"] == "failing"}
    assert "app" not in failed
