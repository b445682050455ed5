"""Several acktrail processes on one lake at the same time, as they run in production."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time
from collections import Counter
from collections.abc import Mapping, Sequence
from datetime import UTC, datetime, timedelta
from pathlib import Path

from acktrail.contracts import TABLES
from acktrail.contracts.bronze import BRONZE
from acktrail.contracts.runs import ALERTS, RUNS
from acktrail.lake import Lake
from acktrail.terminal.output import plain
from tests.integration.test_watch_day import CONFIG, RETRY, spelt

SETTINGS = """\
cluster = "c"
[lake]
uri = "{lake}"
{storage}
[spark]
master = "local[1]"
[[sources]]
kind = "log_files"
name = "{name}"
host = "app"
paths = ["{home}/{name}.log"]
"""
COMPARED = [t for t in TABLES if t.layer in ("silver", "gold") and t.name != "verdict_changes"]


class Drivers:
    """A `watch` on one source; beside it `agent --once` on another, `run` and `check`."""

    def __init__(
        self,
        home: Path,
        lake: Lake,
        storage: str = "",
        environment: Mapping[str, str] | None = None,
    ) -> None:
        self.home, self.lake = home, lake
        self.environment = {**os.environ, **(environment or {})}
        self.began = datetime.now(UTC) - timedelta(seconds=40)
        self.lines: Counter[str] = Counter()
        self.ended: list[tuple[str, int, str]] = []
        for name in ("watched", "collected"):
            settings = SETTINGS.format(lake=lake.uri, home=home, name=name, storage=storage)
            (home / f"{name}.toml").write_text(settings)
            (home / f"{name}.log").write_text(
                CONFIG.format(at=spelt(self.began - timedelta(hours=1)))
            )

    def command(self, config: str, *words: str) -> subprocess.Popen[str]:
        """Start `acktrail` with the settings called *config*; its output goes to a file."""
        number = len(list(self.home.glob("*.out")))
        out = (self.home / f"{number:04d}-{words[0]}.out").open("w+")
        given = [sys.executable, "-m", "acktrail", *words]
        given += ["--config", str(self.home / f"{config}.toml")]
        with out:
            return subprocess.Popen(
                given, stdout=out, stderr=subprocess.STDOUT, env=self.environment, text=True
            )

    def print_lines(self, count: int) -> None:
        """Both producers have retried *count* times more."""
        for name in ("watched", "collected"):
            with (self.home / f"{name}.log").open("a") as out:
                for _ in range(count):
                    self.lines[name] += 1
                    n = self.lines[name]
                    at = self.began + timedelta(seconds=n)
                    out.write(RETRY.format(at=spelt(at), number=n, left=2147483647 - n))

    def round(self, *commands: Sequence[str]) -> list[int]:
        """New lines, then *commands* all at once; how they ended."""
        self.print_lines(3)
        started = [self.command("collected", *words) for words in commands]
        return [process.wait(900) for process in started]

    def said(self) -> str:
        """What every process printed."""
        files = sorted(self.home.glob("*.out"))
        return "\n".join(f"-- {f.name}\n{f.read_text()}" for f in files)


def stop(watch: subprocess.Popen[str]) -> int:
    """SIGTERM, and wait."""
    watch.send_signal(signal.SIGTERM)
    return watch.wait(600)


def wait_for_rows(drivers: Drivers, watch: subprocess.Popen[str], seconds: float = 600) -> None:
    """Until the watch has made its first runs."""
    deadline = time.monotonic() + seconds
    while not drivers.lake.exists(RUNS):
        assert watch.poll() is None, drivers.said()[-3000:]
        assert time.monotonic() < deadline, drivers.said()[-3000:]
        time.sleep(0.5)


def contents(lake: Lake) -> dict[str, list[str]]:
    """The rows of every table that jobs make, in an order of their own."""
    return {t.name: sorted(str(plain(r)) for r in lake.read(t).to_pylist()) for t in COMPARED}


def copied_evidence(lake: Lake, into: Lake) -> Lake:
    """A second lake with the same bronze rows, for one run over all of them."""
    for table in BRONZE:
        into.append(table, lake.read(table))
    return into


def doubled(lake: Lake) -> dict[str, list[tuple[object, ...]]]:
    """Keys that a table has more than once: its grain names one row each."""
    found = {}
    for table in TABLES:
        rows = lake.read(table, columns=list(table.grain)).to_pylist()
        counts = Counter(tuple(str(v) for v in row.values()) for row in rows)
        twice = [key for key, count in counts.items() if count > 1]
        if twice:
            found[table.name] = twice[:3]
    return found


def flapping(lake: Lake) -> list[str]:
    """Alerts that were resolved and opened again, or opened under a second name."""
    rows = lake.read(ALERTS).to_pylist()
    opened = Counter(r["fingerprint"] for r in rows if r["status"] == "open" and r["number"] > 1)
    names: dict[tuple[str, ...], set[str]] = {}
    for row in rows:
        identity = tuple(row[n] or "" for n in ("cluster", "topic", "group", "state", "cause"))
        names.setdefault(identity, set()).add(row["fingerprint"])
    twice = [str(identity) for identity, found in names.items() if len(found) > 1]
    return [*opened, *twice]
