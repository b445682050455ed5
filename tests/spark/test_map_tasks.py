"""Maps as Spark's tasks run them: what is read, what is written, and what a fault leaves behind."""

from __future__ import annotations

import os
import sys
from datetime import UTC, datetime
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from hypothesis import given
from hypothesis import strategies as st
from pyspark import cloudpickle
from pyspark.serializers import CloudPickleSerializer

from acktrail.contracts.arrow import rows
from acktrail.contracts.bronze import LOG_RECORDS
from acktrail.contracts.runs import RUNS
from acktrail.contracts.silver import UNREAD_RECORDS
from acktrail.errors import LakeDamaged, LakeInaccessible, Overtaken, SourceUnavailable
from acktrail.lake import Change, Lake, Position, ReplaceAll, housekeeping
from acktrail.lake.store import Store
from acktrail.window import Window
from pipelines import mapping, runner, writing
from pipelines.job import Map, Read

cloudpickle.register_pickle_by_value(sys.modules[__name__])  # workers cannot import tests

NOW = datetime(2026, 1, 31, 7, tzinfo=UTC)
DAYS = ("2026-01-29", "2026-01-30", "2026-01-31")
DAY = Window(datetime(2026, 1, 30, tzinfo=UTC), datetime(2026, 1, 31, tzinfo=UTC))
WANTED = ("cluster", "source", "host", "position", "text", "day")


def records(first: int, count: int) -> pa.Table:
    made = [
        {
            "cluster": "c", "source": "s", "file_id": "f", "position": i, "text": f"line {i}",
            "truncated": False, "read_at": NOW, "day": DAYS[i % 3],
        }
        for i in range(first, first + count)
    ]  # fmt: skip
    return rows(LOG_RECORDS, made)


def even(batch: pa.RecordBatch) -> Read:
    """Keep every other record."""
    made = [
        {"record_key": str(r.pop("position")), "reason": "even", **r}
        for r in batch.to_pylist()
        if r["position"] % 2 == 0
    ]
    kept = [pa.RecordBatch.from_pylist(made)] if made else []
    return Read(kept, {"odd": batch.num_rows - len(made)})


EVEN = Map(LOG_RECORDS, WANTED, UNREAD_RECORDS, lambda _options: even, reasons=("odd",))


@pytest.fixture
def lake(tmp_path: Path) -> Lake:
    made = Lake(tmp_path)
    for first in range(0, 60, 12):
        made.append(LOG_RECORDS, records(first, 12))
    return made


def kept(lake: Lake) -> list[int]:
    return sorted(int(key) for key in lake.read(UNREAD_RECORDS).column("record_key").to_pylist())


def test_every_new_row_is_read_once(lake, spark):
    first = runner.run(EVEN, lake, lambda: spark, NOW)
    assert (first.rows_in, first.rows_out, dict(first.dropped)) == (60, 30, {"odd": 30})
    lake.append(LOG_RECORDS, records(60, 3))
    second = runner.run(EVEN, lake, lambda: spark, NOW)
    assert (second.rows_in, second.rows_out, second.run) == (3, 2, 1)
    assert kept(lake) == list(range(0, 63, 2))
    assert {v["day"] for v in lake.files(UNREAD_RECORDS).values()} == set(DAYS)


def test_a_window_is_made_anew_and_the_rest_stays(lake, spark):
    runner.run(EVEN, lake, lambda: spark, NOW)
    before = lake.files(UNREAD_RECORDS)
    done = runner.run(EVEN, lake, lambda: spark, NOW, rebuild=DAY)
    assert (done.rebuilt, done.rows_in, done.rows_out) == (True, 60, 10)
    assert dict(done.dropped) == {"odd": 30, mapping.OUTSIDE: 20}
    assert kept(lake) == list(range(0, 60, 2))
    after = lake.files(UNREAD_RECORDS)
    stays = {f for f, v in before.items() if v["day"] != "2026-01-30"}
    assert before.keys() & after.keys() == stays


