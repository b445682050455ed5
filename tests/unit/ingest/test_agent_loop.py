"""The loop: rows and positions together, dead sources retried apart, every record accounted for."""

from __future__ import annotations

import subprocess
import sys
import threading
import time
import urllib.request
from dataclasses import replace

import pytest
from memory_lake import MemoryLake

from acktrail.contracts.arrow import no_rows
from acktrail.contracts.bronze import LOG_RECORDS
from acktrail.contracts.vocabulary import SourceState
from acktrail.errors import (
    AcktrailError,
    ConfigError,
    LakeBusy,
    SourceHeld,
    SourceUnavailable,
    TransientError,
)
from acktrail.lake import Position
from ingest.agent.counters import SourceCounts, commit_note
from ingest.agent.loop import Agent
from ingest.agent.own_metrics import AgentMetrics
from ingest.agent.reading import Pace
from ingest.agent.writer import Writer
from ingest.source import Batch, Health

QUICK = Pace(flush_s=0.01, poll_s=0.005, first_pause_s=0.005)


class Numbers:
    """A source whose position is a count; gives *count* batches of 3 received, all dropped."""

    def __init__(self, name: str, count: int = 5, fails_at: dict[int, Exception] | None = None):
        self.name = name
        self.count = count
        self.fails_at = fails_at or {}
        self.opened = self.closed = 0

    def open(self, lake) -> None:
        self.opened += 1
        self.at = lake.position(LOG_RECORDS, self.name)

    def poll(self, _timeout_s):
        while (self.at or 0) < self.count:
            error = self.fails_at.pop(self.at or 0, None)
            if error is not None:
                raise error
            began, self.at = self.at, (self.at or 0) + 1
            move = Position(self.name, began, self.at)
            yield Batch(LOG_RECORDS, no_rows(LOG_RECORDS), (move,), 3, {"not_evidence": 3})

    def committed(self, batch) -> None: ...

    def health(self):
        return Health(float(self.count - (self.at or 0)), "numbers")

    def close(self) -> None:
        self.closed += 1


class FlakyLake(MemoryLake):
    """Fails now and then, sometimes after the commit was made all the same."""

    def __init__(self, *failures: str) -> None:
        super().__init__()
        self.failures = list(failures)

    def append(self, *arguments, **named):
        failure = self.failures.pop(0) if self.failures else ""
        if failure == "before":
            raise LakeBusy("busy")
        version = super().append(*arguments, **named)
        if failure == "after":
            raise SourceUnavailable("no answer")
        return version


def test_once_reads_everything_and_balances():
    lake = MemoryLake()
    agent = Agent(lake, [Numbers("a"), Numbers("b", 7)], QUICK, once=True)
    agent.run()
    assert lake.moved == {"a": 5, "b": 7}
    assert agent.counts["b"].received == 21
    assert all(counts.balances for counts in agent.counts.values())


@pytest.mark.parametrize("failures", [("before",), ("after",), ("before", "after", "before")])
def test_a_lake_that_fails_for_a_while_loses_and_doubles_nothing(failures):
    lake = FlakyLake(*failures)
    agent = Agent(lake, [Numbers("a")], QUICK)
    _run_until(agent, lambda: agent.counts["a"].received == 15)
    assert lake.moved == {"a": 5}
    assert agent.counts["a"].balances


@pytest.mark.parametrize("error", [SourceUnavailable("away"), ValueError("a bug")], ids=str)
def test_a_source_that_dies_is_opened_again_and_others_go_on(error):
    lake = MemoryLake()
    dying = Numbers("a", fails_at={2: error, 3: error})
    agent = Agent(lake, [dying, Numbers("b")], QUICK)
    _run_until(agent, lambda: lake.moved.get("a") == 5 and lake.moved.get("b") == 5)
    assert dying.opened == dying.closed == 3
    assert agent.counts["a"].failures[type(error).__name__] == 2


def test_a_source_that_cannot_be_closed_is_opened_again(caplog):
    lake = MemoryLake()
    dying = Numbers("a", fails_at={2: SourceUnavailable("away")})
    dying.close = lambda: (_ for _ in ()).throw(OSError("the connection is gone"))
    agent = Agent(lake, [dying], QUICK)
    _run_until(agent, lambda: lake.moved.get("a") == 5)
    assert dying.opened == 2
    assert "a: could not be closed: the connection is gone" in caplog.text


