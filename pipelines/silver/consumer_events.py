"""`consumer_events`: what logs say of consumers."""

from __future__ import annotations

from acktrail.contracts.bronze import LOG_RECORDS
from acktrail.contracts.silver import CONSUMER_EVENTS
from acktrail.logs.event import CONSUMER
from acktrail.logs.rows import consumer_row
from pipelines.job import Map, Options, ReadBatch
from pipelines.silver.log_events import COLUMNS, NOTHING_HERE, events_reader


def reader(options: Options) -> ReadBatch:
    """Reads every log record in which a consumer lost time, place or partitions."""
    return events_reader(CONSUMER_EVENTS, CONSUMER, consumer_row, options)


JOB = Map(LOG_RECORDS, COLUMNS, CONSUMER_EVENTS, reader, reasons=(NOTHING_HERE,))
