"""The lake keeps its promise: rows and positions together, each row once, one writer per source."""

from __future__ import annotations

import json
import multiprocessing
import os
import signal
import time
from datetime import UTC, datetime
from pathlib import Path

import pyarrow as pa
import pytest
from deltalake import DeltaTable, write_deltalake
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from acktrail.contracts.arrow import rows
from acktrail.contracts.bronze import LOG_RECORDS
from acktrail.contracts.runs import ALERTS
from acktrail.errors import ContractError, LakeDamaged, PositionConflict, UnsupportedTable
from acktrail.lake import Lake, Position

NOW = datetime(2026, 1, 31, 7, tzinfo=UTC)


def records(positions: range, file_id: str = "f") -> pa.Table:
    return rows(
        LOG_RECORDS,
        [
            {
                "cluster": "c",
                "source": "s",
                "file_id": file_id,
                "position": p,
                "text": f"line {p}",
                "truncated": False,
                "read_at": NOW,
                "day": "2026-01-31",
            }
            for p in positions
        ],
    )


def stored(lake: Lake, file_id: str = "f") -> list[int]:
    found = lake.read(LOG_RECORDS, columns=["file_id", "position"]).to_pylist()
    return sorted(r["position"] for r in found if r["file_id"] == file_id)


def test_rows_and_position_become_visible_together(tmp_path: Path) -> None:
    lake = Lake(tmp_path)
    assert lake.position(LOG_RECORDS, "s/f") is None
    lake.append(LOG_RECORDS, records(range(3)), [Position("s/f", None, 0)])
    assert lake.position(LOG_RECORDS, "s/f") == 0, "position 0 is not 'never read'"
    lake.append(LOG_RECORDS, records(range(3, 5)), [Position("s/f", 0, 5)])
    assert (stored(lake), lake.position(LOG_RECORDS, "s/f")) == ([0, 1, 2, 3, 4], 5)


def test_a_late_second_writer_is_refused(tmp_path: Path) -> None:
    lake = Lake(tmp_path)
    lake.append(LOG_RECORDS, records(range(10)), [Position("s/f", None, 10)])
    with pytest.raises(PositionConflict, match="is at 10, but this batch began at None"):
        Lake(tmp_path).append(LOG_RECORDS, records(range(10)), [Position("s/f", None, 10)])
    assert stored(lake) == list(range(10))


def test_one_refused_position_refuses_the_whole_commit(tmp_path: Path) -> None:
    lake = Lake(tmp_path)
    lake.append(LOG_RECORDS, records(range(1)), [Position("a", None, 1)])
    moves = [Position("b", None, 1), Position("a", None, 1)]
    with pytest.raises(PositionConflict):
        lake.append(LOG_RECORDS, records(range(1), "g"), moves)
    assert lake.position(LOG_RECORDS, "b") is None
    assert stored(lake, "g") == []


@settings(
    max_examples=15, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture]
)
@given(steps=st.lists(st.tuples(st.sampled_from(["append", "crash", "replay"]), st.integers(1, 4))))
def test_any_sequence_of_appends_crashes_and_replays_keeps_each_row_once(
    tmp_path_factory: pytest.TempPathFactory, steps: list[tuple[str, int]]
) -> None:
    """A crash forgets what the writer knew; a replay sends an old batch again."""
    lake = Lake(tmp_path_factory.mktemp("lake"))
    reached: int | None = None
    before: tuple[int | None, int] | None = None
    for step, size in steps:
        if step == "crash":
            lake = Lake(lake.uri)
            reached = lake.position(LOG_RECORDS, "s/f")
        elif step == "replay" and before is not None:
            began, end = before
            batch = records(range(began or 0, end))
            with pytest.raises(PositionConflict):
                lake.append(LOG_RECORDS, batch, [Position("s/f", began, end)])
        else:
            end = (reached or 0) + size
            batch = records(range(reached or 0, end))
            lake.append(LOG_RECORDS, batch, [Position("s/f", reached, end)])
            before, reached = (reached, end), end
    assert stored(lake) == list(range(reached or 0))


def _append_forever(uri: str, name: str) -> None:
    lake = Lake(uri)
    while True:
        began = lake.position(LOG_RECORDS, name)
        start = began or 0
        lake.append(
            LOG_RECORDS, records(range(start, start + 5), name), [Position(name, began, start + 5)]
        )


def _until_both_have_written(uri: Path, stored_before: int) -> None:
    deadline = time.monotonic() + 60
    while time.monotonic() < deadline:
        reached = [Lake(uri).position(LOG_RECORDS, name) or 0 for name in ("w0", "w1")]
        if min(reached) > stored_before:
            return
        time.sleep(0.05)
    raise AssertionError(f"the writers wrote nothing within a minute: {reached}")


def test_killed_writers_leave_each_row_once(tmp_path: Path) -> None:
    spawn = multiprocessing.get_context("spawn")
    for round_ in range(2):
        writers = [
            spawn.Process(target=_append_forever, args=(str(tmp_path), f"w{i}")) for i in range(2)
        ]
        for writer in writers:
            writer.start()
        _until_both_have_written(tmp_path, stored_before=round_ * 10)
        time.sleep(0.13 * round_)
        for writer in writers:
            assert writer.pid is not None
            os.kill(writer.pid, signal.SIGKILL)
            writer.join()
    lake = Lake(tmp_path)
    for name in ("w0", "w1"):
        reached = lake.position(LOG_RECORDS, name)
        assert reached, "the writer never got to write"
        assert stored(lake, name) == list(range(reached))


