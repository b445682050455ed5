"""Kill -9 at random points, real logrotate, numbered lines: each one exactly once in the lake."""

from __future__ import annotations

import os
import random
import re
import shutil
import subprocess
import sys
import time
from collections import Counter
from pathlib import Path

import pytest
from agent_fleet import AgentFleet

from acktrail.contracts.bronze import LOG_RECORDS
from acktrail.lake import Lake

SOAK = bool(os.environ.get("ACKTRAIL_SOAK"))
SEEDS = range(10) if SOAK else range(1)
KILLS, LINES = (100, 50_000) if SOAK else (25, 200_000)
"""Of each seed, on a lake of its own."""
SECONDS_PER_KILL = 0.4
_NUMBER = re.compile(r"line (\d+) END")

SETTINGS = """
[lake]
uri = "{folder}/lake"
[agent]
flush_s = 0.1
[[sources]]
kind = "log_files"
name = "app"
host = "h"
paths = ["{folder}/logs/app.log"]
"""
ROTATION = """
{folder}/logs/app.log {{
    rotate 100000
    size 1
    missingok
    compress
    delaycompress
    {how}
}}
"""


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    (tmp_path / "logs").mkdir()
    tmp_path.chmod(0o700)
    (tmp_path / "acktrail.toml").write_text(SETTINGS.format(folder=tmp_path))
    return tmp_path


def rotate(folder: Path) -> None:
    program = shutil.which("logrotate") or "/usr/sbin/logrotate"
    state = str(folder / "rotation.state")
    subprocess.run(
        [program, "-f", "-s", state, str(folder / "rotation.conf")], check=True, timeout=300
    )


@pytest.mark.parametrize("seed", SEEDS)
def test_each_line_once_through_kills_and_rotation(folder, seed):
    (folder / "rotation.conf").write_text(ROTATION.format(folder=folder, how="create"))
    (folder / "rotation.conf").chmod(0o600)
    chance = random.Random(20_260_131 + seed)
    with _Writer(folder) as writer, AgentFleet(folder / "agents.log") as fleet:
        rotate_at = time.monotonic()
        for kill in range(KILLS):
            writer.write(LINES // KILLS, SECONDS_PER_KILL)
            pid = fleet.start("--config", str(folder / "acktrail.toml"))
            if kill % 2:  # every other one dies soon after a commit, not before its first
                _wait_for_commit(folder)
            end = time.monotonic() + chance.uniform(0.02, SECONDS_PER_KILL)
            while (left := end - time.monotonic()) > 0:
                if time.monotonic() >= rotate_at:
                    rotate(folder)
                    rotate_at = time.monotonic() + chance.uniform(0.2, 1.0)
                time.sleep(min(left, 0.02))
            fleet.kill(pid)
        assert (Lake(folder / "lake").version(LOG_RECORDS) or 0) >= KILLS // 2
        writer.finish()
        rotate(folder)
        _finish_reading(fleet, folder)
    _assert_each_once(folder, LINES)


def test_each_line_once_through_copytruncate(folder):
    """The writer pauses while the file is copied and cut: only then can nothing be lost."""
    (folder / "rotation.conf").write_text(ROTATION.format(folder=folder, how="copytruncate"))
    (folder / "rotation.conf").chmod(0o600)
    chance = random.Random(7)
    pause, paused = folder / "logs/app.log.pause", folder / "logs/app.log.paused"
    with _Writer(folder, "pause") as writer, AgentFleet(folder / "agents.log") as fleet:
        writer.write(20_000, 5)
        writer.no_more()
        for _ in range(6):
            pid = fleet.start("--config", str(folder / "acktrail.toml"))
            time.sleep(chance.uniform(0.1, 0.7))
            pause.touch()
            while not paused.exists() and writer.running():
                time.sleep(0.002)
            rotate(folder)
            pause.unlink()
            paused.unlink(missing_ok=True)
            time.sleep(chance.uniform(0.0, 0.3))
            fleet.kill(pid)
        writer.finish()
        _finish_reading(fleet, folder)
    _assert_each_once(folder, 20_000)


class _Writer:
    def __init__(self, folder: Path, *more: str) -> None:
        script = Path(__file__).with_name("log_writer.py")
        path = str(folder / "logs" / "app.log")
        self._process = subprocess.Popen(
            [sys.executable, str(script), path, *more], stdin=subprocess.PIPE, text=True
        )

    def __enter__(self) -> _Writer:
        return self

    def __exit__(self, *_error: object) -> None:
        self.no_more()
        if self._process.poll() is None:
            self._process.kill()
        self._process.wait()

    def write(self, lines: int, seconds: float) -> None:
        """Order that many more lines."""
        assert self._process.stdin is not None
        self._process.stdin.write(f"{lines} {seconds}\n")
        self._process.stdin.flush()

    def no_more(self) -> None:
        assert self._process.stdin is not None
        self._process.stdin.close()

    def running(self) -> bool:
        return self._process.poll() is None

    def finish(self) -> None:
        self.no_more()
        assert self._process.wait(300) == 0


def _wait_for_commit(folder: Path) -> None:
    """Until an agent has committed; one that was killed had read nothing new at worst."""
    log = folder / "lake" / LOG_RECORDS.layer / LOG_RECORDS.name / "_delta_log"
    before, until = len(list(log.glob("*.json"))), time.monotonic() + 60
    while len(list(log.glob("*.json"))) == before and time.monotonic() < until:
        time.sleep(0.01)


def _finish_reading(fleet: AgentFleet, folder: Path) -> None:
    for _ in range(2):
        fleet.wait(fleet.start("--once", "--config", str(folder / "acktrail.toml")))


def _assert_each_once(folder: Path, lines: int) -> None:
    found = Lake(folder / "lake").read(LOG_RECORDS, columns=["text"]).column("text").to_pylist()
    seen = Counter(int(n) for text in found for n in _NUMBER.findall(text))
    doubled = [n for n, count in seen.items() if count > 1]
    missing = [n for n in range(lines) if n not in seen]
    said = (folder / "agents.log").read_text()[-2000:]
    assert (len(missing), len(doubled)) == (0, 0), (missing[:5], doubled[:5], said)
    assert len(seen) == lines
