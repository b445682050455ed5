"""What a person is told: the losses of one cause, place and time, as one incident."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping

import pyarrow as pa
from pyspark.sql import DataFrame
from pyspark.sql import functions as F

from acktrail.audit.incidents import group_losses, incident_row
from acktrail.contracts.arrow import schema
from acktrail.contracts.gold import LOSS_INCIDENTS
from pipelines.arrow_rows import by_key, rows_of
from pipelines.gold.loss_facts import ms
from pipelines.job import Options
from pipelines.spark_schema import loose

_SCHEMA = pa.schema([f.with_nullable(True) for f in schema(LOSS_INCIDENTS)])
_KIND = ("cluster", "topic", "group", "state", "cause")


def gather_incidents(
    inputs: Mapping[str, DataFrame], _keys: frozenset[str] | None, _options: Options
) -> DataFrame:
    """Group all loss events: there are few, and an old incident may grow by late evidence."""
    events = inputs["loss_events"].select(
        *_KIND,
        *("session", "first_seq", "count", "client_id", "partition", "told", "confidence"),
        *("because", "evidence"),
        ms(F.col("first_at")).alias("first_ms"),
        ms(F.col("last_at")).alias("last_ms"),
    )
    return (
        events.repartition(*_KIND)
        .sortWithinPartitions(*_KIND)
        .mapInArrow(_gather, loose(LOSS_INCIDENTS))
    )


def _gather(batches: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
    for _, rows in by_key(rows_of(batches), _KIND):
        made = []
        for name, events in group_losses(rows):
            row = incident_row(name, events)
            for column, source in (("started_at", "started_ms"), ("ended_at", "ended_ms")):
                value = row.pop(source)
                row[column] = None if value is None else value * 1000
            made.append(row)
        yield pa.RecordBatch.from_pylist(made, schema=_SCHEMA)
