"""`producer_events`: what logs say of produce requests' fates."""

from __future__ import annotations

from acktrail.contracts.bronze import LOG_RECORDS
from acktrail.contracts.silver import PRODUCER_EVENTS
from acktrail.logs.event import PRODUCER
from acktrail.logs.rows import producer_row
from pipelines.job import Map, Options, ReadBatch
from pipelines.silver.common_lines import read_common
from pipelines.silver.log_events import COLUMNS, NOTHING_HERE, events_reader


def reader(options: Options) -> ReadBatch:
    """Reads every log record that speaks of a produce request's fate."""
    return events_reader(PRODUCER_EVENTS, PRODUCER, producer_row, options, read_common)


JOB = Map(LOG_RECORDS, COLUMNS, PRODUCER_EVENTS, reader, reasons=(NOTHING_HERE,))
