"""The job of `loss_incidents`: the losses of one cause, place and time, as one incident."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping

import pyarrow as pa
from pyspark.sql import DataFrame

from acktrail.audit.incidents import KIND, group_losses, incident_row
from acktrail.contracts.arrow import schema
from acktrail.contracts.gold import LOSS_INCIDENTS
from pipelines.arrow_rows import rows_of
from pipelines.job import Options
from pipelines.spark_schema import loose

_SCHEMA = pa.schema([f.with_nullable(True) for f in schema(LOSS_INCIDENTS)])


def gather_incidents(
    inputs: Mapping[str, DataFrame], _keys: frozenset[str] | None, _options: Options
) -> DataFrame:
    """Group all loss events: there are few, and an old incident may grow by late evidence."""
    events = inputs["loss_events"].selectExpr(
        *(*KIND, "session", "first_seq", "count", "client_id", "host", "partition", "told"),
        *("first_offset", "last_offset", "confidence", "because", "evidence", "reason", "error"),
        *("unix_millis(first_at) AS first_ms", "unix_millis(last_at) AS last_ms"),
    )
    return events.repartition(*KIND).mapInArrow(name_incidents, loose(LOSS_INCIDENTS))


def name_incidents(batches: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
    """In a task: the incidents of some kinds of losses."""
    made = []
    for name, events in group_losses(rows_of(batches)):
        row = incident_row(name, events)
        for column, source in (("started_at", "started_ms"), ("ended_at", "ended_ms")):
            ms = row.pop(source)
            row[column] = None if ms is None else ms * 1000
        made.append(row)
    if made:
        yield pa.RecordBatch.from_pylist(made, schema=_SCHEMA)
