"""`producer_events`, `consumer_events` and `broker_events`: what log records say.

One pass of Arrow batches through the pure reader. Most records of a job's input hold nothing for
it: one search for its words over the whole column puts them aside before any of them becomes a
Python object.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable
from functools import partial
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc

from acktrail.aliases import Aliases
from acktrail.contracts import Table
from acktrail.contracts.arrow import schema
from acktrail.contracts.bronze import LOG_RECORDS
from acktrail.contracts.silver import BROKER_EVENTS, CONSUMER_EVENTS, PRODUCER_EVENTS
from acktrail.logs.event import BROKER, CONSUMER, PRODUCER, Event
from acktrail.logs.event_rows import Origin, broker_row, consumer_row, producer_row
from acktrail.logs.prefilter import words_of
from acktrail.logs.reader import read_record
from pipelines.job import Map, Options, Read, ReadBatch
from pipelines.silver.common_lines import read_common

NOTHING_HERE = "nothing_here"
"""Dropped: the record holds nothing that belongs in this table."""

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
Row = dict[str, Any]
ToRow = Callable[[Event, Origin, Aliases], Row]
ReadRow = Callable[[Row], Row | None]
"""A row of the job's output from a row of `log_records`; None where it has nothing for it."""
ReadColumns = Callable[[pa.RecordBatch, pa.Schema], tuple[list[pa.RecordBatch], pa.RecordBatch]]
"""Rows of the job's output for some rows of a batch, and the rows that are left."""


def _read_events(
    table: Table, side: str, to_row: ToRow, read_columns: ReadColumns | None, options: Options
) -> ReadBatch:
    aliases = Aliases(tuple(options.aliases))

    def read_row(record: Row) -> Row | None:
        event = read_record(record.pop("text"))
        if not isinstance(event, Event) or event.side != side:
            return None
        return to_row(event, Origin(**record), aliases)

    by_column = None if options.aliases else read_columns  # alias rules need the reader
    return records_reader(table, words_of(side), read_row, by_column)


def records_reader(
    table: Table,
    words: Iterable[str],
    read_row: ReadRow,
    read_columns: ReadColumns | None = None,
) -> ReadBatch:
    """Reads the log records that hold one of *words*, each by *read_row*; drops the others."""
    # A line may be wrapped between any two words.
    pattern = "|".join(r"\s+".join(map(re.escape, word.split(" "))) for word in words)
    out = pa.schema([pa.field(f.name, f.type) for f in schema(table)])

    def read(batch: pa.RecordBatch) -> Read:
        done, left = ([], batch) if read_columns is None else read_columns(batch, out)
        candidates = left.filter(pc.match_substring_regex(left.column("text"), pattern))
        rows = [row for r in candidates.to_pylist() if (row := read_row(r)) is not None]
        if rows:
            done.append(pa.RecordBatch.from_pylist(rows, schema=out))
        dropped = batch.num_rows - sum(part.num_rows for part in done)
        return Read(done, {NOTHING_HERE: dropped} if dropped else {})

    return read


def _events_job(
    table: Table, side: str, to_row: ToRow, read_columns: ReadColumns | None = None
) -> Map:
    """The job that reads the events of one *side* in log records, as rows of *table*.

    *read_columns* reads the commonest lines a column at a time.
    """
    reader = partial(_read_events, table, side, to_row, read_columns)
    return Map(LOG_RECORDS, COLUMNS, table, reader, reasons=(NOTHING_HERE,))


PRODUCER_JOB = _events_job(PRODUCER_EVENTS, PRODUCER, producer_row, read_common)
CONSUMER_JOB = _events_job(CONSUMER_EVENTS, CONSUMER, consumer_row)
BROKER_JOB = _events_job(BROKER_EVENTS, BROKER, broker_row)
