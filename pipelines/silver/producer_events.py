"""`producer_events`: what logs say of produce requests' fates."""

from __future__ import annotations

from pyspark.sql import DataFrame

from acktrail.contracts.bronze import LOG_RECORDS
from acktrail.contracts.silver import PRODUCER_EVENTS
from pipelines.job import Map, Options
from pipelines.reading.event import PRODUCER
from pipelines.reading.rows import producer_row
from pipelines.reading.words import PRODUCER_WORDS
from pipelines.silver.common_lines import read_common
from pipelines.silver.log_events import NOTHING_HERE, read_events


def read_producer_events(records: DataFrame, options: Options) -> DataFrame:
    """Read every log record that speaks of a produce request's fate."""
    return read_events(
        records, PRODUCER_EVENTS, PRODUCER, PRODUCER_WORDS, producer_row, options, read_common
    )


JOB = Map(LOG_RECORDS, PRODUCER_EVENTS, read_producer_events, reasons=(NOTHING_HERE,))
