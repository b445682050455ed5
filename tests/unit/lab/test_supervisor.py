"""Ends of processes: each leaves one line in its client's output, however it came."""

from __future__ import annotations

import json
import sys

import pytest

from lab.clients import Client
from lab.events import ClientProgress
from lab.processes import Process
from lab.steps import wait_until
from lab.supervisor import Supervisor


def start(tmp_path, program):
    output = tmp_path / "c.jsonl"
    process = Process([sys.executable, "-c", program], output=output)
    return Client("c", "c-1", process, output, ClientProgress(output), None)


def exits(client):
    lines = client.output.read_text().splitlines()
    parsed = [json.loads(line) for line in lines if "process_exited" in line]
    return [each["code"] for each in parsed]


ENDS = [
    ("by itself, well", "print('{}')", 0, {}),
    ("by itself, badly", "raise SystemExit(3)", 3, {"c": 3}),
    ("with half a line", "import os; os.write(1, b'{\"name\": '); os.abort()", -6, {"c": -6}),
]


@pytest.mark.parametrize(
    ("program", "code", "died"), [c[1:] for c in ENDS], ids=[c[0] for c in ENDS]
)
def test_an_end_by_itself(tmp_path, program, code, died):
    supervisor = Supervisor()
    client = start(tmp_path, program)
    supervisor.add(client)
    supervisor.start()
    assert wait_until(lambda: "c" in supervisor.exits, 30)
    supervisor.stop()
    assert exits(client) == [code] == supervisor.exits["c"]
    assert supervisor.died == died


def test_a_client_that_the_scenario_ends_has_not_died(tmp_path):
    supervisor = Supervisor()
    client = start(tmp_path, "import time; time.sleep(60)")
    supervisor.add(client)
    supervisor.look()
    assert exits(client) == []
    client.ended_by_us = True
    client.process.kill()
    supervisor.look()
    supervisor.look()
    assert exits(client) == [-9]
    assert supervisor.died == {}
