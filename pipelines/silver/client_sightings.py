"""`client_sightings`: under which names each kind of evidence knows a producer, day by day.

`clients` needs all evidence there ever was, but only its names: a day of it is a few rows.
"""

from __future__ import annotations

from collections.abc import Mapping
from functools import reduce

import pyarrow.dataset as ds
from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as F

from acktrail.contracts.bronze import AUDIT_REPORTS
from acktrail.contracts.silver import (
    CLIENT_CONFIGS,
    CLIENT_METRICS,
    CLIENT_SIGHTINGS,
    PRODUCER_EVENTS,
)
from acktrail.contracts.vocabulary import Tier
from pipelines.audit_names import after_aliases
from pipelines.job import Evidence, Fold, Options

_INPUTS = (PRODUCER_EVENTS, CLIENT_CONFIGS, CLIENT_METRICS, AUDIT_REPORTS)
_HOURS = 24


def days_with_news(evidence: Evidence) -> frozenset[str]:
    """The days of the hours and days in which rows came or went."""
    return frozenset(text[:10] for texts in evidence.changed.values() for text in texts)


def rows_of_days(_evidence: Evidence, keys: frozenset[str]) -> dict[str, ds.Expression]:
    """The evidence that is kept under the days *keys*."""
    hours = [f"{day}T{hour:02}" for day in keys for hour in range(_HOURS)]
    by_hour = ds.field("hour").isin(sorted({*hours, *keys}))  # a row without a time has no hour
    by_day = ds.field("day").isin(sorted(keys))
    return {
        PRODUCER_EVENTS.name: by_hour,
        CLIENT_METRICS.name: by_hour,
        CLIENT_CONFIGS.name: by_day,
        AUDIT_REPORTS.name: by_day,
    }


def sight_clients(
    inputs: Mapping[str, DataFrame], keys: frozenset[str] | None, options: Options
) -> DataFrame:
    """The names in every kind of evidence of the days *keys* (all: None)."""
    of_day = {table.name: _in_days(inputs[table.name], keys) for table in _INPUTS}
    producers = of_day[CLIENT_CONFIGS.name].where("role = 'producer'")
    frames = (
        _sighted(of_day[PRODUCER_EVENTS.name], "logs", "at"),
        _sighted(producers, "logs", "started_at"),
        _sighted(of_day[CLIENT_METRICS.name], "metrics", "at", instance=F.col("instance")),
        _audited(of_day[AUDIT_REPORTS.name], options),
    )
    grain = ("cluster", "client_id", "host", "evidence", "session", "instance", "day")
    together = reduce(DataFrame.unionByName, frames).groupBy(*grain)
    return together.agg(
        F.min("first_seen_at").alias("first_seen_at"),
        F.max("last_seen_at").alias("last_seen_at"),
        F.min("first_received_at").alias("first_received_at"),
    )


def _in_days(rows: DataFrame, keys: frozenset[str] | None) -> DataFrame:
    """*rows* with their day, of the days *keys*."""
    dated = rows if "day" in rows.columns else rows.withColumn("day", F.expr("left(hour, 10)"))
    return dated if keys is None else dated.where(F.col("day").isin(sorted(keys)))


def _sighted(facts: DataFrame, evidence: str, at: str, instance: Column | None = None) -> DataFrame:
    return (
        facts.where("client_id IS NOT NULL")
        .groupBy(
            "cluster",
            "client_id",
            F.coalesce("host", F.lit("")).alias("host"),
            F.lit(evidence).alias("evidence"),
            F.lit("").alias("session"),
            "day",
            (F.lit(None).cast("string") if instance is None else instance).alias("instance"),
        )
        .agg(
            F.min(at).alias("first_seen_at"),
            F.max(at).alias("last_seen_at"),
            F.lit(None).cast("timestamp").alias("first_received_at"),
        )
    )


def _audited(reports: DataFrame, options: Options) -> DataFrame:
    alive = reports.where((F.col("tier") == Tier.HEARTBEAT.value) & (F.col("session") != ""))
    return (
        after_aliases(alive, options)
        .where(F.col("settings")["client_id"].isNotNull())
        .groupBy(
            "cluster",
            F.col("settings")["client_id"].alias("client_id"),
            F.coalesce(F.col("settings")["host"], F.lit("")).alias("host"),
            F.lit("audits").alias("evidence"),
            "session",
            "day",
            F.lit(None).cast("string").alias("instance"),
        )
        .agg(
            F.min(F.coalesce("began_at", "reported_at")).alias("first_seen_at"),
            F.max("reported_at").alias("last_seen_at"),
            F.min("read_at").alias("first_received_at"),
        )
    )


JOB = Fold(_INPUTS, CLIENT_SIGHTINGS, days_with_news, sight_clients, rows_of_days)
