"""Who may commit when writers meet on one table: no row is doubled, and none survives its end."""

from __future__ import annotations

import json
import tempfile
from pathlib import Path

import pytest
from deltalake.exceptions import CommitFailedError
from hypothesis import given, settings

from acktrail.contracts.bronze import LOG_RECORDS
from acktrail.errors import ContractError, LakeDamaged, Overtaken
from acktrail.lake import (
    Change,
    Lake,
    Position,
    ReplaceAll,
    ReplacePartitions,
    ReplaceRange,
    RewriteFiles,
    housekeeping,
    tables,
)
from acktrail.lake.commit import commit
from acktrail.lake.data_files import write_files
from tests.worlds.conflicts import DAYS, Commit, Compact, Compute, Expire, Meeting, records, steps
from tests.worlds.conflicts import stored as texts

FIRST, SECOND = DAYS[0], DAYS[3]
ONE_DAY = ReplacePartitions(frozenset({FIRST}))
CASES = {
    # who computes first, what happens in between, who is refused
    "replace against compaction": ((Compute(0, ONE_DAY, (FIRST,)), Compact(), Commit(0)), 0),
    "replace against an append to it": (
        (Compute(0, ONE_DAY, (FIRST,)), Compute(1, tables.Change().replaced, (FIRST,)), Commit(1),
         Commit(0)),
        1,
    ),
    "replace against an append beside it": (
        (Compute(0, ONE_DAY, (FIRST,)), Compute(1, tables.Change().replaced, (SECOND,)), Commit(1),
         Commit(0)),
        0,
    ),
    "replace against the same replace": (
        (Compute(0, ONE_DAY, (FIRST,)), Compute(1, ONE_DAY, (FIRST,)), Commit(1), Commit(0)),
        1,
    ),
    "replace all against a replace of one": (
        (Compute(0, ReplaceAll(), (FIRST,)), Compute(1, ONE_DAY, ()), Commit(1), Commit(0)),
        1,
    ),
    "a range against rows that expired in it": (
        (Compute(0, ReplaceRange(FIRST, SECOND), (FIRST,)), Expire(SECOND), Commit(0)),
        1,
    ),
    "replace nothing leaves everything": (
        (Compute(0, ReplacePartitions(frozenset()), ()), Commit(0)),
        0,
    ),
    "replace all leaves nothing": ((Compute(0, ReplaceAll(), ()), Commit(0)), 0),
}  # fmt: skip


@pytest.mark.parametrize("case", CASES)
def test_a_table_of_conflicts(case: str, tmp_path: Path) -> None:
    story, refused = CASES[case]
    meeting = Meeting(Lake(tmp_path))
    meeting.play(story)
    assert meeting.outcomes["refused"] == refused


@settings(max_examples=25, deadline=None)
@given(steps)
def test_any_meeting_of_writers_gives_the_rows_of_the_model(story) -> None:
    with tempfile.TemporaryDirectory() as directory:
        Meeting(Lake(directory)).play(story)


def test_compaction_against_a_replacement_is_refused(tmp_path: Path, monkeypatch) -> None:
    lake = Lake(tmp_path)
    for number in range(3):
        lake.append(LOG_RECORDS, records([(FIRST, str(number))]))
    looked_at, put = frozenset(lake.files(LOG_RECORDS)), lake.put

    def replaced_first(table, files, change):
        monkeypatch.setattr(lake, "put", put)
        new = write_files(table, records([(FIRST, "new")]), lake.at(table))
        put(table, new, Change(replaced=ONE_DAY))
        return put(table, files, change)

    monkeypatch.setattr(lake, "put", replaced_first)
    with pytest.raises(Overtaken, match="another writer changed the rows"):
        housekeeping.compact(lake, LOG_RECORDS, lake.files(LOG_RECORDS))
    assert dict(texts(lake)) == {"new": 1}
    with pytest.raises(Overtaken):
        lake.put(LOG_RECORDS, [], Change(replaced=RewriteFiles(looked_at)))


def test_what_was_computed_before_the_log_was_shortened_is_refused(tmp_path: Path) -> None:
    lake = Lake(tmp_path)
    for number in range(3):
        lake.append(LOG_RECORDS, records([(SECOND, str(number))]))
    for entry in Path(lake.path(LOG_RECORDS), "_delta_log").glob("*2.json"):
        entry.rename(entry.with_suffix(".away"))
    change = Change(replaced=ONE_DAY, computed_at=1)
    with pytest.raises((Overtaken, LakeDamaged)):
        lake.put(LOG_RECORDS, [], change)


def test_a_commit_whose_answer_was_lost_is_not_made_twice(tmp_path: Path, monkeypatch) -> None:
    """As on a network that cuts the answer: the store has the commit, and the writer is told no."""
    lake, lost = Lake(tmp_path), []
    lake.append(LOG_RECORDS, records([(FIRST, "first")]))

    def answer_lost(*given):
        version = commit(*given)
        if len(lost) < 2:
            lost.append(version)
            raise (CommitFailedError if len(lost) == 1 else OSError)("connection reset")
        return version

    monkeypatch.setattr(tables, "commit", answer_lost)
    for text in ("a", "b", "c"):
        lake.append(LOG_RECORDS, records([(FIRST, text)]), [Position(text, None, 1)])
    assert dict(texts(lake)) == {"first": 1, "a": 1, "b": 1, "c": 1}


def test_an_entry_that_lost_a_removal_is_damage(tmp_path: Path) -> None:
    lake = Lake(tmp_path)
    lake.append(LOG_RECORDS, records([(FIRST, "a"), (SECOND, "b")]))
    version = lake.put(LOG_RECORDS, [], Change(replaced=ReplaceAll()))
    entry = Path(lake.path(LOG_RECORDS), "_delta_log", f"{version:020d}.json")
    lines = entry.read_text().splitlines()
    entry.write_text("\n".join(x for x in lines if FIRST not in x or "remove" not in json.loads(x)))
    with pytest.raises(LakeDamaged, match="removes 1 files of 2"):
        Lake(tmp_path).read(LOG_RECORDS)


def test_files_of_another_layout_are_refused(tmp_path: Path) -> None:
    lake = Lake(tmp_path)
    lake.append(LOG_RECORDS, records([(FIRST, "a")]))
    files = write_files(LOG_RECORDS, records([(FIRST, "b")]), lake.at(LOG_RECORDS))
    files[0].partition_values = {"hour": "x"}
    with pytest.raises(ContractError, match="partition columns hour, the table has day"):
        lake.put(LOG_RECORDS, files, Change())