def test_what_is_in_the_lake_is_not_committed_again_by_a_source_that_fails_then():
    lake, source = MemoryLake(), Numbers("a", 1)
    committed: list[Batch] = []

    def fail_once(batch: Batch) -> None:
        committed.append(batch)
        if len(committed) == 1:
            raise ValueError("a bug")

    source.committed = fail_once
    agent = Agent(lake, [source], QUICK, once=True)
    agent.run()
    assert len(committed) == 1, "nothing was committed a second time"
    assert (agent.counts["a"].received, agent.counts["a"].balances) == (3, True)


def test_once_gives_up_on_a_dead_source_after_the_others_are_done():
    lake = MemoryLake()
    dead = Numbers("a")
    dead.poll = lambda _timeout_s: (_ for _ in ()).throw(SourceUnavailable("away"))
    agent = Agent(lake, [dead, Numbers("b")], QUICK, once=True)
    with pytest.raises(TransientError, match="away"):
        agent.run()
    assert lake.moved == {"b": 5}


OTHER = Writer("db-7", 4711, "watch", "2026-01-31T07:00:00.000Z")
LATER = Writer("db-8", 4712, "agent --once", "2099-01-31T07:00:00.000Z")


def overtaken(lake, source, times: int, writer: Writer | None):
    """*source*, with a process that commits one number between its opening and its commit."""
    real_open = source.open

    def open_and_be_overtaken(opened) -> None:
        nonlocal times
        real_open(opened)
        if times:
            times -= 1
            began = lake.moved.get(source.name)
            note = commit_note(source.name, 3, 0, {}, writer.note() if writer else None)
            move = Position(source.name, began, (began or 0) + 1)
            lake.append(LOG_RECORDS, no_rows(LOG_RECORDS), (move,), note)

    source.open = open_and_be_overtaken
    return source


@pytest.mark.parametrize("once", [True, False], ids=["once", "running"])
@pytest.mark.parametrize(
    ("times", "writer"),
    [(2, OTHER), (2, None), (7, LATER)],
    ids=["twice", "twice by one without a name", "by one that started later"],
)
def test_who_lost_a_race_reads_on_from_where_the_other_came_to(once, times, writer):
    lake = MemoryLake()
    source = overtaken(lake, Numbers("a", 9), times, writer)
    agent = Agent(lake, [source], QUICK, once=once)
    if once:
        agent.run()
    else:
        _run_until(agent, lambda: lake.moved.get("a") == 9)
    assert lake.moved == {"a": 9}
    assert agent.counts["a"].received == 3 * (9 - times), "each number by one of the two"
    assert agent.counts["a"].failures == {"PositionConflict": times}


def test_a_run_once_beside_a_steady_writer_names_it_and_is_to_be_run_again():
    lake = MemoryLake()
    agent = Agent(lake, [overtaken(lake, Numbers("a", 99), 99, OTHER)], QUICK, once=True)
    with pytest.raises(
        SourceHeld, match="`acktrail watch` on db-7, process 4711, since 2026-01-31"
    ):
        agent.run()
    assert SourceHeld.exit_code == 75
    assert agent.counts["a"].state is SourceState.HELD
    assert lake.moved == {"a": 3}, "only the other has written"


def test_an_agent_beside_a_steady_writer_waits_and_goes_on_when_that_one_is_gone(monkeypatch):
    lake, seen = MemoryLake(), []
    real = SourceCounts.stands

    def stands(counts, state, error="") -> None:
        seen.append((counts.source, state))
        real(counts, state, error)

    monkeypatch.setattr(SourceCounts, "stands", stands)
    pace = replace(QUICK, held_s=0.05, held_quiet_s=0.0)
    agent = Agent(lake, [overtaken(lake, Numbers("a", 9), 3, OTHER), Numbers("b")], pace)
    _run_until(agent, lambda: lake.moved == {"a": 9, "b": 5})
    assert ("a", SourceState.HELD) in seen
    assert ("b", SourceState.HELD) not in seen, "the other source goes on"
    assert seen.index(("a", SourceState.HELD)) < len(seen) - 1 - seen[::-1].index(
        ("a", SourceState.UP)
    )


@pytest.mark.parametrize(
    ("error", "code", "state"),
    [
        (ConfigError("no right"), 2, SourceState.STOPPED),
        (SourceUnavailable("away"), 75, SourceState.FAILING),
        (ValueError("a bug"), 75, SourceState.FAILING),
    ],
    ids=str,
)
def test_the_exit_code_and_the_state_of_a_failed_source_agree(error, code, state, caplog):
    dead = Numbers("a")
    dead.poll = lambda _timeout_s: (_ for _ in ()).throw(error)
    agent = Agent(MemoryLake(), [dead], QUICK, once=True)
    with pytest.raises(AcktrailError) as raised:
        agent.run()
    assert raised.value.exit_code == code
    assert "stopped" not in caplog.text, "that would mean that trying again cannot help"
    assert agent.counts["a"].state is state


