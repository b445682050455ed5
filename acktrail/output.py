"""Results on stdout: a table for people, JSON lines or CSV for pipes."""

from __future__ import annotations

import csv
import json
import math
import sys
from collections.abc import Iterable, Mapping, Sequence
from datetime import UTC, datetime, timedelta
from typing import Any, TextIO

MOMENT = "%Y-%m-%dT%H:%M:%S.%f"


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
        _write_table([[text(r.get(c)) for c in columns] for r in records], columns, out)


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


def _write_table(cells: list[list[str]], columns: Sequence[str], out: TextIO) -> None:
    widths = [max([len(name), *(len(row[i]) for row in cells)]) for i, name in enumerate(columns)]
    for row in [list(columns), *cells]:
        line = "  ".join(cell.ljust(width) for cell, width in zip(row, widths, strict=True))
        out.write(line.rstrip() + "\n")
