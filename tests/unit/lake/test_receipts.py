"""Reports of a cluster have receipts in the order in which they were committed."""

from __future__ import annotations

import tempfile
from pathlib import Path

import pytest
from deltalake import CommitProperties, DeltaTable
from hypothesis import given, settings

from acktrail.contracts.bronze import AUDIT_REPORTS, LOG_RECORDS
from acktrail.lake import Change, Lake, housekeeping, tables
from acktrail.lake.data_files import write_files
from tests.unit.lake.test_lake import records
from tests.worlds.receipts import START_MS, Append, Compact, Receivers, reports, stories


def by(agent: int, east: tuple[int, ...] = (), west: tuple[int, ...] = (), *meanwhile: Append):
    rows = [("east", us) for us in east] + [("west", us) for us in west]
    return Append(agent, tuple(rows), meanwhile)


CASES = {
    "a clock that is right": [by(0, (0, 1_000)), by(0, (2_000,))],
    "a clock behind": [by(0, (9_000,)), by(1, (0, 5_000))],
    "the same millisecond": [by(0, (100,)), by(1, (900,))],
    "half of a batch is early": [by(0, (3_000,)), by(1, (1_000, 8_000))],
    "clusters do not order each other": [by(0, (9_000,)), by(1, (), (0,))],
    "one commit of two clusters": [by(0, (9_000,), (0,)), by(1, (0,), (0,))],
    "overtaken, and stamped again": [by(0, (1_000,), (), by(1, (5_000,)))],
    "overtaken by another cluster": [by(0, (1_000,), (), by(1, (), (5_000,)))],
    "overtaken twice": [by(0, (0,), (), by(1, (0,), (), by(2, (0,))))],
    "a position without rows": [by(0, (4_000,)), by(1), by(0, (0,))],
    "after a compaction": [by(0, (4_000,)), by(1, (0,)), Compact(), by(0, (0,))],
}


@pytest.mark.parametrize("case", CASES)
def test_a_table_of_cases(case: str, tmp_path: Path) -> None:
    Receivers(Lake(tmp_path)).play(CASES[case])


@settings(max_examples=12, deadline=None)
@given(stories)
def test_whoever_commits_later_has_later_receipts(story) -> None:
    with tempfile.TemporaryDirectory() as directory:
        Receivers(Lake(directory)).play(story)


def test_nothing_is_written_twice_without_need(tmp_path: Path, monkeypatch) -> None:
    written = []

    def counted(*given):
        written.append(given)
        return write_files(*given)

    monkeypatch.setattr(tables, "write_files", counted)
    Receivers(Lake(tmp_path)).play(CASES["overtaken by another cluster"])
    assert len(written) == 2
    Receivers(Lake(tmp_path / "other")).play(CASES["overtaken, and stamped again"])
    assert len(written) == 5, "the files of the overtaken one are written again"


def test_a_table_from_before_receipts_goes_on_after_its_newest_row(tmp_path: Path) -> None:
    lake = Lake(tmp_path)
    assert lake.receipt("east") == 0
    lake.create(AUDIT_REPORTS)
    old = reports([(0, "east", 7_000), (1, "west", 1_000)])
    lake.put(AUDIT_REPORTS, write_files(AUDIT_REPORTS, old, lake.at(AUDIT_REPORTS)), Change())
    seen = [lake.receipt(cluster) for cluster in ("east", "west", "new")]
    assert seen == [START_MS + 7, START_MS + 1, 0]
    lake.append(AUDIT_REPORTS, reports([(2, "east", 0), (3, "west", 3_000), (4, "new", -9_000)]))
    seen = [lake.receipt(cluster) for cluster in ("east", "west", "new")]
    assert seen == [START_MS + 8, START_MS + 3, START_MS - 9]


def test_other_tables_keep_their_times(tmp_path: Path) -> None:
    lake = Lake(tmp_path)
    for _ in range(2):
        lake.append(LOG_RECORDS, records(range(1)))
    assert len(set(lake.read(LOG_RECORDS).column("read_at").to_pylist())) == 1


def test_a_shortened_log_still_has_the_newest_receipt(tmp_path: Path, monkeypatch) -> None:
    monkeypatch.setattr(housekeeping, "LOG_ENTRIES", 5)
    lake = Lake(tmp_path)
    lake.append(AUDIT_REPORTS, reports([(0, "west", 500_000)]))
    for number in range(45):
        lake.append(AUDIT_REPORTS, reports([(number, "east", 0)]))
    housekeeping.compact(lake, AUDIT_REPORTS, lake.files(AUDIT_REPORTS))
    assert housekeeping.shorten_log(lake, AUDIT_REPORTS, None) > 30
    assert housekeeping.expire(lake, AUDIT_REPORTS, "2099-01-01")["rows_deleted"] == 46
    after = Lake(tmp_path)
    assert (after.receipt("west"), after.receipt("east")) == (START_MS + 500, START_MS + 44)
    after.append(AUDIT_REPORTS, reports([(0, "west", 0)]))
    assert lake.receipt("west") == START_MS + 501


def test_a_commit_by_another_tool_takes_no_receipt_away(tmp_path: Path) -> None:
    lake = Lake(tmp_path)
    lake.append(AUDIT_REPORTS, reports([(0, "east", 0)]))
    DeltaTable(lake.path(AUDIT_REPORTS)).alter.set_table_properties(
        {"delta.logRetentionDuration": "interval 30 days"},
        commit_properties=CommitProperties(max_commit_retries=0),
    )
    assert lake.receipt("east") == START_MS