def test_what_a_source_gave_before_it_failed_is_committed():
    lake = MemoryLake()
    dying = Numbers("a", fails_at={2: ConfigError("no right")})
    with pytest.raises(ConfigError):
        Agent(lake, [dying], Pace(flush_s=3_600, poll_s=0.005), once=True).run()
    assert lake.moved == {"a": 2}


def test_stop_commits_what_was_polled():
    lake = MemoryLake()
    agent = Agent(lake, [Numbers("a")], Pace(flush_s=3_600, poll_s=0.005))
    thread = threading.Thread(target=agent.run)
    thread.start()
    time.sleep(0.05)
    agent.stop()
    thread.join(10)
    assert lake.moved == {"a": 5}
    assert agent.counts["a"].commits == 1


def test_metrics_say_what_the_counts_say():
    from prometheus_client import CollectorRegistry, generate_latest

    agent = Agent(MemoryLake(), [Numbers("a")], QUICK, once=True)
    agent.run()
    registry = CollectorRegistry()
    registry.register(AgentMetrics(agent.counts.values()))
    text = generate_latest(registry).decode()
    assert 'acktrail_agent_received_total{source="a"} 15.0' in text
    assert 'acktrail_agent_dropped_total{reason="not_evidence",source="a"} 15.0' in text
    assert 'acktrail_agent_written_total{source="a"} 0.0' in text
    assert 'acktrail_agent_lag{source="a",unit="numbers"} 0.0' in text


_CONFIG = """
[lake]
uri = "{folder}/lake"
[agent]
flush_s = 0.05
{more}
[[sources]]
kind = "log_files"
name = "app"
paths = ["{folder}/app.log"]
"""


def test_an_agent_loads_neither_spark_nor_pandas(tmp_path):
    (tmp_path / "acktrail.toml").write_text(_CONFIG.format(folder=tmp_path, more=""))
    (tmp_path / "app.log").write_text("WARN Got error produce response\n")
    script = (
        "import sys; from acktrail.cli import main\n"
        f"main(['agent', '--once', '--config', {str(tmp_path / 'acktrail.toml')!r}], "
        "standalone_mode=False)\n"
        "print(sorted({'pyspark', 'pandas', 'great_expectations'} & set(sys.modules)))"
    )
    ran = subprocess.run(
        [sys.executable, "-c", script], capture_output=True, text=True, check=True, timeout=120
    )
    assert ran.stdout.strip() == "[]"
    assert "app: 1 received = 1 written + 0 dropped" in ran.stderr


def test_a_running_agent_serves_metrics_and_stops_cleanly(tmp_path):
    with _free_port() as port:
        more = f'metrics_address = "127.0.0.1:{port}"'
    (tmp_path / "acktrail.toml").write_text(_CONFIG.format(folder=tmp_path, more=more))
    (tmp_path / "app.log").write_text("WARN Got error produce response\nINFO next\n")
    command = [sys.executable, "-m", "acktrail", "agent", "--config"]
    agent = subprocess.Popen(
        [*command, str(tmp_path / "acktrail.toml")], stderr=subprocess.PIPE, text=True
    )
    try:
        wanted = 'acktrail_agent_written_total{source="app"} 1.0'
        until = time.monotonic() + 60
        while wanted not in _metrics(port):
            assert time.monotonic() < until
            assert agent.poll() is None
            time.sleep(0.1)
    finally:
        agent.terminate()
        said = agent.communicate(timeout=30)[1]
    assert agent.returncode == 0
    assert "= 1 written + " in said  # the last line may still wait for its successor


def _metrics(port: int) -> str:
    try:
        with urllib.request.urlopen(f"http://127.0.0.1:{port}/metrics", timeout=5) as answer:
            return answer.read().decode()
    except OSError:
        return ""


class _free_port:
    def __enter__(self) -> int:
        import socket

        with socket.socket() as probe:
            probe.bind(("127.0.0.1", 0))
            return int(probe.getsockname()[1])

    def __exit__(self, *_error: object) -> None: ...


def _run_until(agent: Agent, done) -> None:
    thread = threading.Thread(target=agent.run)
    thread.start()
    until = time.monotonic() + 20
    while not done() and time.monotonic() < until:
        time.sleep(0.005)
    agent.stop()
    thread.join(10)
    assert done()
