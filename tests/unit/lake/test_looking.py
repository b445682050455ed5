"""Looking at a table: a snapshot is kept while it is the newest, and files are left out soundly."""

from __future__ import annotations

import shutil
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pyarrow.dataset as ds
import pytest

from acktrail.contracts.arrow import rows
from acktrail.contracts.bronze import CLUSTER_STATES
from acktrail.lake import Lake
from acktrail.lake.rows import Rows, files_with

START = datetime(2026, 1, 31, 7, tzinfo=UTC)
_at = ds.field("at")


def state(hour: int, topic: str = "orders") -> dict[str, object]:
    at = START + timedelta(hours=hour)
    told = {"cluster": "c", "source": "s", "topic": topic, "partition": 0, "at": at}
    return {**told, "topic_id": "", "read_at": at, "day": f"{at:%Y-%m-%d}", "latest_offset": hour}


@pytest.fixture
def lake(tmp_path: Path) -> Lake:
    lake = Lake(tmp_path / "lake")
    for hour in range(0, 72, 12):
        lake.append(CLUSTER_STATES, rows(CLUSTER_STATES, [state(hour), state(hour, "clicks")]))
    return lake


def test_a_snapshot_is_kept_until_somebody_commits(lake: Lake) -> None:
    seen = lake.look(CLUSTER_STATES)
    assert lake.look(CLUSTER_STATES) is seen
    Lake(lake.uri).append(CLUSTER_STATES, rows(CLUSTER_STATES, [state(99)]))
    now = lake.look(CLUSTER_STATES)
    assert seen is not None
    assert now is not None
    assert (now.version, len(now.files)) == (seen.version + 1, len(seen.files) + 1)


def test_a_table_that_was_made_again_is_not_taken_for_the_old_one(lake: Lake) -> None:
    old = lake.look(CLUSTER_STATES)
    shutil.rmtree(lake.path(CLUSTER_STATES))
    assert lake.look(CLUSTER_STATES) is None
    other = Lake(lake.uri)
    assert old is not None
    for number in range(old.version):
        other.append(CLUSTER_STATES, rows(CLUSTER_STATES, [state(500 + number)]))
    now = lake.look(CLUSTER_STATES)
    assert now is not None
    assert (now.version, now.files.keys() & old.files.keys()) == (old.version, set())


@pytest.mark.parametrize(
    ("where", "files"),
    [
        (ds.field("day") == "2026-02-01", 2),
        (ds.field("day").isin(["2026-01-31", "1999-01-01"]), 2),
        (_at >= START + timedelta(hours=48), 2),
        ((_at > START) & (ds.field("day") == "2026-01-31"), 1),
        (ds.field("topic") == "orders", 6),
        (ds.field("topic") == "zzz", 0),
        (ds.scalar(False), 0),
        (None, 6),
    ],
)
def test_files_that_cannot_hold_a_row_are_left_out(
    lake: Lake, where: ds.Expression | None, files: int
) -> None:
    seen, store = lake.look(CLUSTER_STATES), lake.at(CLUSTER_STATES)
    assert seen is not None
    kept = files_with(seen, store, where)
    assert len(kept) == files
    whole = Rows(CLUSTER_STATES, store, seen).read("at", "topic", where=where)
    assert Rows(CLUSTER_STATES, store, seen, kept).read("at", "topic", where=where) == whole
    every = Rows(CLUSTER_STATES, store, seen).read("at", "topic", "day")
    wanted = every if where is None else every.filter(where)
    assert whole.sort_by("at").num_rows == wanted.num_rows


def test_a_table_without_files_has_none_to_read(tmp_path: Path) -> None:
    lake = Lake(tmp_path)
    lake.create(CLUSTER_STATES)
    seen = lake.look(CLUSTER_STATES)
    assert seen is not None
    assert files_with(seen, lake.at(CLUSTER_STATES), ds.field("day") == "2026-01-31") == {}


@pytest.mark.parametrize(
    ("case", "least", "nulls", "hours"),
    [
        ("a bound", {"latest_offset": 36}, False, {36, 48, 60}),
        ("a bound that nothing meets", {"latest_offset": 61}, False, set()),
        ("any of two", {"latest_offset": 60, "at": START + timedelta(hours=48)}, False, {48, 60}),
        ("nulls, and there are none", {"latest_offset": 61}, True, set()),
        ("nulls", {"earliest_offset": 1}, True, set(range(0, 72, 12))),
        ("no bounds in the log", {"isr": 1}, False, set(range(0, 72, 12))),
    ],
)
def test_files_below_a_value_are_left_out(lake, case, least, nulls, hours) -> None:
    seen = lake.look(CLUSTER_STATES)
    every = Rows(CLUSTER_STATES, lake.at(CLUSTER_STATES), seen)
    kept = every.reaching(least, nulls=nulls)
    assert set(kept.read("latest_offset").column(0).to_pylist()) == hours
    assert set(kept.reaching({"latest_offset": 60}).files) <= set(kept.files)
