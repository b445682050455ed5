"""`broker_events`: what brokers and controllers say of their partitions."""

from __future__ import annotations

from acktrail.contracts.bronze import LOG_RECORDS
from acktrail.contracts.silver import BROKER_EVENTS
from pipelines.job import Map, Options, ReadBatch
from pipelines.reading.event import BROKER
from pipelines.reading.rows import broker_row
from pipelines.reading.words import BROKER_WORDS
from pipelines.silver.log_events import COLUMNS, NOTHING_HERE, events_reader


def reader(options: Options) -> ReadBatch:
    """Reads every log record of an append error, ISR change, truncation or unclean election."""
    return events_reader(BROKER_EVENTS, BROKER, BROKER_WORDS, broker_row, options)


JOB = Map(LOG_RECORDS, COLUMNS, BROKER_EVENTS, reader, reasons=(NOTHING_HERE,))
