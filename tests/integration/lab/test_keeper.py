"""A cluster that stays up between commands, and leaves nothing however it ends."""

from __future__ import annotations

import os
import signal
from pathlib import Path

import pytest
from click.testing import CliRunner
from confluent_kafka.admin import AdminClient

from acktrail.cli.lab import command
from acktrail.errors import LabError
from lab import keeper
from lab.scratch import scratch_root
from lab.steps import wait_until


@pytest.fixture
def scratch(tmp_path, monkeypatch):
    monkeypatch.setenv("ACKTRAIL_LAB_DIR", str(tmp_path))
    yield tmp_path
    keeper.take_down()


def lab(*arguments):
    return CliRunner().invoke(command, arguments, catch_exceptions=False)


def test_up_status_logs_and_a_kill_9_that_leaves_nothing(scratch):
    assert lab("status").exit_code == 1
    bootstrap = lab("up").stdout.strip()
    admin = AdminClient({"bootstrap.servers": bootstrap, "log_level": 0})
    assert set(admin.list_topics(timeout=30).brokers) == {1, 2, 3}
    assert lab("status").stdout.count(" up ") == 3
    assert "Kafka Server started" in lab("logs", "2", "--lines", "500").stdout
    with pytest.raises(LabError, match="already up"):
        keeper.bring_up("4.3.1")
    state = keeper.running()
    first, second, _ = state["brokers"]
    os.kill(first["pid"], signal.SIGKILL)
    os.kill(second["pid"], signal.SIGSTOP)
    assert wait_until(lambda: keeper.condition(first) == "DOWN", 60)
    shown = lab("status")
    assert shown.exit_code == 1
    assert [line.split()[2] for line in shown.stdout.splitlines()[1:]] == ["DOWN", "HANGS", "up"]
    os.kill(state["pid"], signal.SIGKILL)
    pids = [broker["pid"] for broker in state["brokers"]]
    assert wait_until(lambda: not any(Path(f"/proc/{pid}").exists() for pid in pids), 120)
    assert lab("status").exit_code == 1
    assert "No cluster was up" in lab("down").stderr
    assert [path for path in scratch_root().iterdir() if path.is_dir()] == []


def test_an_unknown_version_is_one_line_and_leaves_nothing(scratch):
    with pytest.raises(LabError, match=r"no Kafka 9\.9\.9 here; there are 4\.3\.1, 3\.9\.2"):
        keeper.bring_up("9.9.9")
    assert keeper.running() is None
    assert [path for path in scratch_root().iterdir() if path.is_dir()] == []
