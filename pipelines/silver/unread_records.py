"""`unread_records`: what looked like evidence and could not be read."""

from __future__ import annotations

from typing import Any

from pyspark.sql import DataFrame

from acktrail.contracts.bronze import LOG_RECORDS
from acktrail.contracts.silver import UNREAD_RECORDS
from pipelines.job import Map, Options
from pipelines.reading.event import Unread
from pipelines.reading.reader import UNREAD_WORDS
from pipelines.reading.rows import Origin
from pipelines.silver.log_events import NOTHING_HERE, read_unread

_SHOWN = 2000


def keep_unread_records(records: DataFrame, _options: Options) -> DataFrame:
    """Keep the records that hold an event's words and are no event."""
    return read_unread(records, UNREAD_RECORDS, UNREAD_WORDS, _row)


def _row(reading: Unread, text: str, origin: Origin) -> dict[str, Any]:
    return {
        "cluster": origin.cluster,
        "record_key": origin.record_key,
        "source": origin.source,
        "host": origin.host,
        "path": origin.path,
        "reason": reading.reason,
        "text": text[:_SHOWN],
    }


JOB = Map(LOG_RECORDS, UNREAD_RECORDS, keep_unread_records, reasons=(NOTHING_HERE,))
