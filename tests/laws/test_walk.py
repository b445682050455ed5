"""The two walks of ARCHITECTURE.md are the ones that a log line and an audit row really take.

Both go through the real agent and commands, the real runner, and the functions that Spark's tasks
call, to a receiver on loopback and to the answer of `acktrail losses`. What passes them is looked
at while they run (`passing.py`), so a walk can neither leave a file out nor name a step that is
none. What Spark's SQL does between two tasks is done here in Python.
"""

from __future__ import annotations

import json
import re
import threading
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from http.server import BaseHTTPRequestHandler, HTTPServer
from pathlib import Path
from types import SimpleNamespace
from typing import Any, ClassVar

import pyarrow as pa
import pytest
from click.testing import CliRunner

from acktrail.aliases import Aliases
from acktrail.audit.incidents import KIND
from acktrail.cli import main
from acktrail.contracts import Table
from acktrail.contracts.bronze import LOG_RECORDS
from acktrail.contracts.gold import DELIVERY_LEDGER, LOSS_EVENTS, LOSS_INCIDENTS, RETRY_BUDGETS
from acktrail.contracts.silver import AUDIT_BLOCKS, AUDIT_PARTS, PRODUCER_EVENTS
from acktrail.lake import Lake
from acktrail.retries.client_budgets import EVENT, Leaders
from acktrail.settings.sources import LogFilesSource
from ingest.agent.loop import Agent
from ingest.registry import SourceContext
from ingest.sources.log_files import LogFiles
from pipelines import runner
from pipelines.gold import delivery_ledger, loss_events, loss_incidents, retry_budgets
from pipelines.job import Fold, Job, Options
from pipelines.registry import JOBS
from pipelines.silver import audit_blocks
from tests.laws.passing import ROOT, Passed, passed_by

PACKAGES = ("acktrail", "ingest", "pipelines", "expectations")
LEFT_OUT = ("acktrail/contracts/", "acktrail/lake/", "acktrail/settings/", "acktrail/terminal/")
"""What is behind `Lake`, and how results are printed: the page says so."""
OF_SPARK = {"budget_retries"}
"""A step that only plans what Spark's tasks do; the tasks' own functions are called here."""
AT = datetime(2026, 1, 31, 7, 0, tzinfo=UTC)
TOPIC, AUDITED = "orders-of-the-walk", "payments-of-the-walk"
TOPIC_ID = "ToKnowTheAuditedTopicA"
SESSION = "session-of-the-walk"
FIRST = 20_260
"""The first message's id."""
SENTENCE = (
    "[Producer clientId=p1] Got error produce response with correlation id 41 on topic-partition "
    f"{TOPIC}-%d, retrying (1 attempts left). Error: NOT_ENOUGH_REPLICAS"
)
SENDER = "org.apache.kafka.clients.producer.internals.Sender"
STOCK = f"[{AT:%Y-%m-%d %H:%M:%S},000] WARN {SENTENCE % 3} ({SENDER})\n"
OTHER = f"{AT:%Y-%m-%dT%H:%M:%S}.000Z WARN [main] {SENTENCE % 4}\n"


@dataclass(frozen=True)
class Step:
    """A link of a walk; one in italics decides something, and need not give the value on."""

    name: str
    file: str
    decides: bool


def steps(first: str, behind: str) -> list[Step]:
    """The links in the table between two texts of the page."""
    page = (ROOT / "ARCHITECTURE.md").read_text()
    table = page[page.index(first) : page.index(behind)]
    links = re.findall(r"(\*?)\[`([\w.]+)`\]\(([\w/.]+\.py)\)", table)
    return [Step(name, file, bool(star)) for star, name, file in links]


LINE = steps("**A log line", "**An audit row")
ROW = steps("**An audit row", "## The lake")


def is_met(step: Step, seen: Passed) -> bool:
    """Whether the value passed *step*: a function, or a class by a method or an object."""

    def named(functions: set[tuple[str, str]]) -> bool:
        return any(
            file == step.file and (name == step.name or name.startswith(f"{step.name}."))
            for file, name in functions
        )

    if step.name.isupper():
        return True  # a constant: that it is there is seen elsewhere (test_house.py)
    if named(seen.passing | seen.around | seen.kinds):
        return True
    return step.decides and named(seen.called)


