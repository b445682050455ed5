"""A healthy cluster of ordinary applications: no alert, no failed check, nothing to act on.

A real agent reads for ten minutes with the settings of the README and docs/agents.md, while `run`
and `check` come every two minutes, as a scheduler would start them. The cluster is healthy, so
whatever fails, alerts or warns is a false alarm.
"""

from __future__ import annotations

import json
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

import pytest

from lab.processes import Process
from lab.warning import alerts
from tests.soak.ordinary import ordinary_cluster

HEALTHY_S = 600
EVERY_S = 120
SCRAPED_S = 150
"""Until Prometheus, started just before, has samples of everything."""


def acktrail(config: Path, *words: str) -> subprocess.CompletedProcess[str]:
    command = [sys.executable, "-m", "acktrail", *words, "--config", str(config)]
    return subprocess.run(command, capture_output=True, text=True, check=False, timeout=600)


def checked(config: Path) -> list[dict[str, Any]]:
    """Run the jobs and the checks; every check with its outcome."""
    ran = acktrail(config, "run")
    assert ran.returncode == 0, ran.stderr
    done = acktrail(config, "check", "--format", "json")
    assert done.returncode == 0, done.stdout + done.stderr
    return [json.loads(line) for line in done.stdout.splitlines()]


@pytest.mark.timeout(2400)
def test_a_healthy_cluster_alerts_nobody(tmp_path):
    with ordinary_cluster(tmp_path) as up:
        time.sleep(SCRAPED_S)
        words = [sys.executable, "-m", "acktrail", "agent", "--config", str(up.config)]
        agent = Process(words, output=tmp_path / "agent.out", errors=tmp_path / "agent.err")
        deadline = time.monotonic() + HEALTHY_S
        rounds = []
        while time.monotonic() < deadline:
            time.sleep(EVERY_S)
            rounds.append(checked(up.config))
            assert alerts(up.alertmanager) == []
        assert agent.alive
        agent.terminate(60)
    said = (tmp_path / "agent.err").read_text()
    print(said)
    assert "WARNING" not in said
    assert "ERROR" not in said
    for check in rounds[-1]:
        print(check["outcome"], check["check"], check["table"])
    assert {check["outcome"] for check in rounds[-1]} == {"pass"}
