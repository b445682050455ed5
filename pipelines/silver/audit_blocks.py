"""The ids of one block at one tier: newest within a part, OR over parts and reporters."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.dataset as ds
from pyspark.sql import DataFrame
from pyspark.sql import functions as F

from acktrail.audit.block import FIELDS, newest_parts
from acktrail.audit.wire.run_lists import BITMAP_BYTES, bitmap_of, popcount
from acktrail.contracts.arrow import schema
from acktrail.contracts.silver import AUDIT_BLOCKS
from acktrail.contracts.vocabulary import Tier
from pipelines.arrow_rows import by_key, rows_of
from pipelines.job import Evidence, Options
from pipelines.silver.audit_parts import OFFSETS
from pipelines.spark_schema import loose

_SCHEMA = pa.schema([f.with_nullable(True) for f in schema(AUDIT_BLOCKS)])


def buckets_with_news(evidence: Evidence) -> frozenset[str]:
    """The buckets of the new parts; a row about offsets only is in no block."""
    return evidence.changed.get("audit_parts", frozenset()) - {OFFSETS}


def parts_of_buckets(_evidence: Evidence, keys: frozenset[str]) -> dict[str, ds.Expression]:
    """The parts of the buckets *keys*."""
    return {"audit_parts": ds.field("bucket").isin(sorted(keys))}


def fold_parts(
    inputs: Mapping[str, DataFrame], keys: frozenset[str] | None, _options: Options
) -> DataFrame:
    """One row per session, topic, partition, tier, group and block."""
    ids_in = (F.col("block") >= 0) & (F.col("tier") != Tier.ACKED_OFFSETS.value)
    parts = inputs["audit_parts"].where(ids_in)
    if keys is not None:
        parts = parts.where(F.col("bucket").isin(sorted(keys)))
    grain = list(AUDIT_BLOCKS.grain)
    wanted = list(dict.fromkeys([*grain, "bucket", *FIELDS]))
    return (
        parts.select(*wanted)
        .repartition(*("cluster", "session", "topic", "block"))
        .sortWithinPartitions(*grain)
        .mapInArrow(fold_blocks, loose(AUDIT_BLOCKS))
    )


def fold_blocks(batches: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
    """In a task: the row of every block, from its parts, which follow each other."""
    made: list[dict[str, Any]] = []
    for key, rows in by_key(rows_of(batches), AUDIT_BLOCKS.grain):
        made.append(dict(zip(AUDIT_BLOCKS.grain, key, strict=True)) | _block_columns(rows))
        if len(made) == 256:
            yield pa.RecordBatch.from_pylist(made, schema=_SCHEMA)
            made = []
    if made:
        yield pa.RecordBatch.from_pylist(made, schema=_SCHEMA)


def _block_columns(rows: list[dict[str, Any]]) -> dict[str, Any]:
    parts = newest_parts(rows)
    bitmap = np.zeros(BITMAP_BYTES, np.uint8)
    errors: dict[str, int] = {}
    for part in parts:
        ids = bitmap_of(part["ids"])
        bitmap |= ids
        if part["error"]:
            errors[part["error"]] = errors.get(part["error"], 0) + popcount(ids)
    known = {
        name: [part[name] for part in parts if part[name] is not None]
        for name in ("first_offset", "last_offset", "began_ms", "ended_ms", "received_ms")
    }
    return {
        "bitmap": bitmap.tobytes(),
        "ids": popcount(bitmap),
        "records": sum(part["records"] for part in parts),
        "steps_back": sum(part["steps_back"] or 0 for part in parts),
        "parts": [
            {name: part[name] for name in FIELDS} | {"topic_id": part["topic_id"] or None}
            for part in parts
        ],
        "errors": [(name, str(count)) for name, count in sorted(errors.items())],
        "first_offset": min(known["first_offset"], default=None),
        "last_offset": max(known["last_offset"], default=None),
        "first_at": min((ms * 1000 for ms in known["began_ms"]), default=None),
        "last_at": max((ms * 1000 for ms in known["ended_ms"]), default=None),
        "first_received_at": min((ms * 1000 for ms in known["received_ms"]), default=None),
        "bucket": rows[0]["bucket"],
    }
