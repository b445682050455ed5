"""Results on stdout: a table for people, JSON lines or CSV for pipes."""

from __future__ import annotations

import csv
import json
import math
import shutil
import sys
import textwrap
from collections.abc import Iterable, Iterator, Mapping, Sequence
from datetime import UTC, datetime, timedelta
from typing import Any, TextIO

MOMENT = "%Y-%m-%dT%H:%M:%S.%f"
WIDEST = 119
"""Characters in a line on a terminal, however wide it is."""
NARROWEST = 40
"""A last column with less room than this goes below its line instead."""


def write_rows(
    records: Iterable[Mapping[str, Any]],
    columns: Sequence[str],
    output: str = "text",
    stream: TextIO | None = None,
) -> None:
    """Write *records*: an aligned table, one JSON object per line, or CSV with a header."""
    out = stream or sys.stdout
    if output == "json":
        for record in records:
            shown = {c: plain(record.get(c)) for c in columns}
            out.write(json.dumps(shown, ensure_ascii=False) + "\n")
    elif output == "csv":
        writer = csv.writer(out, lineterminator="\n")
        writer.writerow(columns)
        for record in records:
            writer.writerow([text(record.get(c)) for c in columns])
    else:
        _write_table([[_cell(r.get(c)) for c in columns] for r in records], columns, out)


def plain(value: Any) -> Any:
    """*value* as JSON can hold it: moments as UTC text, bytes as hex, lists and maps inside out."""
    if isinstance(value, datetime):
        return moment(value)
    if isinstance(value, bytes):
        return value.hex()
    if isinstance(value, Mapping):
        return {str(k): plain(v) for k, v in value.items()}
    if isinstance(value, list | tuple):
        return [plain(v) for v in value]
    if isinstance(value, float) and math.isnan(value):
        return None
    return value


def moment(value: datetime) -> str:
    """UTC with milliseconds and a Z."""
    aware = value if value.tzinfo else value.replace(tzinfo=UTC)
    return aware.astimezone(UTC).strftime(MOMENT)[:-3] + "Z"


def seconds_until(end: datetime | None, as_of: datetime) -> int | None:
    """Whole seconds until *end*; 0 once it may have come."""
    return None if end is None else max(0, int((end - as_of) / timedelta(seconds=1)))


def text(value: Any) -> str:
    """*value* in a cell."""
    value = plain(value)
    if value is None:
        return ""
    if isinstance(value, bool):
        return "yes" if value else "no"
    if isinstance(value, list | dict):
        return json.dumps(value, ensure_ascii=False)
    return str(value)


def _cell(value: Any) -> str:
    """*value* in a table for people: short numbers, texts and counts without brackets."""
    if isinstance(value, float) and not math.isnan(value):
        return str(round(value, 3))
    if isinstance(value, list | tuple) and value and all(isinstance(v, str) for v in value):
        return "; ".join(value)
    if isinstance(value, Mapping) and value and all(type(v) is int for v in value.values()):
        return ", ".join(f"{count} {name}" for name, count in value.items())
    return text(value)


def _write_table(cells: list[list[str]], columns: Sequence[str], out: TextIO) -> None:
    widths = [max([len(name), *(len(row[i]) for row in cells)]) for i, name in enumerate(columns)]
    for row in [list(columns), *cells]:
        before = "".join(f"{cell:<{w}}  " for cell, w in zip(row[:-1], widths[:-1], strict=True))
        write_line(before, row[-1], out)


def write_line(before: str, last: str, stream: TextIO | None = None) -> None:
    """Write *before* and *last*; on a terminal *last* goes on below where it is long."""
    out = stream or sys.stdout
    for line in _wrapped(before, last, _terminal_width(out)):
        out.write(line.rstrip() + "\n")


def _terminal_width(out: TextIO) -> int | None:
    """How wide lines may be where a person reads them; None for pipes and files."""
    return min(shutil.get_terminal_size().columns, WIDEST) if out.isatty() else None


def _wrapped(before: str, last: str, limit: int | None) -> Iterator[str]:
    """A line of a table: a long last cell goes on below, under its column where there is room."""
    if limit is None or len((before + last).rstrip()) <= limit or not last:
        yield before + last
        return
    indent = len(before) if limit - len(before) >= NARROWEST else 4
    lines = textwrap.wrap(last, max(limit - indent, 1), break_on_hyphens=False) or [""]
    if indent < len(before):
        yield before
        yield from (" " * indent + line for line in lines)
        return
    yield before + lines[0]
    yield from (" " * indent + line for line in lines[1:])
