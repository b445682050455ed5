"""How sources stand: what an agent writes down, how seldom, and what is read from it."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta

import pytest
from memory_lake import MemoryLake

from acktrail.answers.sources import newest_states
from acktrail.contracts.vocabulary import SourceState
from acktrail.errors import LakeBusy
from acktrail.settings.sources import LogFilesSource, ScrapeSource
from ingest.agent.counters import SourceCounts
from ingest.agent.states import HEARTBEAT_S, WORDS_S, SourcePlace, StateLog, place_of
from ingest.agent.writer import this_process
from ingest.source import Health

PLACES = {"a": SourcePlace("c", "log_files", "h"), "b": SourcePlace("c", "scrape", "")}
START = datetime(2026, 1, 31, 7, 0, tzinfo=UTC)


def sources() -> dict[str, SourceCounts]:
    return {name: SourceCounts(name) for name in PLACES}


HOURS = 6 * 3_600


def test_hours_of_a_source_that_flaps_at_every_poll_are_few_commits():
    lake, counts = MemoryLake(), sources()
    log = StateLog(lake, PLACES, this_process("agent"), 0.0)
    for second in range(HOURS):
        flaps = SourceState.UP if second % 2 else SourceState.FAILING
        counts["a"].stands(flaps, f"attempt {second}")
        counts["b"].stands(SourceState.UP)
        counts["b"].last_commit_at = float(second)
        counts["b"].health = Health(notes=(f"read {second} bytes",))
        log.write_due(counts.values(), float(second))
    assert len(lake.notes) <= HOURS / 30
    of_b = [row for row in lake.rows if row["source"] == "b"]
    assert HOURS / HEARTBEAT_S <= len(of_b) <= HOURS / WORDS_S + HOURS / HEARTBEAT_S + 1


def test_quiet_hours_are_a_heartbeat_every_ten_minutes():
    lake, counts = MemoryLake(), sources()
    log = StateLog(lake, PLACES, this_process("agent"), 0.0)
    for second in range(HOURS):
        for each in counts.values():
            each.stands(SourceState.UP)
            each.last_commit_at = float(second)
        log.write_due(counts.values(), float(second))
    assert len(lake.notes) == HOURS / HEARTBEAT_S


def test_a_lake_that_fails_is_told_again_and_secrets_are_not():
    class Failing(MemoryLake):
        fails = True

        def append(self, *arguments, **named):
            if self.fails:
                raise LakeBusy("busy")
            return super().append(*arguments, **named)

    lake, counts = Failing(), sources()
    log = StateLog(lake, PLACES, this_process("watch"), 0.0)
    counts["a"].stands(SourceState.STOPPED, "sasl.password=hunter2 was refused")
    log.write_due(counts.values(), 2.0)
    lake.fails = False
    log.write_due(counts.values(), 10.0)
    assert not lake.rows, "not at every look"
    log.write_due(counts.values(), 33.0)
    (row,) = lake.rows
    assert row["state"] == "stopped"
    assert row["command"] == "watch"
    assert "hunter2" not in row["error"]


def test_the_end_is_written_down_for_all():
    lake, counts = MemoryLake(), sources()
    counts["a"].stands(SourceState.UP)
    counts["b"].stands(SourceState.FAILING, "away")
    StateLog(lake, PLACES, this_process("agent --once"), 0.0).write_last(counts.values())
    assert {row["source"]: row["state"] for row in lake.rows} == {"a": "ended", "b": "failing"}


def test_files_belong_to_a_host_and_servers_to_none():
    named = LogFilesSource(kind="log_files", name="a", paths=("/x",), host="app-1")
    here = LogFilesSource(kind="log_files", name="a", paths=("/x",), cluster="west")
    server = ScrapeSource(kind="scrape", name="b", targets=("http://h:1/m",))
    assert place_of(named, "c") == SourcePlace("c", "log_files", "app-1")
    assert place_of(here, "c").cluster == "west"
    assert place_of(here, "c").host
    assert place_of(server, "c") == SourcePlace("c", "scrape", "")


def told(*states: str) -> list[dict]:
    """One row a minute; `up!x` is up with the unread path x, `B:up` told by another process."""
    rows = []
    for minute, text in enumerate(states):
        agent, _, said = text.rpartition(":")
        state, _, unread = said.partition("!")
        rows.append(
            {
                "cluster": "c",
                "source": "s",
                "host": "",
                "agent": agent or "A",
                "at": START + timedelta(minutes=minute),
                "state": state,
                "unread": [unread] if unread else [],
            }
        )
    return rows


NEWEST = [
    # rows, minute by minute                     -> state, since minute, unread since minute
    (("up", "up", "up"), "up", 0, None),
    (("up", "failing", "stopped"), "stopped", 1, None),
    (("failing", "up", "failing"), "failing", 2, None),
    (("up", "B:held", "B:held"), "up", 0, None),
    (("up", "B:up", "B:ended"), "up", 0, None),
    (("up", "B:up", "ended", "B:ended"), "ended", 0, None),
    (("failing", "B:ended"), "ended", 1, None),
    (("up", *["B:ended"] * 32), "ended", 0, None),
    (("held", "held"), "held", 0, None),
    (("failing", "B:held", "failing"), "failing", 0, None),
    (("up", "up!x", "ended!x", "up!x"), "up", 0, 1),
    (("up!x", "up", "up!x"), "up", 0, 2),
    (("up!x", "up!y"), "up", 0, 1),
    (("up!x", "failing!x"), "failing", 1, 0),
]


@pytest.mark.parametrize(("states", "state", "since", "unread"), NEWEST, ids=str)
def test_the_newest_word_counts_and_since_when_it_is_so(states, state, since, unread):
    (row,) = newest_states(reversed(told(*states)))
    assert row["state"] == state
    assert row["state_since_at"] == START + timedelta(minutes=since)
    expected = None if unread is None else START + timedelta(minutes=unread)
    assert row["unread_since_at"] == expected