STRANGE_ROWS = [
    ("a column the table does not have", {"colour": "red"}, "unexpected columns: colour"),
    ("a text where a number belongs", {"position": "first"}, "does not fit"),
    ("a number beyond 64 bits", {"position": 2**70}, "does not fit"),
    ("nothing where something is required", {"text": None}, "log_records.text is required"),
]


@pytest.mark.parametrize(
    ("row", "said"), [c[1:] for c in STRANGE_ROWS], ids=[c[0] for c in STRANGE_ROWS]
)
def test_rows_that_do_not_fit_never_reach_the_table(
    tmp_path: Path, row: dict[str, object], said: str
) -> None:
    good = records(range(1)).to_pylist()[0]
    with pytest.raises(ContractError, match=said):
        Lake(tmp_path).append(LOG_RECORDS, rows(LOG_RECORDS, [{**good, **row}]))
    assert not Lake(tmp_path).exists(LOG_RECORDS)


def test_a_word_outside_the_closed_list_is_refused(tmp_path: Path) -> None:
    alert = {
        "fingerprint": "f", "number": 1, "step": 0, "changed_at": NOW,
        "status": "open", "delivered": [],
        "check": "c", "grade": "dreadful", "owner": "o", "starts_at": NOW,
    }  # fmt: skip
    with pytest.raises(ContractError, match=r"dreadful.*is not one of warn, fail"):
        Lake(tmp_path).append(ALERTS, rows(ALERTS, [alert]))


def test_names_from_data_never_become_paths(tmp_path: Path) -> None:
    lake = Lake(tmp_path / "lake")
    wild = "../../escape/%2e%2e\x00 ü"
    table = rows(LOG_RECORDS, [{**records(range(1)).to_pylist()[0], "day": wild, "file_id": wild}])
    lake.append(LOG_RECORDS, table, [Position(wild, None, 1)])
    assert lake.read(LOG_RECORDS).to_pylist()[0]["day"] == wild
    assert [p.name for p in tmp_path.iterdir()] == ["lake"]


def test_a_table_with_deletion_vectors_is_refused(tmp_path: Path) -> None:
    lake = Lake(tmp_path)
    lake.append(LOG_RECORDS, records(range(1)))
    commit = tmp_path / "bronze/log_records/_delta_log/00000000000000000002.json"
    protocol = {
        "minReaderVersion": 3,
        "minWriterVersion": 7,
        "readerFeatures": ["deletionVectors"],
        "writerFeatures": ["deletionVectors"],
    }
    commit.write_text(json.dumps({"protocol": protocol}) + "\n")
    with pytest.raises(UnsupportedTable, match="deletionVectors"):
        lake.read(LOG_RECORDS)


def test_a_contract_that_grew_a_column_still_reads_and_appends(tmp_path: Path) -> None:
    lake = Lake(tmp_path)
    old = records(range(1)).drop_columns(["marker"])
    write_deltalake(lake.path(LOG_RECORDS), old, partition_by=["day"])
    assert lake.read(LOG_RECORDS).column("marker").to_pylist() == [None]
    lake.append(LOG_RECORDS, records(range(1, 2)))
    assert stored(lake) == [0, 1]


def test_a_column_of_another_type_is_refused_with_the_remedy(tmp_path: Path) -> None:
    lake = Lake(tmp_path)
    write_deltalake(lake.path(LOG_RECORDS), pa.table({"position": ["one"]}))
    with pytest.raises(ContractError, match="Move the table away"):
        lake.read(LOG_RECORDS)


def test_a_table_written_by_a_newer_release_is_refused(tmp_path: Path) -> None:
    lake = Lake(tmp_path)
    write_deltalake(lake.path(LOG_RECORDS), pa.table({"from_the_future": [1]}))
    with pytest.raises(ContractError, match="newer acktrail"):
        lake.read(LOG_RECORDS)


def test_data_without_a_log_is_damage_not_an_empty_table(tmp_path: Path) -> None:
    lake = Lake(tmp_path)
    lake.append(LOG_RECORDS, records(range(1)))
    for entry in (tmp_path / "bronze/log_records/_delta_log").iterdir():
        entry.unlink()
    with pytest.raises(LakeDamaged, match="no readable _delta_log"):
        lake.read(LOG_RECORDS)


def test_added_since_names_only_what_came(tmp_path: Path) -> None:
    lake = Lake(tmp_path)
    assert lake.added(LOG_RECORDS, None) is None
    first = lake.append(LOG_RECORDS, records(range(3)))
    lake.append(LOG_RECORDS, records(range(3, 7)))
    added = lake.added(LOG_RECORDS, first)
    assert added is not None
    assert (added.rows, len(added.files), added.complete) == (4, 1, True)


def test_added_asks_for_a_rebuild_where_compaction_hid_what_came(tmp_path: Path) -> None:
    lake = Lake(tmp_path)
    first = lake.append(LOG_RECORDS, records(range(3)))
    lake.append(LOG_RECORDS, records(range(3, 7)))
    DeltaTable(lake.path(LOG_RECORDS)).optimize.compact()
    added = lake.added(LOG_RECORDS, first)
    assert added is not None
    assert (added.complete, added.rows) == (False, 7)


def test_compaction_alone_is_no_news(tmp_path: Path) -> None:
    lake = Lake(tmp_path)
    lake.append(LOG_RECORDS, records(range(3)))
    last = lake.append(LOG_RECORDS, records(range(3, 7)))
    DeltaTable(lake.path(LOG_RECORDS)).optimize.compact()
    added = lake.added(LOG_RECORDS, last)
    assert added is not None
    assert (added.files, added.partitions, added.complete) == ({}, (), True)
