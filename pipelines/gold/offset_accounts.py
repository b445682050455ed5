"""What offsets alone show about a topic, audited or not."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import pyarrow as pa
import pyarrow.dataset as ds
from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as F

from acktrail.contracts.vocabulary import Tier
from acktrail.window import hour_of
from pipelines.arrow_rows import hours_in, within_hours
from pipelines.job import Evidence, Options
from pipelines.silver.audit_parts import OFFSETS

_HOUR = "yyyy-MM-dd'T'HH"
_PLACE = ("cluster", "topic", "partition")
_SCANNED = (
    (ds.field("bucket") == OFFSETS)
    & (ds.field("tier") == Tier.SCANNED.value)
    & ds.field("began_ms").is_valid()
    & ds.field("first_offset").is_valid()
)


def hours_of_answers(evidence: Evidence) -> frozenset[str]:
    """The hours of the new answers and scans."""
    found: set[str] = set()
    for name, rows in evidence.new.items():
        if name == "audit_parts":
            began = rows.read("began_ms", where=_SCANNED).column("began_ms")
            instants: Any = began.cast(pa.timestamp("ms", tz="UTC"))
        else:
            instants = rows.read("at").column("at")
        found |= {hour_of(hour) for hour in hours_in(instants)}
    return frozenset(found)


def rows_of_hours(_evidence: Evidence, keys: frozenset[str]) -> dict[str, ds.Expression]:
    """The answers of the hours *keys*, and the scans that began in them."""
    answers = within_hours("at", keys)
    scans = _SCANNED & within_hours("began_ms", keys, of=pa.int64())
    return {"cluster_states": answers, "group_offsets": answers, "audit_parts": scans}


def account_offsets(
    inputs: Mapping[str, DataFrame], keys: frozenset[str] | None, _options: Options
) -> DataFrame:
    """One row per partition and hour for the log, and one for each group."""
    log = _moves(_in_hours(inputs["cluster_states"], keys), "latest_offset", F.lit(""))
    groups = _moves(
        _in_hours(inputs["group_offsets"], keys), "committed_offset", F.col("group")
    ).join(
        log.select(*_PLACE, "hour", F.col("last_offset").alias("end")), [*_PLACE, "hour"], "left"
    )
    scans = _scans(inputs["audit_parts"])
    if keys is not None:
        scans = scans.where(F.col("hour").isin(sorted(keys)))
    read = scans.groupBy(*_PLACE, "hour").agg(
        F.sum(F.col("last_offset") - F.col("first_offset") + 1).alias("scanned_offsets"),
        F.sum("records").alias("scanned_records"),
    )
    whole = log.join(read, [*_PLACE, "hour"], "left").withColumn(
        "gaps", F.col("scanned_offsets") - F.col("scanned_records")
    )
    behind = groups.withColumn("behind", F.col("end") - F.col("last_offset")).drop("end")
    return whole.unionByName(behind, allowMissingColumns=True)


def _hour(column: str) -> Column:
    return F.date_format(column, _HOUR)


def _in_hours(rows: DataFrame, keys: frozenset[str] | None) -> DataFrame:
    dated = rows.withColumn("hour", _hour("at"))
    return dated if keys is None else dated.where(F.col("hour").isin(sorted(keys)))


def _moves(rows: DataFrame, offset: str, group: Column) -> DataFrame:
    known = rows.where(F.col(offset) >= 0)
    first, last = F.min_by(offset, "at"), F.max_by(offset, "at")
    return known.groupBy(*_PLACE, group.alias("group"), "hour").agg(
        first.alias("first_offset"),
        last.alias("last_offset"),
        (last - first).alias("moved"),
        F.countDistinct("at").alias("answers"),
    )


def _scans(parts: DataFrame) -> DataFrame:
    """Each scanned range once, by the hour in which its scan began."""
    rows = parts.where((F.col("bucket") == OFFSETS) & (F.col("tier") == Tier.SCANNED.value))
    rows = rows.where("began_ms IS NOT NULL AND first_offset IS NOT NULL")
    once = ["reporter", *_PLACE, "part", "first_offset", "last_offset", "records", "began_ms"]
    began = F.timestamp_millis("began_ms")
    return rows.select(*once).distinct().withColumn("hour", F.date_format(began, _HOUR))
