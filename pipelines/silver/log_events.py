"""Read log records: one pass of Arrow batches through the pure reader.

Most records of a job's input say nothing to it: one search for its words over the whole column
puts them aside before any of them becomes a Python object.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc

from acktrail.aliases import Aliases
from acktrail.contracts import Table
from acktrail.contracts.arrow import schema
from acktrail.logs.event import Event, UnreadRecord
from acktrail.logs.prefilter import UNREAD_WORDS, words_of
from acktrail.logs.reader import read_record
from acktrail.logs.rows import Origin
from pipelines.job import Options, Read, ReadBatch

NOTHING_HERE = "nothing_here"
"""Dropped: the record says nothing that belongs in this table."""

COLUMNS = (
    "cluster",
    "source",
    "host",
    "file_id",
    "path",
    "position",
    "text",
    "zone",
    "shipped_at",
)
"""Of `log_records`, what reading needs."""
ToRow = Callable[[Event, Origin, Aliases], dict[str, Any]]
RowOf = Callable[[str, Origin], dict[str, Any] | None]
Common = Callable[[pa.RecordBatch, pa.Schema], tuple[list[pa.RecordBatch], pa.RecordBatch]]


def events_reader(
    table: Table,
    side: str,
    to_row: ToRow,
    options: Options,
    common: Common | None = None,
) -> ReadBatch:
    """Reads the events of one *side* in log records, as rows of *table*.

    *common* reads the commonest lines a column at a time; alias rules need the reader.
    """
    aliases = Aliases(tuple(options.aliases))

    def row_of(text: str, origin: Origin) -> dict[str, Any] | None:
        event = read_record(text)
        if not isinstance(event, Event) or event.side != side:
            return None
        return to_row(event, origin, aliases)

    return _reader(table, words_of(side), row_of, common if not options.aliases else None)


def unread_reader(table: Table, to_row: Callable[..., dict[str, Any]]) -> ReadBatch:
    """Reads the records that look like evidence and cannot be read."""

    def row_of(text: str, origin: Origin) -> dict[str, Any] | None:
        reading = read_record(text)
        return to_row(reading, text, origin) if isinstance(reading, UnreadRecord) else None

    return _reader(table, UNREAD_WORDS, row_of, None, "day")


def _reader(
    table: Table, words: Iterable[str], row_of: RowOf, common: Common | None, *more: str
) -> ReadBatch:
    # A line may be wrapped between any two words.
    pattern = "|".join(r"\s+".join(map(re.escape, word.split(" "))) for word in words)
    out = pa.schema([pa.field(f.name, f.type) for f in schema(table)])

    def read(batch: pa.RecordBatch) -> Read:
        done, left = ([], batch) if common is None else common(batch, out)
        told = left.filter(pc.match_substring_regex(left.column("text"), pattern))
        rows = _read_rows(told, row_of, more)
        if rows:
            done.append(pa.RecordBatch.from_pylist(rows, schema=out))
        dropped = batch.num_rows - sum(part.num_rows for part in done)
        return Read(done, {NOTHING_HERE: dropped} if dropped else {})

    return read


def _read_rows(
    records: pa.RecordBatch, row_of: RowOf, more: tuple[str, ...]
) -> list[dict[str, Any]]:
    rows = []
    for record in records.to_pylist():
        text = record.pop("text")
        inherited = {name: record.pop(name) for name in more}
        row = row_of(text, Origin(**record))
        if row is not None:
            rows.append(inherited | row)
    return rows
