"""Several agents on one lake: one per source, and two on the same source."""

from __future__ import annotations

import subprocess
import sys
import time
from pathlib import Path

from agent_fleet import AgentFleet

from acktrail.contracts.bronze import LOG_RECORDS
from acktrail.lake import Lake

SETTINGS = """
[lake]
uri = "{folder}/lake"
[agent]
flush_s = 0.05
[[sources]]
kind = "log_files"
name = "{name}"
host = "h"
paths = ["{folder}/{name}.log"]
"""
LINE = "2026-01-31 10:00:00,001 WARN Got error produce response of {} number {}\n"


def settings(folder: Path, name: str) -> str:
    file = folder / f"{name}.toml"
    file.write_text(SETTINGS.format(folder=folder, name=name))
    return str(file)


def write(folder: Path, name: str, first: int, count: int) -> None:
    with (folder / f"{name}.log").open("a") as out:
        out.writelines(LINE.format(name, n) for n in range(first, first + count))


def texts(folder: Path) -> list[str]:
    return Lake(folder / "lake").read(LOG_RECORDS, columns=["text"]).column("text").to_pylist()


def test_two_agents_on_one_source_at_once(tmp_path):
    config = settings(tmp_path, "app")
    write(tmp_path, "app", 0, 100)
    command = [sys.executable, "-m", "acktrail", "agent", "--config", config]
    agents = [subprocess.Popen(command, stderr=subprocess.PIPE, text=True) for _ in range(2)]
    try:
        written, until = 100, time.monotonic() + 90
        while all(agent.poll() is None for agent in agents):
            assert time.monotonic() < until, "neither agent was refused"
            write(tmp_path, "app", written, 10)
            written += 10
            time.sleep(0.05)
    finally:
        for agent in agents:
            agent.terminate()
        said = [agent.communicate(timeout=60)[1] for agent in agents]
    refused = [said[i] for i, agent in enumerate(agents) if agent.returncode == 2]
    assert refused, [agent.returncode for agent in agents]
    assert all("PositionConflict" in text and "stop one of them" in text for text in refused)
    once = subprocess.run([*command, "--once"], capture_output=True, text=True, check=True)
    assert "received" in once.stderr
    found = texts(tmp_path)
    assert len(found) == len(set(found)) == written


def test_one_agent_after_the_other(tmp_path):
    config = settings(tmp_path, "app")
    fleet = AgentFleet(tmp_path / "agents.log")
    for first in range(0, 90, 30):
        write(tmp_path, "app", first, 30)
        for _ in range(2):
            fleet.wait(fleet.start("--once", "--config", config))
    fleet.close()
    found = texts(tmp_path)
    assert len(found) == len(set(found)) == 90


def test_eight_agents_append_at_once_and_no_commit_is_lost(tmp_path):
    names = [f"app-{letter}" for letter in "abcdefgh"]
    fleet = AgentFleet(tmp_path / "agents.log")
    for turn in range(3):
        for name in names:
            write(tmp_path, name, turn * 200, 200)
        agents = [fleet.start("--once", "--config", settings(tmp_path, name)) for name in names]
        for agent in agents:
            fleet.wait(agent)
    fleet.close()
    found = texts(tmp_path)
    assert len(found) == len(set(found)) == 8 * 3 * 200
    delta = Lake(tmp_path / "lake").open(LOG_RECORDS)
    assert delta is not None
    assert delta.version() == 8 * 3, (tmp_path / "agents.log").read_text()