def test_what_was_not_read_yet_is_read_with_a_window_that_it_is_not_in(lake, spark):
    runner.run(EVEN, lake, lambda: spark, NOW)
    lake.append(LOG_RECORDS, records(60, 12))
    done = runner.run(EVEN, lake, lambda: spark, NOW, rebuild=DAY)
    assert (done.rows_in, done.rows_out) == (72, 12 + 4)
    assert dict(done.dropped) == {"odd": 36, mapping.OUTSIDE: 20}
    assert runner.run(EVEN, lake, lambda: spark, NOW).nothing_new
    assert kept(lake) == list(range(0, 72, 2)), "no row is lost, and none doubled"


def test_a_lost_note_makes_all_of_it_anew(lake, spark):
    """As after a restore: rows are there, and no commit says what they were made from."""
    strange = rows(UNREAD_RECORDS, [dict.fromkeys(UNREAD_RECORDS.names, "x") | {"day": DAYS[0]}])
    lake.append(UNREAD_RECORDS, strange)
    done = runner.run(EVEN, lake, lambda: spark, NOW)
    assert (done.rebuilt, done.rows_out) == (True, 30)
    assert kept(lake) == list(range(0, 60, 2))


def test_a_lake_named_from_here_is_the_same_to_a_worker_that_stands_elsewhere(
    lake, spark, monkeypatch
):
    monkeypatch.chdir(lake.uri)
    assert runner.run(EVEN, Lake("."), lambda: spark, NOW).rows_out == 30
    assert kept(lake) == list(range(0, 60, 2))


def test_a_window_is_long_by_all_that_was_ever_read(lake, spark, monkeypatch):
    runner.run(EVEN, lake, lambda: spark, NOW)
    monkeypatch.setattr(runner, "LONG_ROWS", 60)
    assert not runner.is_long([EVEN], lake)
    assert runner.is_long([EVEN], lake, rebuild=True)


def test_files_of_before_a_column_grew_read_as_null(tmp_path, spark):
    lake = Lake(tmp_path)
    lake.append(LOG_RECORDS, records(0, 3))
    for name in lake.files(LOG_RECORDS):
        path = Path(lake.path(LOG_RECORDS)) / name
        pq.write_table(pq.ParquetFile(path).read().drop_columns(["host"]), path)
    assert runner.run(EVEN, lake, lambda: spark, NOW).rows_out == 2
    assert lake.read(UNREAD_RECORDS).column("host").to_pylist() == [None, None]


def test_who_looks_while_another_commits_writes_nothing(lake, spark, monkeypatch):
    """The other driver commits after this one has read its number and before it reads the news."""
    runner.run(EVEN, lake, lambda: spark, NOW)
    lake.append(LOG_RECORDS, records(60, 3))
    other, looked = Lake(lake.uri), []

    def look(table):
        if table == LOG_RECORDS and not looked:
            looked.append(table)
            runner.run(EVEN, other, lambda: spark, NOW)
        return Lake.look(lake, table)

    monkeypatch.setattr(lake, "look", look)
    assert runner.run(EVEN, lake, lambda: spark, NOW).nothing_new
    assert kept(lake) == list(range(0, 63, 2)), "no row is doubled"


def test_who_comes_second_looks_again_and_finds_nothing_new(lake, spark, monkeypatch):
    runner.run(EVEN, lake, lambda: spark, NOW)
    lake.append(LOG_RECORDS, records(60, 3))
    other = []

    def be_overtaken(point: str) -> None:
        if point == "before_commit" and not other:
            other.append(Lake(lake.uri))
            runner.run(EVEN, other[0], lambda: spark, NOW)

    monkeypatch.setattr(runner, "crash_point", be_overtaken)
    assert runner.run(EVEN, lake, lambda: spark, NOW).nothing_new
    assert kept(lake) == list(range(0, 63, 2))
    numbers = lake.read(RUNS, columns=["job", "run"]).column("run").to_pylist()
    assert sorted(numbers) == [0, 1], "each run is recorded once"


