"""Moments, windows, and what is printed."""

from __future__ import annotations

import csv
import io
import json
from datetime import UTC, datetime

import pytest

from acktrail.errors import UsageError
from acktrail.terminal.output import write_rows
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


CELLS = [
    # value, as JSON and CSV have it, as a table shows it
    (4.3419623374938965, "4.3419623374938965", "4.342"),
    (["Topic a is gone.", "b"], '["Topic a is gone.", "b"]', "Topic a is gone.; b"),
    ({"not_configured": 319, "poison": 2}, None, "319 not_configured, 2 poison"),
    ([1, 2], "[1, 2]", "[1, 2]"),
    ({}, "{}", "{}"),
    (True, "yes", "yes"),
]


@pytest.mark.parametrize(("value", "exact", "shown"), CELLS)
def test_a_table_is_for_people(value: object, exact: str | None, shown: str) -> None:
    table, file = io.StringIO(), io.StringIO()
    write_rows([{"a": value}], ["a"], "text", table)
    write_rows([{"a": value}], ["a"], "csv", file)
    assert table.getvalue() == f"a\n{shown}\n"
    _, (cell,) = csv.reader(io.StringIO(file.getvalue()))
    assert cell == (exact or '{"not_configured": 319, "poison": 2}')


class Terminal(io.StringIO):
    """Where a person reads."""

    def isatty(self) -> bool:
        return True


@pytest.mark.parametrize("columns", [80, 100, 119, 300])
@pytest.mark.parametrize("name", ["short", "x" * 90])
def test_long_cells_wrap_on_a_terminal_and_not_in_a_pipe(
    name: str, columns: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("COLUMNS", str(columns))
    because = " ".join(f"word{n}" for n in range(60))
    row = {"name": name, "because": because}
    person, pipe = Terminal(), io.StringIO()
    write_rows([row], list(row), "text", person)
    write_rows([row], list(row), "text", pipe)
    assert len(pipe.getvalue().splitlines()) == 2
    lines = person.getvalue().splitlines()
    assert max(map(len, lines)) <= max(min(columns, 119), len(name))
    assert " ".join(person.getvalue().split()) == f"name because {name} {because}"
