"""`acktrail watch` over simulated time: rounds stay as long as they were, and memory as large.

Each round is minutes of simulated time: lines with that time are written to a real log file, the
real agent reads them, and the real jobs and checks run. With ACKTRAIL_SOAK set it is a whole day.
"""

from __future__ import annotations

import json
import os
from collections.abc import Iterator
from datetime import UTC, datetime, timedelta
from pathlib import Path
from statistics import median

from acktrail.cli.watch import SMALL_JOBS, round_of
from acktrail.contracts.gold import RETRY_BUDGETS
from acktrail.lake import Lake
from acktrail.operate.watch_loop import Watch
from acktrail.settings import load
from acktrail.settings.sources import LogFilesSource
from ingest.agent.loop import Agent
from ingest.registry import SourceContext, build_source
from pipelines.registry import jobs_named

SOAK = bool(os.environ.get("ACKTRAIL_SOAK"))
ROUNDS = 288 if SOAK else 3
STEP = timedelta(minutes=5)
BEGIN = datetime(2026, 1, 31, 6, tzinfo=UTC)

CONFIG = """\
[{at}] INFO ProducerConfig values: 
\tacks = -1
\tclient.id = pay
\tdelivery.timeout.ms = 120000
\tlinger.ms = 5
\trequest.timeout.ms = 30000
\tretries = 2147483647
\tretry.backoff.max.ms = 1000
\tretry.backoff.ms = 100
 (org.apache.kafka.clients.producer.ProducerConfig)
"""
RETRY = (
    "[{at}] WARN [Producer clientId=pay] Got error produce response with correlation id {number} "
    "on topic-partition pay-0, retrying ({left} attempts left). Error: NOT_ENOUGH_REPLICAS "
    "(org.apache.kafka.clients.producer.internals.Sender)\n"
)


def spelt(at: datetime) -> str:
    return at.strftime("%Y-%m-%d %H:%M:%S,") + f"{at.microsecond // 1000:03d}"


class Simulated:
    """A producer whose batches are refused for a minute of each step; and the agent that reads."""

    def __init__(self, home: Path, lake: Lake) -> None:
        self.log = home / "pay.log"
        self.lake = lake
        self.number = 0
        self.log.write_text(CONFIG.format(at=spelt(BEGIN)))

    def round(self, until: datetime) -> None:
        with self.log.open("a") as out:
            for second in range(60):
                self.number += 1
                at = until - timedelta(seconds=60 - second)
                left = 2147483647 - 1 - second
                out.write(RETRY.format(at=spelt(at), number=self.number, left=left))
        source = LogFilesSource(kind="log_files", name="pay", host="app", paths=(str(self.log),))
        built = build_source(source, SourceContext("c", load(environment={}).settings.kafka, True))
        Agent(self.lake, [built], once=True).run()


def tree() -> Iterator[int]:
    """This process, the JVM and its workers."""
    children: dict[int, list[int]] = {}
    for pid in (int(name) for name in os.listdir("/proc") if name.isdigit()):
        try:
            parent = int(Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[1])
        except OSError:
            continue
        children.setdefault(parent, []).append(pid)
    left = [os.getpid()]
    while left:
        pid = left.pop()
        yield pid
        left += children.get(pid, [])


def cpu_and_memory() -> tuple[float, float]:
    """CPU seconds used so far, and megabytes held now: what a busy neighbour does not change."""
    ticks, pages = 0, 0
    for pid in tree():
        try:
            stat = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
        except OSError:
            continue
        ticks += sum(map(int, stat[11:15]))
        pages += int(stat[21])
    return ticks / os.sysconf("SC_CLK_TCK"), pages * os.sysconf("SC_PAGE_SIZE") / 2**20


def test_a_day_of_rounds(spark, tmp_path, capsys):
    lake = Lake(tmp_path / "lake")
    loaded = load(environment={})
    jobs = jobs_named(SMALL_JOBS)
    now = BEGIN
    steps = round_of(jobs, lake, lambda: spark, loaded, lambda: now)
    watch = Watch(steps, 5, lambda: now)
    producer = Simulated(tmp_path, lake)
    rounds = []
    for number in range(1, ROUNDS + 1):
        now = BEGIN + number * STEP
        producer.round(now)
        before, _ = cpu_and_memory()
        tick = watch.tick()
        assert tick.again == ()
        assert "retry_budgets" in tick.done
        after, megabytes = cpu_and_memory()
        rounds.append({"seconds": tick.seconds, "cpu_s": after - before, "mb": megabytes})
        (tmp_path / "rounds.json").write_text(json.dumps(rounds))
    assert lake.read(RETRY_BUDGETS).num_rows == ROUNDS
    assert "open  page  pay retries" in capsys.readouterr().out
    if SOAK:
        tenth = ROUNDS // 10
        early, late = rounds[tenth : 2 * tenth], rounds[-tenth:]
        assert median(r["cpu_s"] for r in late) <= 1.3 * median(r["cpu_s"] for r in early)
        assert median(r["mb"] for r in late) <= median(r["mb"] for r in early) + 150
