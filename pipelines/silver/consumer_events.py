"""`consumer_events`: what logs say of consumers."""

from __future__ import annotations

from pyspark.sql import DataFrame

from acktrail.contracts.bronze import LOG_RECORDS
from acktrail.contracts.silver import CONSUMER_EVENTS
from pipelines.job import Map, Options
from pipelines.reading.event import CONSUMER
from pipelines.reading.rows import consumer_row
from pipelines.reading.words import CONSUMER_WORDS
from pipelines.silver.log_events import NOTHING_HERE, read_events


def read_consumer_events(records: DataFrame, options: Options) -> DataFrame:
    """Read every log record in which a consumer lost time, place or partitions."""
    return read_events(records, CONSUMER_EVENTS, CONSUMER, CONSUMER_WORDS, consumer_row, options)


JOB = Map(LOG_RECORDS, CONSUMER_EVENTS, read_consumer_events, reasons=(NOTHING_HERE,))
