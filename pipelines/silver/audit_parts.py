"""Audit reports, checked, with the bucket they belong to."""

from __future__ import annotations

from collections import Counter
from typing import Any

import pyarrow as pa

from acktrail.audit.wire import bucket_of, decode_runs
from acktrail.contracts.arrow import schema
from acktrail.contracts.bronze import AUDIT_REPORTS
from acktrail.contracts.silver import AUDIT_PARTS
from pipelines.job import Map, Options, Read, ReadBatch

UNREADABLE = "unreadable_ids"
WITHOUT_PLACE = "ids_without_block_or_session"
REASONS = (UNREADABLE, WITHOUT_PLACE)
OFFSETS = "offsets"
"""The bucket of rows that speak of offsets only."""

_TIMES = {"began_ms": "began_at", "ended_ms": "ended_at", "reported_ms": "reported_at"}
_COPIED = tuple(
    n for n in AUDIT_PARTS.names if n not in (*_TIMES, "bucket", "error", "topic_id")
)  # fmt: skip
COLUMNS = (*_COPIED, "topic_id", "errors", *_TIMES.values())
_SCHEMA = pa.schema([f.with_nullable(True) for f in schema(AUDIT_PARTS)])


def reader(_options: Options) -> ReadBatch:
    """Gives every report its bucket; drops those whose ids cannot be read."""
    return _place


def _place(batch: pa.RecordBatch) -> Read:
    columns: dict[str, Any] = {name: batch.column(name) for name in (*_COPIED, "topic_id")}
    for name, source in _TIMES.items():
        instants = batch.column(source).cast(pa.timestamp("ms", tz="UTC"), safe=False)
        columns[name] = instants.cast(pa.int64())
    columns["error"] = pa.array([_error(e) for e in batch.column("errors").to_pylist()])
    places: list[list[Any]] = [batch.column(n).to_pylist() for n in ("session", "block", "ids")]
    flaws = [_flaw(*place) for place in zip(*places, strict=True)]
    columns["bucket"] = pa.array(
        [
            bucket_of(session, block) if session else OFFSETS
            for session, block in zip(places[0], places[1], strict=True)
        ],
        pa.string(),
    )
    placed = pa.RecordBatch.from_arrays(
        [_cast(columns[f.name], f.type) for f in _SCHEMA], schema=_SCHEMA
    )
    sound = pa.array([flaw is None for flaw in flaws], pa.bool_())
    return Read([placed.filter(sound)], Counter(flaw for flaw in flaws if flaw is not None))


def _cast(column: Any, kind: pa.DataType) -> Any:
    return column if column.type == kind else column.cast(kind)


def _error(errors: list[tuple[str, str]] | dict[str, str] | None) -> str:
    return "|".join(sorted(dict(errors or {})))


def _flaw(session: str, block: int, ids: bytes | None) -> str | None:
    """Why a report cannot be used; None where it can."""
    if ids is None:
        return None if block < 0 else UNREADABLE
    if block < 0 or not session:
        return WITHOUT_PLACE
    try:
        decode_runs(ids)
    except ValueError:
        return UNREADABLE
    return None


JOB = Map(AUDIT_REPORTS, COLUMNS, AUDIT_PARTS, reader, REASONS)
