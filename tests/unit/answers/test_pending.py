"""Evidence that waits for a run: counted from the logs of tables, whatever happened to them."""

from __future__ import annotations

import json
import random
from datetime import UTC, datetime, timedelta

import pytest

from acktrail.answers.pending import PendingEvidence, behind, pending_evidence, record_failures
from acktrail.cli.run import Unfinished
from acktrail.contracts.arrow import rows
from acktrail.contracts.bronze import AUDIT_REPORTS, LOG_RECORDS
from acktrail.contracts.gold import LOSS_INCIDENTS, RETRY_BUDGETS
from acktrail.contracts.lineage import inputs_of
from acktrail.contracts.runs import RUN_FAILURES
from acktrail.contracts.silver import PRODUCER_EVENTS
from acktrail.lake import Lake
from acktrail.lake.changes import MOST_COUNTED, unread_since
from acktrail.lake.tables import Change
from expectations.stale import Waiting
from tests.unit.expectations.gold_rows import row

LOGS = frozenset({"log_records"})


@pytest.fixture
def lake(tmp_path):
    return Lake(tmp_path)


def collect(lake, count=1, table=LOG_RECORDS):
    lake.append(table, rows(table, [row(table)] * count))


def ran(lake, table):
    """What a job's commit leaves: the versions of its inputs that it has read."""
    consumed = {t.name: lake.version(t) for t in inputs_of(table) if lake.exists(t)}
    note = json.dumps({"job": table.name, "run": 0, "consumed": consumed})
    lake.put(table, [], Change((), {"userMetadata": note}))


def waiting(lake):
    return {(p.table, p.source): p.rows for p in pending_evidence(lake)}


def test_nothing_waits_in_an_empty_lake(lake):
    assert pending_evidence(lake) == []


@pytest.mark.parametrize("seed", range(5))
def test_rows_since_the_last_run_wait_and_no_others(lake, seed):
    """Any order of collecting, running and compacting."""
    chance = random.Random(seed)
    unread = 0
    collect(lake)
    ran(lake, PRODUCER_EVENTS)
    for _ in range(12):
        step = chance.choice(["collect", "collect", "run", "compact", "positions"])
        if step == "collect":
            count = chance.randint(1, 4)
            collect(lake, count)
            unread += count
        elif step == "run":
            ran(lake, PRODUCER_EVENTS)
            unread = 0
        elif step == "compact" and not unread:  # housekeeping leaves what is unread as it is
            lake.open(LOG_RECORDS).optimize.compact()
        elif step == "positions":
            lake.put(LOG_RECORDS, [], Change())
        assert waiting(lake).get(("producer_events", "log_records"), 0) == unread


def test_what_a_log_no_longer_has_is_not_taken_for_nothing():
    added = [("add", {"path": "a", "stats": '{"numRecords": 5}'})]
    found = unread_since(3, 1, {3: added}.get)
    assert (found.rows, found.counted, found.since) == (5, False, None)
    assert unread_since(3, 1, lambda _: []) is None
    assert unread_since(3, 3, lambda _: added) is None


def test_of_a_very_long_log_only_the_first_commits_are_counted():
    asked = []

    def entry(version):
        asked.append(version)
        return [
            ("add", {"path": str(version), "stats": '{"numRecords": 1}'}),
            ("commitInfo", {"timestamp": 1_700_000_000_000 + version}),
        ]

    found = unread_since(1_000_000, 9, entry)
    assert len(asked) <= MOST_COUNTED + 1
    assert not found.counted
    assert found.since == datetime.fromtimestamp(1_700_000_000.010, UTC)


def test_a_table_lacks_what_waits_anywhere_on_its_line(lake):
    collect(lake)
    ran(lake, PRODUCER_EVENTS)
    collect(lake, 1_205)
    lacks = {p.table: p.rows for p in behind(RETRY_BUDGETS, pending_evidence(lake), LOGS)}
    assert lacks["producer_events"] == 1_205
    assert "coverage" not in lacks
    assert behind(LOSS_INCIDENTS, pending_evidence(lake), frozenset({AUDIT_REPORTS.name})) == []


NOW = datetime(2026, 1, 31, 12, tzinfo=UTC)


def test_a_run_that_failed_on_it_makes_it_overdue_at_once(lake):
    collect(lake)
    before = datetime.now(UTC) - timedelta(hours=1)
    record_failures(lake, {"producer_events": "an older failure"}, before, before)
    assert all(p.failure is None for p in pending_evidence(lake)), "it came after that run"
    record_failures(lake, {"producer_events": "no Java"}, datetime.now(UTC), NOW)
    failed = {p.table: p.failure.error for p in pending_evidence(lake) if p.failure}
    assert failed == {"producer_events": "no Java"}
    assert lake.read(RUN_FAILURES).num_rows == 2
    ran(lake, PRODUCER_EVENTS)
    assert not [p for p in pending_evidence(lake) if p.table == "producer_events"]


def late(seconds, **facts):
    usual = {"table": "producer_events", "source": "log_records", "rows": 1205, "counted": True}
    since = NOW - timedelta(seconds=seconds)
    return PendingEvidence(**{**usual, "since": since, "failure": None, **facts})


def test_what_came_a_moment_ago_is_only_noted():
    fresh = Waiting([late(599)], timedelta(seconds=600), NOW)
    assert fresh.before(RETRY_BUDGETS, "logs") == []
    assert fresh.notes() == [
        "1,205 rows of log_records (since 2026-01-31T11:50:01Z) are not in the answers yet; "
        "the next `acktrail run` reads them."
    ]


def test_what_waits_for_long_makes_the_checks_that_need_it_undecided():
    old = Waiting([late(601), late(601, table="coverage")], timedelta(seconds=600), NOW)
    (found,) = old.before(RETRY_BUDGETS, "logs")
    assert found.because == (
        "1,205 rows of log_records (since 2026-01-31T11:49:59Z) are not in producer_events "
        "and coverage yet. Run `acktrail run`."
    )
    assert old.notes() == []
    assert old.before(LOSS_INCIDENTS, "audits") == [], "logs add causes to losses, not losses"
    assert late(1, since=None).is_overdue(NOW, timedelta(hours=1)), "nobody knows since when"


def test_a_run_that_fails_leaves_word_of_every_job_it_did_not_finish(lake):
    unfinished = Unfinished(lake, ["a", "b", "c"], NOW)
    with unfinished.job("a"):
        pass
    with pytest.raises(ValueError, match="no Java"), unfinished, unfinished.job("b"):
        raise ValueError("no Java")
    kept = {row["job"]: row["error"] for row in lake.read(RUN_FAILURES).to_pylist()}
    assert kept == dict.fromkeys("bc", "b: ValueError: no Java")


def test_a_run_that_succeeds_leaves_none(lake):
    unfinished = Unfinished(lake, ["a"], NOW)
    with unfinished, unfinished.job("a"):
        pass
    assert not lake.exists(RUN_FAILURES)