def test_who_always_comes_second_gives_up_and_has_written_nothing(lake, spark, monkeypatch):
    runner.run(EVEN, lake, lambda: spark, NOW)
    lake.append(LOG_RECORDS, records(60, 3))
    runs = iter(range(100))

    def be_overtaken(point: str) -> None:
        if point == "before_commit":
            began = next(runs)
            Lake(lake.uri).put(
                UNREAD_RECORDS, [], Change((Position("unread_records", began, began + 1),))
            )

    monkeypatch.setattr(runner, "crash_point", be_overtaken)
    with pytest.raises(Overtaken, match=f"another driver committed run {runner.TRIES} first"):
        runner.run(EVEN, lake, lambda: spark, NOW)
    assert kept(lake) == list(range(0, 60, 2))
    assert not runner.is_up_to_date(EVEN, lake)


@pytest.fixture
def in_two_files(lake: Lake, spark) -> Lake:
    """Each partition of the output."""
    runner.run(EVEN, lake, lambda: spark, NOW)
    lake.append(LOG_RECORDS, records(60, 12))
    runner.run(EVEN, lake, lambda: spark, NOW)
    return lake


def test_a_window_made_anew_while_files_are_put_together(in_two_files, spark, monkeypatch):
    lake = in_two_files

    def put_together(point: str) -> None:
        if point == "before_commit":
            done = housekeeping.compact(lake, UNREAD_RECORDS, lake.files(UNREAD_RECORDS))
            assert done == {"files_added": 3, "files_removed": 6}

    monkeypatch.setattr(runner, "crash_point", put_together)
    assert runner.run(EVEN, lake, lambda: spark, NOW, rebuild=DAY).rows_out == 12
    assert kept(lake) == list(range(0, 72, 2))


def test_a_broken_file_is_named(lake, spark):
    name = min(lake.files(LOG_RECORDS))
    path = Path(lake.path(LOG_RECORDS)) / name
    path.write_bytes(path.read_bytes()[:100])
    with pytest.raises(LakeDamaged, match=path.name):
        runner.run(EVEN, lake, lambda: spark, NOW)
    assert not lake.files(UNREAD_RECORDS)


def test_a_place_that_takes_no_file_is_worth_another_try(lake, spark):
    lake.create(UNREAD_RECORDS)
    (Path(lake.path(UNREAD_RECORDS)) / "day=2026-01-29").touch()
    with pytest.raises(SourceUnavailable, match="could not be written"):
        runner.run(EVEN, lake, lambda: spark, NOW)
    (Path(lake.path(UNREAD_RECORDS)) / "day=2026-01-29").unlink()
    assert runner.run(EVEN, lake, lambda: spark, NOW).rows_out == 30


def test_a_worker_that_dies_leaves_nothing_a_commit_names(lake, spark, tmp_path_factory):
    """Killed after it has written files; the next run is a whole one, and upkeep removes them."""
    died = tmp_path_factory.mktemp("died") / "once"

    table = Path(lake.path(UNREAD_RECORDS))

    def dying(batch: pa.RecordBatch) -> Read:
        writing.FILE_BYTES = 1  # in the worker: each batch becomes files at once
        if not died.exists() and list(table.rglob("*.parquet")):
            died.touch()
            os.kill(os.getpid(), 9)
        return even(batch)

    job = Map(LOG_RECORDS, WANTED, UNREAD_RECORDS, lambda _options: dying, reasons=("odd",))
    with pytest.raises(Exception, match=r"(?i)worker"):  # one try only in local mode
        runner.run(job, lake, lambda: spark, NOW)
    left = list(Path(lake.path(UNREAD_RECORDS)).rglob("*.parquet"))
    assert died.exists()
    assert left
    assert not lake.files(UNREAD_RECORDS)
    done = runner.run(job, lake, lambda: spark, NOW)
    assert (done.run, done.rows_out) == (0, 30)
    assert kept(lake) == list(range(0, 60, 2))
    for file in left:
        os.utime(file, (0, 0))
    assert housekeeping.vacuum(lake, UNREAD_RECORDS) == {"files_deleted": len(left)}
    assert kept(lake) == list(range(0, 60, 2))


