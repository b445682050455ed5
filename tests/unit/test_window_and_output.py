"""Moments, windows, and what is printed."""

from __future__ import annotations

import csv
import io
import json
from datetime import UTC, datetime

import pytest

from acktrail.errors import UsageError
from acktrail.output import write_rows
from acktrail.window import Window, hour_of, instant

MOMENTS = [
    ("with Z", "2026-01-31T07:00Z", datetime(2026, 1, 31, 7, tzinfo=UTC)),
    ("a date alone", "2026-01-31", datetime(2026, 1, 31, tzinfo=UTC)),
    (
        "without an offset it is UTC",
        "2026-01-31T07:00:01",
        datetime(2026, 1, 31, 7, 0, 1, tzinfo=UTC),
    ),
    ("with an offset", "2026-01-31T07:00+02:00", datetime(2026, 1, 31, 5, tzinfo=UTC)),
]


@pytest.mark.parametrize(("text", "moment"), [c[1:] for c in MOMENTS], ids=[c[0] for c in MOMENTS])
def test_moments(text: str, moment: datetime) -> None:
    assert instant(text) == moment


@pytest.mark.parametrize("text", ["", "soon", "2026-01-31", "2026-02-01/2026-01-01", "a/b"])
def test_what_is_no_window_is_refused(text: str) -> None:
    with pytest.raises(UsageError):
        Window.parse(text)


def test_a_window_is_half_open() -> None:
    window = Window.parse("2026-01-31T00:00Z/2026-02-01T00:00Z")
    assert window.contains(window.start)
    assert not window.contains(window.end)
    assert hour_of(window.end) == "2026-02-01T00"


ROW = {
    "a": 'x,"y"\n',
    "b": None,
    "c": datetime(2026, 1, 31, tzinfo=UTC),
    "d": ["ü"],
    "e": float("nan"),
}


def printed(output: str) -> str:
    out = io.StringIO()
    write_rows([ROW], list(ROW), output, out)
    return out.getvalue()


def test_json_is_one_object_per_line_and_strict() -> None:
    line = printed("json")
    assert line.count("\n") == 1
    assert json.loads(line, parse_constant=pytest.fail) == {
        "a": 'x,"y"\n', "b": None, "c": "2026-01-31T00:00:00.000Z", "d": ["ü"], "e": None,
    }  # fmt: skip


def test_csv_reads_back() -> None:
    header, row = csv.reader(io.StringIO(printed("csv")))
    assert header == list(ROW)
    assert row == ['x,"y"\n', "", "2026-01-31T00:00:00.000Z", '["ü"]', ""]
