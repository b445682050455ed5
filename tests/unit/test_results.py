"""Rows of any type as text, JSON, CSV and Parquet: nothing of a value is lost."""

from __future__ import annotations

import csv
import io
import json
from datetime import UTC, date, datetime, timedelta
from decimal import Decimal
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from acktrail.errors import UsageError
from acktrail.terminal.results import format_of, records, write_expanded, write_results

AT = datetime(2026, 1, 31, 7, 8, 9, 123456, tzinfo=UTC)
VALUES = [
    (pa.timestamp("us", "UTC"), AT, "2026-01-31T07:08:09.123456Z"),
    (pa.timestamp("us", "UTC"), AT.replace(microsecond=0), "2026-01-31T07:08:09.000Z"),
    (pa.timestamp("us"), AT.replace(tzinfo=None), "2026-01-31T07:08:09.123456"),
    (pa.date32(), date(2026, 1, 31), "2026-01-31"),
    (pa.duration("us"), timedelta(days=1, seconds=2), "1 day, 0:00:02"),
    (pa.decimal128(38, 2), Decimal("1.50"), 1.5),
    (pa.decimal128(38, 0), Decimal("12345678901234567890"), 12345678901234567890),
    (pa.decimal128(38, 20), Decimal("0.12345678901234567890"), "0.12345678901234567890"),
    (pa.binary(), b"\x00\xff", "00ff"),
    (pa.float64(), float("nan"), None),
    (pa.float64(), float("inf"), "inf"),
    (pa.map_(pa.string(), pa.int64()), [("a", 1)], {"a": 1}),
    (pa.map_(pa.int64(), pa.binary()), [(7, b"\x01")], {"7": "01"}),
    (pa.list_(pa.struct([("x", pa.date32())])), [{"x": date(2026, 1, 1)}], [{"x": "2026-01-01"}]),
    (pa.string(), None, None),
    (pa.bool_(), True, True),
]


@pytest.mark.parametrize(("kind", "value", "shown"), VALUES, ids=lambda v: str(v)[:40])
def test_each_type(kind: pa.DataType, value: object, shown: object, tmp_path: Path) -> None:
    found = pa.table({"x": pa.array([value], kind)})
    assert [row["x"] for row in records(found)] == [shown]
    out = io.StringIO()
    write_results(found, "json", stream=out)
    assert json.loads(out.getvalue()) == {"x": shown}
    out = io.StringIO()
    write_results(found, "csv", stream=out)
    (_, (cell,)) = csv.reader(io.StringIO(out.getvalue()))
    assert (cell == "") == (shown is None)
    write_results(found, "parquet", str(tmp_path / "x.parquet"))
    assert pq.read_table(tmp_path / "x.parquet").schema.field("x").type == kind


@pytest.mark.parametrize(
    ("chosen", "file", "output"),
    [
        (None, None, "text"),
        (None, "a.parquet", "parquet"),
        (None, "a.JSONL", "json"),
        (None, "a.csv", "csv"),
        (None, "a.out", "text"),
        ("json", "a.csv", "json"),
    ],
)
def test_the_format_follows_the_name(chosen: str | None, file: str | None, output: str) -> None:
    assert format_of(chosen, file) == output


def test_a_file_appears_whole_or_not_at_all(tmp_path: Path) -> None:
    found = pa.table({"x": [1]})
    with pytest.raises(UsageError, match="cannot be written"):
        write_results(found, "csv", str(tmp_path / "none" / "a.csv"))
    kept = tmp_path / "a.csv"
    kept.write_text("before")
    odd = pa.table({"x": pa.array([b"\xff"], pa.binary())})
    write_results(odd, "csv", str(kept))
    assert kept.read_text() == "x\nff\n"
    assert list(tmp_path.iterdir()) == [kept]


def test_rows_below_each_other() -> None:
    out = io.StringIO()
    write_expanded(pa.table({"a": [1, 2], "long_name": ["x", None]}), out)
    assert out.getvalue() == (
        "-- row 1\na          1\nlong_name  x\n-- row 2\na          2\nlong_name\n"
    )
