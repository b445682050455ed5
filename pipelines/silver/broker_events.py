"""`broker_events`: what brokers and controllers say of their partitions."""

from __future__ import annotations

from pyspark.sql import DataFrame

from acktrail.contracts.bronze import LOG_RECORDS
from acktrail.contracts.silver import BROKER_EVENTS
from pipelines.job import Map, Options
from pipelines.reading.event import BROKER
from pipelines.reading.rows import broker_row
from pipelines.reading.words import BROKER_WORDS
from pipelines.silver.log_events import NOTHING_HERE, read_events


def read_broker_events(records: DataFrame, options: Options) -> DataFrame:
    """Read every log record of an append error, ISR change, truncation or unclean election."""
    return read_events(records, BROKER_EVENTS, BROKER, BROKER_WORDS, broker_row, options)


JOB = Map(LOG_RECORDS, BROKER_EVENTS, read_broker_events, reasons=(NOTHING_HERE,))
