"""Small files are put together, and no job has to make its table anew for it."""

from __future__ import annotations

from collections import Counter
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest

from acktrail.contracts.arrow import rows
from acktrail.contracts.bronze import LOG_RECORDS
from acktrail.contracts.runs import COVERAGE, RUNS
from acktrail.contracts.silver import BROKER_EVENTS, PRODUCER_EVENTS
from acktrail.lake import Lake, housekeeping
from acktrail.operate.watch_upkeep import UpkeepStep
from pipelines import runner, upkeep
from pipelines.registry import JOBS, jobs_named

NOW = datetime(2026, 1, 31, 12, tzinfo=UTC)
READERS = jobs_named(("producer_events", "broker_events"))
RETRY = (
    "[2026-01-31 {hour:02d}:00:00,000] WARN [Producer clientId=p] Got error produce response with "
    "correlation id 1 on topic-partition t-0, retrying (3 attempts left). Error: "
    "NOT_ENOUGH_REPLICAS (org.apache.kafka.clients.producer.internals.Sender)"
)


def append(lake: Lake, position: int, day: str, hour: int = 7) -> None:
    record = {
        "cluster": "c", "source": "s", "file_id": "f", "position": position,
        "text": RETRY.format(hour=hour), "truncated": False, "read_at": NOW, "day": day,
    }  # fmt: skip
    lake.append(LOG_RECORDS, rows(LOG_RECORDS, [record]))


@pytest.fixture
def lake(tmp_path: Path) -> Lake:
    made = Lake(tmp_path)
    for position in range(4):
        append(made, position, "2026-01-30")
    return made


def files(lake: Lake, table) -> Counter:
    return Counter(v[table.partition[0]] for v in lake.files(table).values())


def ran(lake, spark, job):
    return runner.run(job, lake, lambda: spark, NOW)


def test_what_a_job_has_not_read_stays_apart(lake, spark):
    producer, broker = READERS
    ran(lake, spark, producer)
    ran(lake, spark, broker)
    for position in range(4, 7):
        append(lake, position, "2026-01-31")
    ran(lake, spark, producer)  # the other is late
    done = upkeep.optimize(lake, LOG_RECORDS, JOBS)
    assert done == {"files_added": 1, "files_removed": 4, "log_entries_removed": 0}
    assert files(lake, LOG_RECORDS) == {"2026-01-30": 1, "2026-01-31": 3}
    late = ran(lake, spark, broker)
    assert (late.rebuilt, late.rows_in) == (False, 3)
    assert ran(lake, spark, producer).nothing_new
    assert upkeep.settled(lake, LOG_RECORDS, JOBS) == lake.files(LOG_RECORDS).keys()
    assert lake.read(LOG_RECORDS).num_rows == 7


def test_what_is_written_while_it_is_looked_at_stays_apart(lake, spark, monkeypatch):
    producer = READERS[0]
    ran(lake, spark, producer)

    def consumed(table, job):
        found = Lake.consumed(lake, table, job)
        if table == PRODUCER_EVENTS:
            append(lake, 50, "2026-01-30")
        return found

    with monkeypatch.context() as patched:
        patched.setattr(lake, "consumed", consumed)
        upkeep.optimize(lake, LOG_RECORDS, JOBS)
    late = ran(lake, spark, producer)
    assert (late.rebuilt, late.rows_in) == (False, 1)


def test_what_is_written_after_it_was_looked_at_stays_apart(lake, spark, monkeypatch):
    producer, settled = READERS[0], upkeep.settled
    ran(lake, spark, producer)

    def then_an_agent_commits(*given):
        found = settled(*given)
        append(lake, 50, "2026-01-30")
        return found

    monkeypatch.setattr(upkeep, "settled", then_an_agent_commits)
    assert upkeep.optimize(lake, LOG_RECORDS, JOBS)["files_removed"] == 4
    late = ran(lake, spark, producer)
    assert (late.rebuilt, late.rows_in) == (False, 1)


def test_a_table_that_tasks_write_is_put_together_by_hour(lake, spark):
    producer = READERS[0]
    for position, hour in enumerate((7, 7, 8, 8, 8), start=10):
        append(lake, position, "2026-01-31", hour)
        ran(lake, spark, producer)
    before = lake.read(PRODUCER_EVENTS)
    assert min(files(lake, PRODUCER_EVENTS).values()) > 1
    upkeep.optimize(lake, PRODUCER_EVENTS, JOBS)
    assert files(lake, PRODUCER_EVENTS) == {"2026-01-31T07": 1, "2026-01-31T08": 1}
    order = [("record_key", "ascending")]
    assert lake.read(PRODUCER_EVENTS).sort_by(order) == before.sort_by(order)
    assert ran(lake, spark, producer).nothing_new, "its own note is still found"
    append(lake, 20, "2026-01-31")
    assert ran(lake, spark, producer).rows_out == 1