def check(walk: list[Step], seen: Passed) -> None:
    passed = {file for file, _ in seen.passing if not file.startswith(LEFT_OUT)}
    assert len(passed) > 20, "the profile saw the way"
    unnamed = passed - {step.file for step in walk}
    assert not unnamed, f"name these, or take them off the way: {sorted(unnamed)}"
    strange = [s for s in walk if s.name not in OF_SPARK and not is_met(s, seen)]
    assert not strange, f"it does not pass here: {strange}"


class Receiver(BaseHTTPRequestHandler):
    """Takes every alert, as a webhook and as Alertmanager."""

    taken: ClassVar[dict[str, bytes]] = {}

    def do_POST(self) -> None:
        self.taken[self.path] = self.rfile.read(int(self.headers["Content-Length"]))
        self.send_response(200)
        self.end_headers()

    def log_message(self, *_: Any) -> None:
        return


@pytest.fixture
def receiver() -> Iterator[str]:
    server = HTTPServer(("127.0.0.1", 0), Receiver)
    threading.Thread(target=server.serve_forever, daemon=True).start()
    yield f"http://127.0.0.1:{server.server_port}"
    server.shutdown()
    server.server_close()


class OneTask:
    """In Spark's place for a map: its one task, run here."""

    sparkContext = SimpleNamespace(defaultParallelism=1)

    def range(self, *_: int) -> OneTask:
        return self

    def mapInArrow(self, task: Callable[[Any], Any], _: str) -> OneTask:
        numbers = pa.RecordBatch.from_pydict({"id": pa.array([0], pa.int64())})
        self._reports = [row for batch in task([numbers]) for row in batch.to_pylist()]
        return self

    def collect(self) -> list[Any]:
        return self._reports


def job_of(table: Table) -> Job:
    return next(job for job in JOBS if job.name == table.name)


def run_map(lake: Lake, table: Table) -> None:
    runner.run(job_of(table), lake, OneTask, AT)  # type: ignore[arg-type]


def fold(lake: Lake, table: Table, task: Callable[[Any], Any], rows: list[dict[str, Any]]) -> None:
    """What is to be recomputed, then the job's task on *rows*, as its SQL would give them."""
    job = job_of(table)
    assert isinstance(job, Fold)
    plan = runner._plan(job, lake)
    keys, *_ = runner._to_recompute(job, lake, plan, Options(), None)
    assert keys is None or keys, "something is to be recomputed"
    made = pa.Table.from_batches(task(iter([pa.RecordBatch.from_pylist(rows)])))
    assert made.num_rows
    lake.append(table, made)


def collect(lake: Lake, logs: Path) -> None:
    settings = LogFilesSource(kind="log_files", name="app", paths=(f"{logs}/*.log",), host="h")
    Agent(lake, [LogFiles(settings, SourceContext("c", once=True))], once=True).run()


def budgets(lake: Lake) -> None:
    evidence = []
    for event in lake.read(PRODUCER_EVENTS).to_pylist():
        origin = event["record_key"].rpartition("/")[0]
        tagged = {"tag": EVENT, "client": event["client_id"], "opened_hour": event["hour"]}
        row = {name: event.get(name) for name in retry_budgets._COLUMNS}
        evidence.append({**row, **tagged, "key": event["event_key"], "origin": origin})
    fold(lake, RETRY_BUDGETS, retry_budgets._rules({}, Leaders()), evidence)


def test_the_walk_of_a_log_line(tmp_path: Path, receiver: str) -> None:
    (tmp_path / "logs").mkdir()
    (tmp_path / "logs" / "app.log").write_text(STOCK + OTHER)
    lake = Lake(tmp_path / "lake")
    words = ["check", "--lake", lake.uri, "--as-of", (AT + timedelta(seconds=5)).isoformat()]
    words += ["--set", f"alerts.webhook_url={receiver}/hook"]
    words += ["--set", f"alerts.alertmanager_urls={receiver}"]
    with passed_by((TOPIC,), PACKAGES) as seen:
        collect(lake, tmp_path / "logs")
        run_map(lake, PRODUCER_EVENTS)
        budgets(lake)
        done = CliRunner().invoke(main, words)
    assert lake.read(LOG_RECORDS).num_rows == 2, "one is read by column, one by the reader"
    assert lake.read(RETRY_BUDGETS).num_rows == 2
    assert len(Receiver.taken) == 2, done.output
    assert all(TOPIC.encode() in body for body in Receiver.taken.values())
    check(LINE, seen)


