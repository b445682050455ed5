"""The ids of one block at one tier: newest within a part, OR over parts and reporters."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from typing import Any

import numpy as np
import pyarrow as pa
from pyspark.sql import DataFrame
from pyspark.sql import functions as F

from acktrail.audit.bitmaps import popcount
from acktrail.audit.parts import FIELDS, fields_of, newest, part_of
from acktrail.audit.wire.runs import BITMAP_BYTES, bitmap_of
from acktrail.contracts.arrow import schema
from acktrail.contracts.silver import AUDIT_BLOCKS
from pipelines.arrow_rows import by_key, rows_of
from pipelines.job import Evidence, Options
from pipelines.silver.audit_parts import OFFSETS
from pipelines.spark_schema import loose

_SCHEMA = pa.schema([f.with_nullable(True) for f in schema(AUDIT_BLOCKS)])


def buckets_with_news(evidence: Evidence) -> frozenset[str]:
    """A report tells its own bucket."""
    return evidence.changed.get("audit_parts", frozenset()) - {OFFSETS}


def fold_parts(
    inputs: Mapping[str, DataFrame], keys: frozenset[str] | None, _options: Options
) -> DataFrame:
    """One row per session, topic, partition, tier, group and block."""
    parts = inputs["audit_parts"].where(F.col("block") >= 0)
    if keys is not None:
        parts = parts.where(F.col("bucket").isin(sorted(keys)))
    grain = list(AUDIT_BLOCKS.grain)
    wanted = list(dict.fromkeys([*grain, "bucket", *FIELDS]))
    return (
        parts.select(*wanted)
        .repartition(*("cluster", "session", "topic", "block"))
        .sortWithinPartitions(*grain)
        .mapInArrow(_fold, loose(AUDIT_BLOCKS))
    )


def _fold(batches: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
    made: list[dict[str, Any]] = []
    for key, rows in by_key(rows_of(batches), AUDIT_BLOCKS.grain):
        made.append(dict(zip(AUDIT_BLOCKS.grain, key, strict=True)) | _block(rows))
        if len(made) == 256:
            yield pa.RecordBatch.from_pylist(made, schema=_SCHEMA)
            made = []
    if made:
        yield pa.RecordBatch.from_pylist(made, schema=_SCHEMA)


def _block(rows: list[dict[str, Any]]) -> dict[str, Any]:
    parts = newest(part_of(row) for row in rows)
    bitmap = np.zeros(BITMAP_BYTES, np.uint8)
    errors: dict[str, int] = {}
    for part in parts:
        ids = bitmap_of(part.ids)
        bitmap |= ids
        if part.error:
            errors[part.error] = errors.get(part.error, 0) + popcount(ids)
    return {
        "bitmap": bitmap.tobytes(),
        "ids": popcount(bitmap),
        "records": sum(p.records for p in parts),
        "steps_back": sum(p.steps_back or 0 for p in parts),
        "parts": [fields_of(part) for part in parts],
        "errors": [(name, str(count)) for name, count in sorted(errors.items())],
        "first_offset": _least(p.first_offset for p in parts),
        "last_offset": _most(p.last_offset for p in parts),
        "first_at": _micros(_least(p.began_ms for p in parts)),
        "last_at": _micros(_most(p.ended_ms for p in parts)),
        "bucket": rows[0]["bucket"],
    }


def _least(values: Iterator[int | None]) -> int | None:
    return min((v for v in values if v is not None), default=None)


def _most(values: Iterator[int | None]) -> int | None:
    return max((v for v in values if v is not None), default=None)


def _micros(ms: int | None) -> int | None:
    return None if ms is None else ms * 1000
