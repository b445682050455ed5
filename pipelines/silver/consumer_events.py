"""`consumer_events`: what logs say of consumers."""

from __future__ import annotations

from acktrail.contracts.bronze import LOG_RECORDS
from acktrail.contracts.silver import CONSUMER_EVENTS
from pipelines.job import Map, Options, ReadBatch
from pipelines.reading.event import CONSUMER
from pipelines.reading.rows import consumer_row
from pipelines.reading.words import CONSUMER_WORDS
from pipelines.silver.log_events import COLUMNS, NOTHING_HERE, events_reader


def reader(options: Options) -> ReadBatch:
    """Reads every log record in which a consumer lost time, place or partitions."""
    return events_reader(CONSUMER_EVENTS, CONSUMER, CONSUMER_WORDS, consumer_row, options)


JOB = Map(LOG_RECORDS, COLUMNS, CONSUMER_EVENTS, reader, reasons=(NOTHING_HERE,))
