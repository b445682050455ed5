"""Read log records inside Spark: one pass of Arrow batches through the pure reader.

Most records of a job's input say nothing to it: one search for its words over the whole column
puts them aside before any of them becomes a Python object.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Iterator
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc
from pyspark.sql import DataFrame

from acktrail.contracts import Table
from acktrail.contracts.arrow import schema
from pipelines.job import Options
from pipelines.reading.aliases import Aliases
from pipelines.reading.event import Event, Unread
from pipelines.reading.reader import read_record
from pipelines.reading.rows import Origin
from pipelines.spark_schema import loose

NOTHING_HERE = "nothing_here"
"""Dropped: the record says nothing that belongs in this table."""

_COLUMNS = (
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
ToRow = Callable[[Event, Origin, Aliases], dict[str, Any]]
ToRows = Callable[[str, Origin], dict[str, Any] | None]


def read_events(
    records: DataFrame,
    table: Table,
    side: str,
    words: Iterable[str],
    to_row: ToRow,
    options: Options,
) -> DataFrame:
    """The events of one *side* in *records*, as rows of *table*, or as counted drops."""
    rules = tuple(options.aliases)

    def start() -> ToRows:
        aliases = Aliases(rules)

        def row_of(text: str, origin: Origin) -> dict[str, Any] | None:
            event = read_record(text)
            if not isinstance(event, Event) or event.side != side:
                return None
            return to_row(event, origin, aliases)

        return row_of

    return _map(records, table, words, start)


def read_unread(
    records: DataFrame, table: Table, words: Iterable[str], to_row: Callable[..., dict[str, Any]]
) -> DataFrame:
    """The records that look like evidence and cannot be read."""

    def start() -> ToRows:
        def row_of(text: str, origin: Origin) -> dict[str, Any] | None:
            reading = read_record(text)
            return to_row(reading, text, origin) if isinstance(reading, Unread) else None

        return row_of

    return _map(records, table, words, start, "day")


def _map(
    records: DataFrame,
    table: Table,
    words: Iterable[str],
    start: Callable[[], ToRows],
    *more: str,
) -> DataFrame:
    # A line may be wrapped between any two words.
    pattern = "|".join(r"\s+".join(map(re.escape, word.split(" "))) for word in words)
    fields = [pa.field(f.name, f.type) for f in schema(table)]
    out = pa.schema([*fields, pa.field("_dropped", pa.string())])

    def read(batches: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        row_of = start()
        for batch in batches:
            yield from _read_batch(batch, pattern, out, row_of, more)

    chosen = records.select(*_COLUMNS, *more)
    return chosen.mapInArrow(read, loose(table, "_dropped"))


def _read_batch(
    batch: pa.RecordBatch, pattern: str, out: pa.Schema, row_of: ToRows, more: tuple[str, ...]
) -> Iterator[pa.RecordBatch]:
    kept = batch.filter(pc.match_substring_regex(batch.column("text"), pattern))
    rows = []
    for record in kept.to_pylist():
        text = record.pop("text")
        inherited = {name: record.pop(name) for name in more}
        row = row_of(text, Origin(**record))
        if row is not None:
            rows.append(inherited | row)
    dropped = batch.num_rows - len(rows)
    if rows:
        yield pa.RecordBatch.from_pylist(rows, schema=out)
    if dropped:
        nulls = [pa.nulls(dropped, field.type) for field in out][:-1]
        why = pa.array([NOTHING_HERE] * dropped, pa.string())
        yield pa.RecordBatch.from_arrays([*nulls, why], schema=out)


def distinct_events(events: DataFrame) -> DataFrame:
    """One row per event: of those that share a key, the one that says most, then the first."""
    from pyspark.sql import Window
    from pyspark.sql import functions as F

    order = (F.col("detail") == "unclean_triggered", F.col("at").asc_nulls_last(), "record_key")
    ranked = Window.partitionBy("cluster", "event_key").orderBy(*order)
    numbered = events.withColumn("_number", F.row_number().over(ranked))
    return numbered.where("_number = 1").drop("_number")