def test_much_is_written_in_several_files(lake, spark, monkeypatch):
    monkeypatch.setattr(writing, "FILE_BYTES", 1)
    task = mapping.Task(
        EVEN,
        runner.Options(),
        lake.at(LOG_RECORDS),
        lake.at(UNREAD_RECORDS),
        None,
        [[mapping.File(*file) for file in lake.files(LOG_RECORDS).items()]],
    )
    written, dropped = mapping.do(task, task.shares[0])
    assert len(written) == len(lake.files(LOG_RECORDS))
    assert dropped == {"odd": 30}


@given(st.lists(st.builds(mapping.File, st.text(), st.just({})), min_size=1), st.integers(1, 20))
def test_files_are_shared_out_evenly_and_once(files, most):
    shares = mapping.shared_out(files, most)
    assert len(shares) == min(most, len(files))
    assert sorted(f.path for share in shares for f in share) == sorted(f.path for f in files)
    assert max(map(len, shares)) - min(map(len, shares)) <= 1


SIZES = {
    "short lines": (1_000, 200, mapping.BATCH_ROWS),
    "lines of a megabyte": (100, 1 << 20, 64),
    "one line larger than a batch": (1, 80 << 20, 1),
}


@pytest.mark.parametrize("case", SIZES)
def test_a_batch_is_no_larger_than_its_bound(case, tmp_path):
    count, length, wanted = SIZES[case]
    texts = [f"{i}" + "x" * length for i in range(count)]
    pq.write_table(pa.table({"text": texts}), tmp_path / "f.parquet")
    found = mapping.batch_rows(pq.ParquetFile(tmp_path / "f.parquet").metadata)
    assert found == pytest.approx(wanted, abs=1)


TASKS = {"few rows": (10_000, 8, 1), "some": (130_000, 8, 5), "many": (10_000_000, 2, 8)}


@pytest.mark.parametrize("case", TASKS)
def test_few_rows_make_few_files(case):
    rows_in, cores, wanted = TASKS[case]
    assert mapping._tasks(rows_in, cores) == wanted


def test_no_file_no_task(tmp_path):
    lake = Lake(tmp_path)
    lake.create(LOG_RECORDS)
    assert runner.run(EVEN, lake, lambda: pytest.fail("a session was started"), NOW).nothing_new


def test_a_place_that_cannot_be_a_directory_is_not_worth_another_try(tmp_path):
    (tmp_path / "file").touch()
    writer = writing.FileWriter(LOG_RECORDS, Store(str(tmp_path / "file" / "log_records")))
    writer.add(records(0, 1).to_batches()[0])
    with pytest.raises(LakeInaccessible, match=f"{tmp_path / 'file'} is a file"):
        writer.close()


def test_no_secret_is_in_what_tasks_are_sent(tmp_path, spark, monkeypatch):
    """Neither to those of a map nor to those that write a frame."""
    sent: list[bytes] = []
    dumps = CloudPickleSerializer.dumps

    def keep(serializer: CloudPickleSerializer, task: object) -> bytes:
        sent.append(dumps(serializer, task))
        return sent[-1]

    monkeypatch.setattr(CloudPickleSerializer, "dumps", keep)
    lake = Lake(tmp_path, {"aws_secret_access_key": "not-for-tasks", "region": "for-tasks"})
    lake.append(LOG_RECORDS, records(0, 3))
    runner.run(EVEN, lake, lambda: spark, NOW)
    frame = spark.createDataFrame(lake.read(UNREAD_RECORDS))
    assert writing.write_frame(lake, UNREAD_RECORDS, frame, ReplaceAll()).rows == 2
    tasks = [task for task in sent if b"for-tasks" in task]
    assert len(tasks) == 2
    assert not [task for task in tasks if b"not-for-tasks" in task]
