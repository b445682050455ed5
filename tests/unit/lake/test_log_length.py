"""A table's log is shortened up to a checkpoint, and nobody who reads it is the worse for it."""

from __future__ import annotations

import shutil
from pathlib import Path

import pytest

from acktrail.contracts.bronze import LOG_RECORDS
from acktrail.lake import Lake, Position, housekeeping
from tests.unit.lake.test_lake import records

COMMITS = 75


def log_of(lake: Lake) -> Path:
    return Path(lake.path(LOG_RECORDS)) / "_delta_log"


def first_entry(lake: Lake) -> int:
    return min(int(file.stem) for file in log_of(lake).glob("*.json"))


def appended(lake: Lake, number: int) -> None:
    position = Position("agent", number - 1 if number else None, number)
    lake.append(LOG_RECORDS, records(range(number, number + 1)), [position])


def kept(lake: Lake) -> list[int]:
    return sorted(lake.read(LOG_RECORDS).column("position").to_pylist())


@pytest.fixture(scope="module")
def template(tmp_path_factory) -> Path:
    made = Lake(tmp_path_factory.mktemp("lake"))
    for number in range(COMMITS):
        appended(made, number)
    return Path(made.uri)


@pytest.fixture
def lake(template: Path, tmp_path: Path, monkeypatch) -> Lake:
    monkeypatch.setattr(housekeeping, "LOG_ENTRIES", 10)
    return Lake(shutil.copytree(template, tmp_path / "lake"))


@pytest.mark.parametrize(
    ("case", "needed", "first"),
    [
        ("nobody asks for it", None, 59),
        ("all have read it", 75, 59),
        ("a reader is late", 45, 39),
        ("at a checkpoint", 39, 39),
        ("just before one", 38, 19),
        ("before the first", 7, 0),
        ("from the beginning", 0, 0),
    ],
)
def test_it_begins_at_a_checkpoint_that_all_have_passed(lake, case, needed, first) -> None:
    before = len(list(log_of(lake).iterdir()))
    removed = housekeeping.shorten_log(lake, LOG_RECORDS, needed)
    assert first_entry(lake) == first, case
    assert before - removed == len(list(log_of(lake).iterdir())), case
    after = Lake(lake.uri)
    assert kept(after) == list(range(COMMITS))
    appended(after, COMMITS)
    assert kept(lake) == list(range(COMMITS + 1))
    assert housekeeping.shorten_log(lake, LOG_RECORDS, needed) == 0, "there is no more to remove"


def test_what_was_added_since_is_still_told(lake: Lake) -> None:
    newest = lake.version(LOG_RECORDS) or 0
    housekeeping.shorten_log(lake, LOG_RECORDS, newest - 30)
    added = lake.added(LOG_RECORDS, newest - 30)
    assert added is not None
    assert (added.complete, added.rows) == (True, 30)
    assert lake.position(LOG_RECORDS, "agent") == COMMITS - 1


def test_who_has_not_looked_for_long_finds_nothing_missing(lake: Lake) -> None:
    sleeper = Lake(lake.uri)
    sleeper._checked[LOG_RECORDS.name] = 12
    housekeeping.shorten_log(lake, LOG_RECORDS, None)
    assert kept(sleeper) == list(range(COMMITS))


def test_a_lost_hint_is_no_damage(lake: Lake) -> None:
    housekeeping.shorten_log(lake, LOG_RECORDS, None)
    (log_of(lake) / "_last_checkpoint").unlink()
    assert kept(Lake(lake.uri)) == list(range(COMMITS))


def test_wherever_it_is_killed_the_table_can_be_read(lake: Lake) -> None:
    names = housekeeping.removable([file.name for file in log_of(lake).iterdir()], COMMITS)
    assert len(names) > 60
    for name in names:
        (log_of(lake) / name).unlink()
        assert Lake(lake.uri).version(LOG_RECORDS) == COMMITS
    assert kept(Lake(lake.uri)) == list(range(COMMITS))


def test_what_is_no_entry_stays() -> None:
    names = ["_last_checkpoint", "notes.txt", "00000000000000000003.json.tmp"]
    checkpoint = "00000000000000000009.checkpoint.parquet"
    old = ["00000000000000000003.json", "00000000000000000004.crc"]
    assert housekeeping.removable([*names, *old, checkpoint], 9) == old
    assert housekeeping.removable([*names, *old, checkpoint], 8) == []
