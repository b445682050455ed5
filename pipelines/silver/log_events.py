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
from pyspark.sql.types import LongType

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
Common = Callable[[pa.RecordBatch, pa.Schema], tuple[list[pa.RecordBatch], pa.RecordBatch]]


def read_events(
    records: DataFrame,
    table: Table,
    side: str,
    words: Iterable[str],
    to_row: ToRow,
    options: Options,
    common: Common | None = None,
) -> DataFrame:
    """The events of one *side* in *records*, as rows of *table*, or as counted drops.

    *common* reads the commonest lines a column at a time; alias rules need the reader.
    """
    rules = tuple(options.aliases)

    def start() -> ToRows:
        aliases = Aliases(rules)

        def row_of(text: str, origin: Origin) -> dict[str, Any] | None:
            event = read_record(text)
            if not isinstance(event, Event) or event.side != side:
                return None
            return to_row(event, origin, aliases)

        return row_of

    return _map(records, table, words, start, common if not rules else None)


def read_unread(
    records: DataFrame, table: Table, words: Iterable[str], to_row: Callable[..., dict[str, Any]]
) -> DataFrame:
    """The records that look like evidence and cannot be read."""

    def start() -> ToRows:
        def row_of(text: str, origin: Origin) -> dict[str, Any] | None:
            reading = read_record(text)
            return to_row(reading, text, origin) if isinstance(reading, Unread) else None

        return row_of

    return _map(records, table, words, start, None, "day")


def _map(
    records: DataFrame,
    table: Table,
    words: Iterable[str],
    start: Callable[[], ToRows],
    common: Common | None,
    *more: str,
) -> DataFrame:
    # A line may be wrapped between any two words.
    pattern = "|".join(r"\s+".join(map(re.escape, word.split(" "))) for word in words)
    fields = [pa.field(f.name, f.type) for f in schema(table)]
    out = pa.schema(fields)
    out = out.append(pa.field("_dropped", pa.string()))
    out = out.append(pa.field("_dropped_rows", pa.int64()))

    def read(batches: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        row_of = start()
        for batch in batches:
            done, left = ([], batch) if common is None else common(batch, out)
            yield from done
            told = left.filter(pc.match_substring_regex(left.column("text"), pattern))
            rows = _read_rows(told, row_of, more)
            if rows:
                yield pa.RecordBatch.from_pylist(rows, schema=out)
            dropped = batch.num_rows - len(rows) - sum(part.num_rows for part in done)
            yield from _dropped(dropped, out)

    chosen = records.select(*_COLUMNS, *more)
    schema_out = loose(table, "_dropped").add("_dropped_rows", LongType())
    return chosen.mapInArrow(read, schema_out)


def _read_rows(
    records: pa.RecordBatch, row_of: ToRows, more: tuple[str, ...]
) -> list[dict[str, Any]]:
    rows = []
    for record in records.to_pylist():
        text = record.pop("text")
        inherited = {name: record.pop(name) for name in more}
        row = row_of(text, Origin(**record))
        if row is not None:
            rows.append(inherited | row)
    return rows


def _dropped(count: int, out: pa.Schema) -> Iterator[pa.RecordBatch]:
    """One row that says how many were dropped."""
    if count:
        row = {"_dropped": NOTHING_HERE, "_dropped_rows": count}
        yield pa.RecordBatch.from_pylist([row], schema=out)


def distinct_events(events: DataFrame) -> DataFrame:
    """One row per event: of those that share a key, the one that says most, then the first."""
    from pyspark.sql import Window
    from pyspark.sql import functions as F

    order = (F.col("detail") == "unclean_triggered", F.col("at").asc_nulls_last(), "record_key")
    ranked = Window.partitionBy("cluster", "event_key").orderBy(*order)
    numbered = events.withColumn("_number", F.row_number().over(ranked))
    return numbered.where("_number = 1").drop("_number")
