"""`acktrail watch` as its users run it: it lives beside dead sources, and stops clean."""

from __future__ import annotations

import signal
import subprocess
import sys
import time
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest

from acktrail.contracts.bronze import LOG_RECORDS
from acktrail.contracts.gold import RETRY_BUDGETS
from acktrail.lake import Lake
from lab.scratch import free_ports
from tests.integration.process_list import process_list
from tests.integration.test_watch_day import CONFIG, RETRY, spelt

SETTINGS = """\
cluster = "c"
[alerts]
webhook_url = "http://127.0.0.1:{port}/hook"
webhook_secret = "{secret}"
give_up_s = 0
[lake]
uri = "{home}/lake"
[spark]
master = "local[1]"
[[sources]]
kind = "prometheus"
name = "dead"
url = "http://127.0.0.1:{port}"
bearer_token = "{secret}"
[[sources]]
kind = "log_files"
name = "pay"
host = "app"
paths = ["{home}/pay.log"]
"""
SECRET = "hunter2-is-not-it"


class Refused:
    """A producer whose batch is refused every second, since a while ago."""

    def __init__(self, log: Path) -> None:
        self.log = log
        self.began = datetime.now(UTC) - timedelta(seconds=40)
        self.lines = 0
        log.write_text(CONFIG.format(at=spelt(self.began - timedelta(hours=1))))

    def go_on(self) -> None:
        """Print the lines that are due."""
        with self.log.open("a") as out:
            while (at := self.began + timedelta(seconds=self.lines)) < datetime.now(UTC):
                self.lines += 1
                left = 2147483647 - self.lines
                out.write(RETRY.format(at=spelt(at), number=self.lines, left=left))


@pytest.mark.timeout(600)
def test_it_warns_beside_a_dead_source_and_sigterm_stops_it_clean(tmp_path):
    (port,) = free_ports(1)
    config = tmp_path / "acktrail.toml"
    config.write_text(SETTINGS.format(home=tmp_path, port=port, secret=SECRET))
    producer = Refused(tmp_path / "pay.log")
    out, err = tmp_path / "out", tmp_path / "err"
    words = [sys.executable, "-m", "acktrail", "watch", "--config", str(config), "--every", "2"]
    with out.open("w") as stdout, err.open("w") as stderr:
        watch = subprocess.Popen(words, stdout=stdout, stderr=stderr)
    try:
        deadline = time.monotonic() + 300
        while "open  page  pay retries" not in out.read_text() or "dead" not in err.read_text():
            assert watch.poll() is None, err.read_text()[-2000:]
            assert time.monotonic() < deadline
            producer.go_on()
            time.sleep(0.5)
        seen = process_list(watch.pid)
        watch.send_signal(signal.SIGTERM)
        assert watch.wait(120) == 0, err.read_text()[-2000:]
    finally:
        watch.kill()
        watch.wait()
    said = err.read_text()
    assert any("SparkSubmit" in line for line in seen), "the JVM is one of them"
    assert SECRET not in " ".join([*seen, said, out.read_text()])
    assert "Traceback" not in said
    lake = Lake(tmp_path / "lake")
    positions = [r["position"] for r in lake.read(LOG_RECORDS).to_pylist()]
    assert len(positions) == len(set(positions)) > 40, "every record once"
    assert lake.read(RETRY_BUDGETS).num_rows == 1
