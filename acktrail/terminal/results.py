"""The rows of a question, of any type: a table for people, JSON lines, CSV or a Parquet file."""

from __future__ import annotations

import contextlib
import csv
import json
import math
import sys
from collections.abc import Iterator
from datetime import UTC, date, datetime, time, timedelta
from decimal import Decimal
from pathlib import Path
from typing import IO, Any, TextIO

import pyarrow as pa

from acktrail.errors import UsageError
from acktrail.terminal.output import write_line, write_rows

FORMATS = ("text", "json", "csv", "parquet")
_SUFFIXES = {".json": "json", ".jsonl": "json", ".ndjson": "json", ".csv": "csv"}


def format_of(chosen: str | None, file: str | None) -> str:
    """The format that was *chosen*, else that of the name of *file*, else text."""
    if chosen:
        return chosen
    suffix = Path(file).suffix.lower() if file else ""
    return "parquet" if suffix == ".parquet" else _SUFFIXES.get(suffix, "text")


def write_results(
    found: pa.Table, output: str, file: str | None = None, stream: TextIO | None = None
) -> None:
    """Write *found* to *file*, else to *stream* or stdout. A file appears whole or not at all."""
    if file is None:
        if output == "parquet":
            if sys.stdout.isatty():
                raise UsageError("Parquet is not for a terminal. Add -o FILE.")
            _write_parquet(found, sys.stdout.buffer)
        else:
            _write_text(found, output, stream or sys.stdout)
        return
    path = Path(file)
    unfinished = path.with_name(f".{path.name}.unfinished")
    try:
        with _removed_at_the_end(unfinished):
            if output == "parquet":
                with unfinished.open("wb") as parquet:
                    _write_parquet(found, parquet)
            else:
                with unfinished.open("w", encoding="utf-8") as lines:
                    _write_text(found, output, lines)
            unfinished.replace(path)
    except OSError as error:
        raise UsageError(f"{file} cannot be written: {error.strerror or error}.") from error


def write_lines(found: pa.Table, stream: TextIO | None = None) -> None:
    """Write the one column of *found*, a text, line by line."""
    out = stream or sys.stdout
    for line in found.column(0).to_pylist():
        out.write(f"{line}\n")


def records(found: pa.Table) -> Iterator[dict[str, Any]]:
    """The rows of *found* as JSON can hold them, nothing of a value lost."""
    kinds = {field.name: field.type for field in found.schema}
    for batch in found.to_batches(max_chunksize=10_000):
        for row in batch.to_pylist():
            yield {name: plain(row[name], kind) for name, kind in kinds.items()}


def plain(value: Any, kind: pa.DataType) -> Any:
    """*value*, of the Arrow type *kind*, as JSON can hold it.

    Instants have a zone and as many digits as they need, local times have no zone, decimals are
    numbers where a double holds them exactly and else texts, bytes are hex, maps are objects.
    """
    if value is None:
        return None
    if pa.types.is_map(kind):
        return {
            _key(plain(key, kind.key_type)): plain(inner, kind.item_type) for key, inner in value
        }
    if pa.types.is_struct(kind):
        fields = [kind.field(i) for i in range(kind.num_fields)]
        return {field.name: plain(value[field.name], field.type) for field in fields}
    if pa.types.is_list(kind) or pa.types.is_large_list(kind):
        return [plain(inner, kind.value_type) for inner in value]
    return _scalar(value, zoned=pa.types.is_timestamp(kind) and kind.tz is not None)


def _scalar(value: Any, *, zoned: bool) -> Any:
    if isinstance(value, datetime):
        return _instant(value) if zoned else value.isoformat(timespec="auto")
    if isinstance(value, date | time):
        return value.isoformat()
    if isinstance(value, timedelta):
        return str(value)
    if isinstance(value, bytes):
        return value.hex()
    return _number(value)


def _instant(value: datetime) -> str:
    """UTC, to the millisecond, or to the microsecond where it has such."""
    utc = value.astimezone(UTC)
    digits = "microseconds" if utc.microsecond % 1000 else "milliseconds"
    return utc.replace(tzinfo=None).isoformat(timespec=digits) + "Z"


def _number(value: Any) -> Any:
    if isinstance(value, float) and not math.isfinite(value):
        return None if math.isnan(value) else str(value)
    if not isinstance(value, Decimal):
        return value
    if value == value.to_integral_value() and value.as_tuple().exponent == 0:
        return int(value)
    near = float(value)
    return near if Decimal(repr(near)) == value else str(value)


def _key(value: Any) -> str:
    return value if isinstance(value, str) else json.dumps(value)


def _write_text(found: pa.Table, output: str, out: TextIO) -> None:
    names = found.schema.names
    if output == "json":
        for row in records(found):
            out.write(json.dumps(row, ensure_ascii=False) + "\n")
    elif output == "csv":
        writer = csv.writer(out, lineterminator="\n")
        writer.writerow(names)
        for row in records(found):
            writer.writerow([_cell(row[name]) for name in names])
    else:
        write_rows(records(found), names, "text", out)


def write_expanded(found: pa.Table, out: TextIO) -> None:
    """Write each row below the other, a line for each column."""
    widest = max((len(name) for name in found.schema.names), default=0)
    for number, row in enumerate(records(found), start=1):
        out.write(f"-- row {number}\n")
        for name, value in row.items():
            write_line(f"{name:<{widest}}  ", _cell(value), out)


def _cell(value: Any) -> str:
    if value is None:
        return ""
    if isinstance(value, bool):
        return "true" if value else "false"
    return json.dumps(value, ensure_ascii=False) if isinstance(value, list | dict) else str(value)


def _write_parquet(found: pa.Table, stream: IO[bytes]) -> None:
    import pyarrow.parquet as pq

    pq.write_table(found, stream)


@contextlib.contextmanager
def _removed_at_the_end(path: Path) -> Iterator[None]:
    try:
        yield
    finally:
        path.unlink(missing_ok=True)
