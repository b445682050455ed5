"""`unread_records`: what looked like evidence and could not be read."""

from __future__ import annotations

from typing import Any

from acktrail.contracts.bronze import LOG_RECORDS
from acktrail.contracts.silver import UNREAD_RECORDS
from acktrail.logs.event import UnreadRecord
from acktrail.logs.event_rows import Origin
from acktrail.logs.prefilter import UNREAD_WORDS
from acktrail.logs.reader import read_record
from pipelines.job import Map, Options, ReadBatch
from pipelines.silver.log_events import COLUMNS, NOTHING_HERE, records_reader

_SHOWN = 2000


def reader(_options: Options) -> ReadBatch:
    """Keeps the records that hold an event's words and are not an event."""
    return records_reader(UNREAD_RECORDS, UNREAD_WORDS, _read_row)


def _read_row(record: dict[str, Any]) -> dict[str, Any] | None:
    text, day = record.pop("text"), record.pop("day")
    reading = read_record(text)
    if not isinstance(reading, UnreadRecord):
        return None
    origin = Origin(**record)
    return {
        "cluster": origin.cluster,
        "record_key": origin.record_key,
        "source": origin.source,
        "host": origin.host,
        "path": origin.path,
        "reason": reading.reason,
        "text": text[:_SHOWN],
        "day": day,
    }


JOB = Map(LOG_RECORDS, (*COLUMNS, "day"), UNREAD_RECORDS, reader, reasons=(NOTHING_HERE,))
