"""Tables of an earlier version are rewritten in one commit, and nothing they say changes."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.dataset as ds
import pytest
from deltalake import CommitProperties, DeltaTable, write_deltalake

from acktrail.contracts import TABLES
from acktrail.contracts.arrow import schema
from acktrail.contracts.gold import DELIVERY_LEDGER
from acktrail.contracts.silver import AUDIT_BLOCKS
from acktrail.crashpoints import VARIABLE
from acktrail.errors import ContractError, LakeBusy
from acktrail.lake import Lake, migration, tables
from expectations.views import frame
from pipelines.migrations import CONVERTERS, migrate
from tests.worlds import former_lake
from tests.worlds.former_lake import answers_now, answers_then

ROOT = Path(__file__).parents[3]
FORMER = {AUDIT_BLOCKS.name: "parts", DELIVERY_LEDGER.name: "findings"}


@pytest.fixture
def lake(tmp_path: Path) -> Lake:
    return former_lake.unpacked(tmp_path / "lake")


def raw_rows(lake: Lake, table) -> list[dict]:
    """The rows as stored, in any order, by Arrow alone."""
    delta = DeltaTable(lake.path(table))
    files = [uri.removeprefix("file://") for uri in delta.file_uris()]
    read = ds.dataset(files, partitioning="hive").to_table()
    order = [(name, "ascending") for name in table.grain]
    return read.sort_by(order).to_pylist()


def test_every_column_that_changed_its_kind_can_be_migrated():
    changed = {t.name: {c.name for c in t.columns if c.former} for t in TABLES}
    assert {name: columns for name, columns in changed.items() if columns} == {
        name: set(converters) for name, converters in CONVERTERS.items()
    }


def test_before_the_migration_what_can_be_read_is_and_the_rest_names_the_remedy(lake):
    assert answers_now(lake) == answers_then()
    checked = frame(lake, DELIVERY_LEDGER)
    assert checked is not None
    assert len(checked) == 4
    for table in former_lake.TABLES:
        with pytest.raises(ContractError, match=r"earlier acktrail.*Run `acktrail run`"):
            lake.read(table)


def test_a_migration_changes_the_form_of_rows_and_nothing_else(lake):
    for table in former_lake.TABLES:
        column = FORMER[table.name]
        before, note = raw_rows(lake, table), lake.note(table, table.name)
        position, version = lake.position(table, table.name), lake.version(table)
        described = lake.open(table).metadata()
        assert migrate(lake, table)
        after = raw_rows(lake, table)
        assert len(before) == len(after) > 0
        for old, new in zip(before, after, strict=True):
            grown = dict.fromkeys(new.keys() - old.keys())
            assert {**grown, **old, column: None} == {**new, column: None}
            assert CONVERTERS[table.name][column](old[column]) == new[column]
        assert lake.position(table, table.name) == position
        assert lake.note(table, table.name).consumed == note.consumed
        now = lake.open(table).metadata()
        assert (now.id, now.name, now.partition_columns, now.configuration) == (
            described.id, described.name, described.partition_columns, described.configuration,
        )  # fmt: skip
        assert pa.schema(lake.open(table).schema().to_arrow()).names == schema(table).names
        assert not lake.added(table, version).files
        assert not lake.added(table, version).partitions
        assert lake.unread(table, version) is None
        assert not migrate(lake, table), "a second time there is nothing to do"
    assert answers_now(lake) == answers_then()


def test_structs_that_grew_fields_are_migrated_too(lake, tmp_path):
    migrate(lake, AUDIT_BLOCKS)
    order = [(name, "ascending") for name in AUDIT_BLOCKS.grain]
    now = lake.read(AUDIT_BLOCKS).sort_by(order)
    had = now.schema.field("parts").type.value_type.fields[:-2]
    shorter = pa.list_(pa.struct(had))
    grown = ("after_ms", "received_ms")
    rows = [
        [{name: value for name, value in part.items() if name not in grown} for part in parts]
        for parts in now.column("parts").to_pylist()
    ]
    at = now.column_names.index("parts")
    former = now.set_column(at, pa.field("parts", shorter), pa.array(rows, shorter))
    other = Lake(tmp_path / "other")
    write_deltalake(other.path(AUDIT_BLOCKS), former, partition_by=list(AUDIT_BLOCKS.partition))
    with pytest.raises(ContractError, match="earlier acktrail"):
        other.read(AUDIT_BLOCKS, columns=["parts"])
    assert migrate(other, AUDIT_BLOCKS)
    assert other.read(AUDIT_BLOCKS).sort_by(order).column("parts").to_pylist() == [
        [{**part, **dict.fromkeys(grown)} for part in parts] for parts in rows
    ]
    assert not migrate(other, AUDIT_BLOCKS)


def test_the_fields_of_a_finding_and_of_a_part(lake):
    for table in former_lake.TABLES:
        migrate(lake, table)
    ledger = lake.read(
        DELIVERY_LEDGER, (pc.field("session") == "old-session") & (pc.field("group") == "")
    )
    (findings,) = ledger.column("findings").to_pylist()
    assert [(f["first_seq"], f["last_seq"], f["state"], f["error"]) for f in findings] == [
        (20, 22, "lost_after_ack", None),
        (30, 30, "lost_after_ack", None),
        (35, 36, "rejected", "RecordTooLargeException"),
    ]
    acked = (pc.field("session") == "old-session") & (pc.field("tier") == "acked")
    (parts,) = lake.read(AUDIT_BLOCKS, acked).column("parts").to_pylist()
    assert [(p["reporter"], p["first_offset"], p["last_offset"]) for p in parts] == [("p", 0, 39)]


@pytest.mark.parametrize("table", former_lake.TABLES, ids=lambda t: t.name)
def test_a_crash_before_the_commit_leaves_the_old_table(lake, table):
    before = raw_rows(lake, table)
    program = (
        "import sys; from acktrail.contracts import table_named; from acktrail.lake import Lake; "
        "from pipelines.migrations import migrate; "
        "migrate(Lake(sys.argv[1]), table_named(sys.argv[2]))"
    )
    environment = {**os.environ, VARIABLE: "lake.migration_written", "PYTHONPATH": str(ROOT)}
    ended = subprocess.run(
        [sys.executable, "-c", program, lake.uri, table.name], env=environment, check=False
    )
    assert ended.returncode == 137
    assert raw_rows(lake, table) == before
    assert lake.outdated(table) == [FORMER[table.name]]
    assert migrate(lake, table)
    assert len(raw_rows(lake, table)) == len(before)


def overtake(lake: Lake, table) -> None:
    """Commit as another driver would: one partition's rows go."""
    delta = DeltaTable(lake.path(table))
    note = json.dumps({"job": table.name, "run": 2, "consumed": {"audit_parts": 3}})
    delta.create_write_transaction(
        [],
        mode="overwrite",
        schema=pa.schema(delta.schema().to_arrow()),
        partition_by=list(table.partition),
        partition_filters=[("bucket", "=", "xfa.0")],
        commit_properties=CommitProperties(custom_metadata={"userMetadata": note}),
    )


