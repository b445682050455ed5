"""`acktrail init` and `acktrail doctor` on a real cluster, Prometheus and Alertmanager."""

from __future__ import annotations

import json
import os
import socket
import subprocess
import sys
import time
from pathlib import Path
from types import SimpleNamespace

import pytest
from click.testing import CliRunner

from acktrail.cli import main
from tests.integration.kafka_nodes import TOPIC
from tests.integration.servers import AlertmanagerServer, PrometheusServer, free_port

ROOT = Path(__file__).parents[2]
SECONDS = 15
"""So long the whole command may take, whatever does not answer."""


@pytest.fixture(scope="module")
def prometheus(tmp_path_factory):
    folder = tmp_path_factory.mktemp("prometheus")
    server = PrometheusServer(folder, free_port())
    now = int(time.time())
    name = "kafka_producer_record_error_total"
    samples = "".join(f'{name}{{client_id="a"}} 1 {now - 400 + 15 * n}\n' for n in range(80))
    server.load(f"# TYPE {name} counter\n{samples}# EOF\n")
    server.start()
    yield server
    server.stop()


@pytest.fixture(scope="module")
def alertmanager(tmp_path_factory):
    server = AlertmanagerServer(tmp_path_factory.mktemp("alertmanager"))
    server.start()
    yield server
    server.stop()


def doctor(config: Path) -> tuple[int, dict[str, tuple[str, str]]]:
    """The exit code, and state and remark by what was looked at."""
    words = [sys.executable, "-m", "acktrail", "doctor", "--config", str(config)]
    began = time.monotonic()
    done = subprocess.run(
        [*words, "--format", "json"],
        env={**os.environ, "PYTHONPATH": str(ROOT)},
        capture_output=True,
        text=True,
        check=False,
        timeout=120,
    )
    assert time.monotonic() - began < 4 * SECONDS, "four times, on a machine that does much else"
    assert not done.stderr
    rows = [json.loads(line) for line in done.stdout.splitlines()]
    return done.returncode, {row["what"]: (row["state"], row["remark"]) for row in rows}


@pytest.fixture
def servers(nodes, prometheus, alertmanager):
    return SimpleNamespace(nodes=nodes, prometheus=prometheus, alertmanager=alertmanager)


def settings(servers, folder: Path, **changed: str) -> Path:
    """What `acktrail init` writes for the servers, with some flags changed."""
    nodes = servers.nodes
    log = folder / "app.log"
    log.write_text(time.strftime("%Y-%m-%d %H:%M:%S,001 INFO started\n", time.gmtime()))
    targets = [f"http://127.0.0.1:{b.exporter_port}/metrics" for b in nodes.brokers.values()]
    flags = {
        "cluster": "lab",
        "lake": str(folder / "lake"),
        "bootstrap-servers": nodes.direct,
        "logs": str(log),
        "zone": "UTC",
        "prometheus": servers.prometheus.url,
        "scrape": targets[0],
        "audited": TOPIC,
        "alertmanager": servers.alertmanager.url,
        **{name.replace("_", "-"): value for name, value in changed.items()},
    }
    words = [word for name, value in flags.items() for word in (f"--{name}", value)]
    config = folder / "acktrail.toml"
    done = CliRunner().invoke(main, ["init", str(config), *words])
    assert done.exit_code == 0, done.stderr
    return config


def test_what_init_writes_the_doctor_accepts(servers, tmp_path):
    config = settings(servers, tmp_path)
    code, rows = doctor(config)
    unwell = {what: row for what, row in rows.items() if row[0] != "ok"}
    # Nobody has committed offsets on this cluster: that no group is visible is said.
    assert set(unwell) <= {"source cluster"}, unwell
    assert code == 0
    assert rows["kafka"][1].endswith("brokers 1, 2, 3")
    assert rows["source scan"][1] == "1 topic, 2 partitions, readable"
    assert rows["source metrics"][1].endswith("1 series in the last 5 minutes")
    assert "not collected: nothing" in rows["policy"][1]
    assert rows["clock"][1].count(" s,") == 2, "three servers have told their time"
    assert not (tmp_path / "lake").exists(), "nothing is left behind"


def test_each_thing_that_is_wrong_is_a_row(servers, tmp_path):
    nowhere = f"http://127.0.0.1:{free_port()}"
    config = settings(
        servers, tmp_path, audited="audited-order", zone="Asia/Tokyo",
        prometheus=nowhere, alertmanager=nowhere, lake="/proc/lake", scrape=servers.prometheus.url,
    )  # fmt: skip
    code, rows = doctor(config)
    assert code == 2
    assert rows["kafka"][0] == "ok"
    assert rows["source scan"] == (
        "failed", "Topic audited-order does not exist on this cluster, or this user may not "
        f"Describe it. Did you mean {TOPIC}?")  # fmt: skip
    assert rows["source metrics"][0] == "failed"
    assert nowhere in rows["source metrics"][1]
    assert rows[f"alertmanager {nowhere}"][0] == "failed"
    assert rows["source jmx"][0] in ("failed", "warning"), "the page of a server has no metrics"
    assert rows["lake"][0] == "failed"
    assert "/proc/lake cannot be written" in rows["lake"][1]
    state, remark = rows["source logs"]
    assert state == "warning"
    assert "9.0 h before the file was changed" in remark
    assert "Times in it fit UTC+00:00, not Asia/Tokyo" in remark


def test_nothing_answers(servers, tmp_path):
    """A server that takes connections and is silent, as a firewall or a hung process looks."""
    with socket.create_server(("127.0.0.1", 0), backlog=64) as silent:
        address = f"127.0.0.1:{silent.getsockname()[1]}"
        config = settings(
            servers, tmp_path, bootstrap_servers=address,
            prometheus=f"http://{address}", scrape=f"http://{address}",
            alertmanager=f"http://{address}",
        )  # fmt: skip
        code, rows = doctor(config)
    assert code == 2
    failed = {what for what, (state, _) in rows.items() if state == "failed"}
    assert failed == {
        "kafka", "source cluster", "source scan", "source metrics", "source jmx",
        f"alertmanager http://{address}",
    }  # fmt: skip
    assert rows["clock"][0] == "warning"
