"""Audit reports, checked, with the bucket they belong to."""

from __future__ import annotations

from collections import Counter
from typing import Any

import pyarrow as pa

from acktrail.audit.wire import bucket_of, decode_runs
from acktrail.contracts.arrow import schema
from acktrail.contracts.bronze import AUDIT_REPORTS
from acktrail.contracts.silver import AUDIT_PARTS
from acktrail.contracts.vocabulary import Tier
from pipelines.job import Map, Options, Read, ReadBatch

UNREADABLE = "unreadable_ids"
WITHOUT_PLACE = "ids_without_block_or_session"
REASONS = (UNREADABLE, WITHOUT_PLACE)
OFFSETS = "offsets"
"""The bucket of rows about offsets only, without ids."""

_TIMES = {
    "began_ms": "began_at",
    "ended_ms": "ended_at",
    "reported_ms": "reported_at",
    "after_ms": "after_at",
    "received_ms": "read_at",
}
_COPIED = tuple(n for n in AUDIT_PARTS.names if n not in (*_TIMES, "bucket", "error"))
COLUMNS = (*_COPIED, "errors", *_TIMES.values())
_SCHEMA = pa.schema([f.with_nullable(True) for f in schema(AUDIT_PARTS)])


def reader(_options: Options) -> ReadBatch:
    """Audit reports have nothing to set: every batch is read alike."""
    return place_reports


def place_reports(batch: pa.RecordBatch) -> Read:
    """In a task: every report with its bucket; those whose ids cannot be read are dropped."""
    columns: dict[str, Any] = {name: batch.column(name) for name in _COPIED}
    for name, source in _TIMES.items():
        instants = batch.column(source).cast(pa.timestamp("ms", tz="UTC"), safe=False)
        columns[name] = instants.cast(pa.int64())
    errors: list[Any] = batch.column("errors").to_pylist()
    columns["error"] = pa.array(["|".join(sorted(dict(e or {}))) for e in errors], pa.string())
    places: list[list[Any]] = [batch.column(n).to_pylist() for n in ("session", "block", "ids")]
    tiers = batch.column("tier").to_pylist()
    columns["bucket"] = pa.array(
        [
            _bucket(session, block, tier)
            for session, block, tier in zip(*places[:2], tiers, strict=True)
        ],
        pa.string(),
    )
    typed = [
        columns[f.name] if columns[f.name].type == f.type else columns[f.name].cast(f.type)
        for f in _SCHEMA
    ]
    placed = pa.RecordBatch.from_arrays(typed, schema=_SCHEMA)
    flaws = [_flaw(*place) for place in zip(*places, strict=True)]
    sound = pa.array([flaw is None for flaw in flaws], pa.bool_())
    return Read([placed.filter(sound)], Counter(flaw for flaw in flaws if flaw is not None))


def _bucket(session: str, block: int, tier: str) -> str:
    """Blocks of offsets lie where the session's heartbeats do."""
    if not session:
        return OFFSETS
    return bucket_of(session, 0 if tier == Tier.ACKED_OFFSETS else block)


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
