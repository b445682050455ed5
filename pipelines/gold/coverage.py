"""What evidence each source gave in each hour of reading, and what is known to be missing."""

from __future__ import annotations

from collections.abc import Mapping

import pyarrow.dataset as ds
from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as F

from acktrail.window import hour_of
from pipelines.arrow_rows import hours_in
from pipelines.job import Evidence, Options

_HOUR = "yyyy-MM-dd'T'HH"
_SOURCES = {
    # table: (kind, subject, time of the evidence)
    "audit_reports": ("audit", "reporter", "reported_at"),
    "metric_samples": ("metrics", "instance", "at"),
    "log_records": ("logs", "path", "read_at"),
    "cluster_states": ("cluster", "topic", "at"),
}


def hours_of_reading(evidence: Evidence) -> frozenset[str]:
    """The hours in which the new rows were read."""
    found: set[str] = set()
    for rows in evidence.new.values():
        found |= {hour_of(hour) for hour in hours_in(rows.read("read_at").column("read_at"))}
    return frozenset(found)


def rows_of_days(_evidence: Evidence, keys: frozenset[str]) -> dict[str, ds.Expression]:
    """What was read on the days of the hours *keys*."""
    days = sorted({key[:10] for key in keys})
    return dict.fromkeys(_SOURCES, ds.field("day").isin(days))


def cover(
    inputs: Mapping[str, DataFrame], keys: frozenset[str] | None, _options: Options
) -> DataFrame:
    """Rows, first and last time, per source, subject and hour of reading."""
    frames = [_covered(inputs[name], name, keys) for name in _SOURCES]
    result = frames[0]
    for frame in frames[1:]:
        result = result.unionByName(frame)
    return result


def _covered(rows: DataFrame, name: str, keys: frozenset[str] | None) -> DataFrame:
    kind, subject, at = _SOURCES[name]
    if keys is not None:
        rows = rows.where(F.col("day").isin(sorted({key[:10] for key in keys})))
    hour = F.date_format("read_at", _HOUR).alias("hour")
    named = F.coalesce(F.col(subject), F.lit("")).alias("subject")
    found = rows.groupBy("cluster", "source", named, hour).agg(
        F.count("*").alias("rows"),
        F.min(at).alias("first_at"),
        F.max(at).alias("last_at"),
        _closed(name).alias("closed"),
        _missing(name).alias("missing"),
    )
    if keys is not None:
        found = found.where(F.col("hour").isin(sorted(keys)))
    return found.withColumn("kind", F.lit(kind))


def _closed(name: str) -> Column:
    return F.max("closed") if name == "audit_reports" else F.lit(None).cast("boolean")


def _missing(name: str) -> Column:
    if name != "metric_samples":
        return F.lit(None).cast("string")
    failed = F.count_if(F.col("scrape_error").isNotNull())
    text = F.concat(failed.cast("string"), F.lit(" scrapes failed: "), F.max("scrape_error"))
    return F.when(failed > 0, text)