def test_a_table_of_a_fold_is_compacted_like_any_other(lake):
    hours = ("2026-01-31T07", "2026-01-31T07", "it's")
    for number, hour in enumerate(hours):
        row = dict.fromkeys(("cluster", "source", "kind"), "c") | {"hour": hour, "rows": number}
        lake.append(COVERAGE, rows(COVERAGE, [row | {"subject": str(number)}]))
    done = upkeep.optimize(lake, COVERAGE, JOBS)
    assert done == {"files_added": 1, "files_removed": 2, "log_entries_removed": 0}
    assert set(files(lake, COVERAGE).values()) == {1}
    assert sorted(lake.read(COVERAGE).column("subject").to_pylist()) == ["0", "1", "2"]


def test_nothing_to_do_changes_nothing(tmp_path):
    none = Lake(tmp_path)
    for table in (LOG_RECORDS, BROKER_EVENTS, COVERAGE, RUNS):
        assert upkeep.optimize(none, table, JOBS) == {
            "files_added": 0,
            "files_removed": 0,
            "log_entries_removed": 0,
        }


def test_a_log_keeps_what_a_job_asks_for(lake, spark, monkeypatch):
    """What the late reader has not read, and the writer's last note: neither makes all anew."""
    monkeypatch.setattr(housekeeping, "LOG_ENTRIES", 5)
    producer, broker = READERS
    ran(lake, spark, producer)
    ran(lake, spark, broker)
    late = lake.version(LOG_RECORDS)
    for position in range(4, 74):
        append(lake, position, "2026-01-31")
    ran(lake, spark, producer)
    assert upkeep.needed(lake, LOG_RECORDS, JOBS) == late
    assert upkeep.needed(lake, PRODUCER_EVENTS, JOBS) == lake.version(PRODUCER_EVENTS)
    assert upkeep.optimize(lake, LOG_RECORDS, JOBS)["log_entries_removed"] == 0
    read = ran(lake, spark, broker)
    assert (read.rebuilt, read.rows_in) == (False, 70)
    assert upkeep.optimize(lake, LOG_RECORDS, JOBS)["log_entries_removed"] > 50
    for table in (PRODUCER_EVENTS, BROKER_EVENTS):
        upkeep.optimize(lake, table, JOBS)
    assert ran(lake, spark, broker).nothing_new
    append(lake, 74, "2026-01-31")
    for job in READERS:
        again = ran(lake, spark, job)
        assert (again.rebuilt, again.rows_in) == (False, 1)


def test_spark_reads_a_table_whose_log_was_shortened(lake, spark, monkeypatch):
    monkeypatch.setattr(housekeeping, "LOG_ENTRIES", 5)
    lake.create(COVERAGE)

    def write(number):
        row = dict.fromkeys(("cluster", "source", "kind"), "c") | {"hour": "h", "rows": number}
        lake.append(COVERAGE, rows(COVERAGE, [row | {"subject": str(number)}]))

    for number in range(45):
        write(number)
    assert housekeeping.shorten_log(lake, COVERAGE, None) > 30
    write(45)
    held = spark.read.format("delta").load(lake.path(COVERAGE))
    assert sorted(int(row["subject"]) for row in held.collect()) == list(range(46))
    assert lake.read(COVERAGE).num_rows == 46


def test_a_watch_keeps_its_lake_every_hour_and_survives_what_it_cannot(lake, spark, caplog):
    producer = READERS[0]
    ran(lake, spark, producer)
    for position in range(4, 7):
        append(lake, position, "2026-01-30")
        ran(lake, spark, producer)
    step = UpkeepStep(lake, [producer])
    assert not step(NOW), "no warning waits for it in the first round"
    assert not step(NOW + timedelta(minutes=59))
    (broken,) = Path(lake.path(RUNS)).rglob("00000000000000000003.json")
    text = broken.read_text()
    broken.write_text(text[: len(text) // 2])
    later = Lake(lake.uri)  # as a new process: nothing of the log is known to be sound
    step.lake = later
    assert step(NOW + timedelta(hours=1)), "the other tables are kept all the same"
    assert "Could not compact runs" in caplog.text
    assert files(later, LOG_RECORDS) == {"2026-01-30": 1}
    assert files(later, PRODUCER_EVENTS) == {"2026-01-31T07": 1}
    broken.write_text(text)
    assert not step(NOW + timedelta(hours=1, minutes=59))
    assert step(NOW + timedelta(hours=2))
    assert len(later.files(RUNS)) == 1
