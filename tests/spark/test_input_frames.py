"""The rows that a job is given are the same, whether Arrow, Spark or Delta's index reads them."""

from __future__ import annotations

import json
from datetime import UTC, datetime
from pathlib import Path

import pyarrow as pa
import pyarrow.dataset as ds
import pytest

from acktrail.contracts import Table
from acktrail.contracts.arrow import arrow_type, schema
from acktrail.contracts.bronze import CLUSTER_STATES
from acktrail.contracts.gold import DELIVERY_LEDGER
from acktrail.contracts.silver import AUDIT_BLOCKS, AUDIT_PARTS
from acktrail.lake import Change, Lake
from acktrail.lake.data_files import write_files
from pipelines import input_frames

AT = datetime(2026, 1, 31, 7, 15, 0, 123_456, tzinfo=UTC)
READERS = {
    "arrow": {},
    "spark": {"FEW_ROWS": 0},
    "delta's index": {"FEW_ROWS": 0, "FILES_LISTED": 0},
}
VALUES = {
    "string": ["", "a b%2F=", "ü\n", None],
    "long": [0, -1, 1 << 62, None],
    "double": [0.0, -1.5, float("inf"), None],
    "boolean": [True, False, True, None],
    "timestamp": [AT, AT.replace(year=1970), AT.replace(microsecond=0), None],
    "binary": [b"", b"\x00\xff", b"a", None],
    "strings": [[], ["a", None], ["b"], None],
    "longs": [[], [1, None], [2], None],
    "attributes": [[], [("a", "b"), ("c", None)], [("", "")], None],
}


def rows_of(table: Table) -> pa.Table:
    """Rows with every value that a column can have; nulls where the contract allows them."""
    columns = {}
    for column in table.columns:
        values = VALUES.get(column.kind)
        if values is None:
            fields = {f.name: VALUES[f.kind][1] for f in column.fields}
            values = [[], [fields], [fields, dict.fromkeys(fields)], None]
        if column.name in table.partition:
            values = ["2026-01-31", "2026-01-31T07", "a b%2F=", "2026-01-31"]
        if column.required:
            values = [*values[:3], values[1]]
        columns[column.name] = pa.array(values, arrow_type(column))
    return pa.table(columns, schema=schema(table))


@pytest.mark.parametrize(
    "table", [AUDIT_PARTS, AUDIT_BLOCKS, DELIVERY_LEDGER], ids=lambda table: table.name
)
def test_every_reader_gives_the_same_rows(table, spark, tmp_path: Path, monkeypatch) -> None:
    lake = Lake(tmp_path)
    lake.create(table)
    made = rows_of(table)
    for some in (made.slice(0, 2), made.slice(2)):
        lake.put(table, write_files(table, some, lake.at(table)), Change())
    seen = lake.look(table)
    assert seen is not None
    found = {}
    for name, limits in READERS.items():
        with monkeypatch.context() as patch:
            for limit, value in limits.items():
                patch.setattr(input_frames, limit, value)
            frame = input_frames.frame_of(spark, lake, table, seen, None)
            found[name] = (
                frame.dtypes,
                sorted(json.dumps(r.asDict(True), default=repr) for r in frame.collect()),
            )
    assert len(found["arrow"][1]) == made.num_rows
    assert found["arrow"] == found["spark"] == found["delta's index"]


def test_a_row_is_given_where_a_null_leaves_open_whether_it_matters(spark, tmp_path) -> None:
    lake = Lake(tmp_path)
    lake.create(CLUSTER_STATES)
    states = write_files(CLUSTER_STATES, rows_of(CLUSTER_STATES), lake.at(CLUSTER_STATES))
    lake.put(CLUSTER_STATES, states, Change())
    seen = lake.look(CLUSTER_STATES)
    assert seen is not None
    least = ds.field("latest_offset") > 0
    frame = input_frames.frame_of(spark, lake, CLUSTER_STATES, seen, least)
    assert {row["latest_offset"] for row in frame.collect()} == {1 << 62, None}