def messages() -> Iterator[dict[str, Any]]:
    """Ten messages: one was too large for the client, one is stored nowhere, one not received."""
    for n in range(10):
        at = int(AT.timestamp() * 1000) + n
        one = {"session": SESSION, "topic": AUDITED, "seq": FIRST + n}
        yield {**one, "tier": "sent", "time": at, "client_id": "p"}
        if n == 4:
            error = "RecordTooLargeException(client)"
            yield {**one, "tier": "failed", "time": at + 60_000, "error": error}
            continue
        place = {**one, "partition": 0, "offset": 100 + n, "topic_id": TOPIC_ID}
        yield {**place, "tier": "acked", "time": at + 5}
        if n != 5:
            yield {**place, "tier": "in_log", "time": at + 9, "leader_epoch": 0}
        if n not in (5, 7):
            yield {**place, "tier": "delivered", "group": "g", "time": at + 9}


def ledger(lake: Lake) -> None:
    """With a scan of the whole log, under another leader, that began when all had been received."""
    blocks = [{**row, "kind": "block"} for row in lake.read(AUDIT_BLOCKS).to_pylist()]
    parts = lake.read(AUDIT_PARTS).to_pylist()
    heard = max(part["received_ms"] for part in parts)
    for part in (part for row in blocks if row["tier"] == "in_log" for part in row["parts"]):
        part["received_ms"] = heard + 3  # it came with the scan
    scan = {
        "kind": "scanned", "partition": 0, "first_offset": 0, "last_offset": 200, "number": 1,
        "part": 0, "records": 201, "closed": False, "leader_epoch": 1, "reporter": "scan",
        "topic_id": TOPIC_ID, "began_ms": heard + 1, "ended_ms": heard + 2,
        "after_ms": heard + 1, "received_ms": heard + 3,
    }  # fmt: skip
    policy = {"kind": "policy", "compacted": False, "at_ms": 0}
    place = {"session": "", "cluster": "c", "topic": AUDITED}
    ranges = [{**p, "kind": "consumed"} for p in parts if p["tier"] == "consumed"]
    known = [{**row, **place} for row in (scan, policy, *ranges)]
    beats = [{**p, "kind": "heartbeat"} for p in parts if p["tier"] == "heartbeat"]
    names = (*delivery_ledger._COLUMNS, "slice")
    rows = [{name: row.get(name) for name in names} for row in known + blocks + beats]
    task = delivery_ledger.account_sessions
    fold(lake, DELIVERY_LEDGER, lambda batches: task(batches, Aliases(())), rows)


def losses(lake: Lake) -> None:
    rows = [row for row in lake.read(DELIVERY_LEDGER).to_pylist() if row["findings"]]
    rows = [{**row, "rank": 1, "kind": "account", "printed": None} for row in rows]
    wanted = (*loss_events._COLUMNS, "rank")
    shaped = [{name: row.get(name) for name in wanted} for row in rows]
    fold(lake, LOSS_EVENTS, loss_events.explain_topics, shaped)
    found = lake.read(LOSS_EVENTS).to_pylist()
    for row in found:
        for column, ms in (("first_at", "first_ms"), ("last_at", "last_ms")):
            row[ms] = int(row[column].timestamp() * 1000)
    assert set(KIND) <= found[0].keys()
    fold(lake, LOSS_INCIDENTS, loss_incidents.name_incidents, found)


def test_the_walk_of_an_audit_row(tmp_path: Path) -> None:
    file, lake = tmp_path / "audits.jsonl", Lake(tmp_path / "lake")
    file.write_text("".join(f"{json.dumps(row)}\n" for row in messages()))
    asked = ["--lake", lake.uri, "--set", "cluster=c"]
    with passed_by((AUDITED, TOPIC_ID, SESSION, f"{FIRST + 5}"), PACKAGES) as seen:
        taken = CliRunner().invoke(main, ["ingest", "audits", str(file), *asked])
        run_map(lake, AUDIT_PARTS)
        parts = [p for p in lake.read(AUDIT_PARTS).to_pylist() if p["block"] >= 0]
        parts.sort(key=lambda p: [str(p[name]) for name in AUDIT_BLOCKS.grain])
        fold(lake, AUDIT_BLOCKS, audit_blocks.fold_blocks, parts)
        ledger(lake)
        losses(lake)
        answer = CliRunner().invoke(main, ["losses", *asked, "--format", "json"])
    assert taken.exit_code == 0, taken.output
    assert AUDITED in answer.output, answer.output
    assert '"record_too_large"' in answer.output
    assert answer.output.count('"lost_after_ack"') == 1
    check(ROW, seen)
