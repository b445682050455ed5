"""Several agents on one lake: one per source, and two on the same source."""

from __future__ import annotations

import os
import random
import subprocess
import sys
import time
from pathlib import Path

import pytest
from agent_fleet import AgentFleet

from acktrail.contracts.bronze import LOG_RECORDS
from acktrail.contracts.runs import SOURCE_STATES
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


def test_the_later_of_two_agents_on_one_source_waits_and_names_the_other(tmp_path):
    config = settings(tmp_path, "app")
    write(tmp_path, "app", 0, 100)
    command = [sys.executable, "-m", "acktrail", "agent", "--config", config]
    agents, said = [], [tmp_path / "first.err", tmp_path / "second.err"]
    try:
        written, until = 100, time.monotonic() + 240
        for path in said:
            with path.open("w") as err:
                agents.append(subprocess.Popen(command, stderr=err))
            while len(agents) == 1 and not Lake(tmp_path / "lake").exists(LOG_RECORDS):
                time.sleep(0.05)
        while "Waiting until that one is gone" not in said[1].read_text():
            assert time.monotonic() < until, "the second agent did not notice the first"
            write(tmp_path, "app", written, 10)
            written += 10
            time.sleep(0.05)
    finally:
        for agent in agents:
            agent.terminate()
        codes = [agent.wait(180) for agent in agents]
    assert codes == [0, 0]
    assert f"process {agents[0].pid}" in said[1].read_text()
    assert "Waiting until" not in said[0].read_text(), "the first goes on"
    told = Lake(tmp_path / "lake").read(SOURCE_STATES).to_pylist()
    stands = {r["agent"]: r["state"] for r in sorted(told, key=lambda r: r["at"])}
    assert sorted(stands.values()) == ["ended", "held"]
    once = subprocess.run([*command, "--once"], capture_output=True, text=True, check=True)
    assert "received" in once.stderr
    found = texts(tmp_path)
    assert len(found) == len(set(found)) == written


@pytest.mark.parametrize("seed", range(1, 21 if os.environ.get("ACKTRAIL_SOAK") else 2))
def test_any_number_of_agents_on_one_source_with_kills_write_each_row_once(tmp_path, seed):
    chance = random.Random(seed)
    config = settings(tmp_path, "app")
    running: list[int] = []
    written = 0
    with AgentFleet(tmp_path / "agents.log") as fleet:
        for _ in range(24):
            write(tmp_path, "app", written, 20)
            written += 20
            if len(running) < 4:
                once = ["--once"] if chance.random() < 0.3 else []
                running.append(fleet.start(*once, "--config", config))
            if chance.random() < 0.4:
                fleet.kill_if_alive(running.pop(chance.randrange(len(running))))
            time.sleep(chance.uniform(0, 0.15))
        for pid in running:
            fleet.kill_if_alive(pid)
        fleet.wait(fleet.start("--once", "--config", config))
    found = texts(tmp_path)
    assert len(found) == len(set(found)) == written, (tmp_path / "agents.log").read_text()


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