def test_a_commit_in_between_is_kept(lake, monkeypatch):
    written = []

    def come_between(_name: str) -> None:
        if not written:
            overtake(lake, AUDIT_BLOCKS)
        written.append(1)

    monkeypatch.setattr(migration, "crash_point", come_between)
    assert migrate(lake, AUDIT_BLOCKS)
    assert len(written) == 2
    assert {row["bucket"] for row in raw_rows(lake, AUDIT_BLOCKS)} == {"xbb.0"}
    assert lake.consumed(AUDIT_BLOCKS, AUDIT_BLOCKS.name) == {"audit_parts": 3}


def test_writers_that_never_stop_make_it_busy(lake, monkeypatch):
    monkeypatch.setattr(tables, "ATTEMPTS", 2)
    monkeypatch.setattr(migration, "crash_point", lambda _name: overtake(lake, AUDIT_BLOCKS))
    with pytest.raises(LakeBusy, match="not migrated"):
        migrate(lake, AUDIT_BLOCKS)
    assert lake.outdated(AUDIT_BLOCKS) == ["parts"]


def test_what_was_unread_before_a_migration_is_unread_after_it(lake):
    """Version 1 wrote one bucket and version 2 the other: a job that has read up to 1."""
    (before,) = lake.added(AUDIT_BLOCKS, 1).partitions
    rows = lake.unread(AUDIT_BLOCKS, 1).rows
    migrate(lake, AUDIT_BLOCKS)
    added = lake.added(AUDIT_BLOCKS, 1)
    assert added.complete
    assert added.partitions == (before,)
    assert list(added.files.values()) == [before]
    assert added.files.keys() < added.standing.keys()
    assert lake.unread(AUDIT_BLOCKS, 1).rows == rows == added.rows


def test_a_row_that_cannot_be_read_stops_the_migration(lake):
    with pytest.raises(ContractError, match=r"audit_blocks.parts: .* cannot be migrated"):
        lake.migrate(
            AUDIT_BLOCKS, {"parts": lambda data: CONVERTERS["audit_blocks"]["parts"](data[:-1])}
        )
    assert lake.outdated(AUDIT_BLOCKS) == ["parts"]
