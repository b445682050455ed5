"""`unread_records`: what looked like evidence and could not be read."""

from __future__ import annotations

from typing import Any

from acktrail.contracts.bronze import LOG_RECORDS
from acktrail.contracts.silver import UNREAD_RECORDS
from acktrail.logs.event import UnreadRecord
from acktrail.logs.rows import Origin
from pipelines.job import Map, Options, ReadBatch
from pipelines.silver.log_events import COLUMNS, NOTHING_HERE, unread_reader

_SHOWN = 2000


def reader(_options: Options) -> ReadBatch:
    """Keeps the records that hold an event's words and are no event."""
    return unread_reader(UNREAD_RECORDS, _row)


def _row(reading: UnreadRecord, text: str, origin: Origin) -> dict[str, Any]:
    return {
        "cluster": origin.cluster,
        "record_key": origin.record_key,
        "source": origin.source,
        "host": origin.host,
        "path": origin.path,
        "reason": reading.reason,
        "text": text[:_SHOWN],
    }


JOB = Map(LOG_RECORDS, (*COLUMNS, "day"), UNREAD_RECORDS, reader, reasons=(NOTHING_HERE,))
