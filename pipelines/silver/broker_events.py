"""`broker_events`: what brokers and controllers say of their partitions."""

from __future__ import annotations

from acktrail.contracts.bronze import LOG_RECORDS
from acktrail.contracts.silver import BROKER_EVENTS
from acktrail.logs.event import BROKER
from acktrail.logs.rows import broker_row
from pipelines.job import Map, Options, ReadBatch
from pipelines.silver.log_events import COLUMNS, NOTHING_HERE, events_reader


def reader(options: Options) -> ReadBatch:
    """Reads every log record of an append error, ISR change, truncation or unclean election."""
    return events_reader(BROKER_EVENTS, BROKER, broker_row, options)


JOB = Map(LOG_RECORDS, COLUMNS, BROKER_EVENTS, reader, reasons=(NOTHING_HERE,))
