"""`clients`: which log host, metrics target, client id and audit session are one producer.

Hosts meet by name, after the alias rules. Where they do not, a client id that only one host logs,
only one target measures, or only one host audits in the cluster is still one producer.
"""

from __future__ import annotations

from collections.abc import Mapping
from functools import reduce

from pyspark.sql import Column, DataFrame, Window
from pyspark.sql import functions as F

from acktrail.contracts.bronze import AUDIT_REPORTS
from acktrail.contracts.silver import CLIENT_CONFIGS, CLIENT_METRICS, CLIENTS, PRODUCER_EVENTS
from acktrail.contracts.vocabulary import Tier
from pipelines.audit_names import after_aliases
from pipelines.job import Fold, Options, everything

_INPUTS = (PRODUCER_EVENTS, CLIENT_CONFIGS, CLIENT_METRICS, AUDIT_REPORTS)
_SEEN = ("logs", "metrics", "audits")


def meet_clients(
    inputs: Mapping[str, DataFrame], _keys: frozenset[str] | None, options: Options
) -> DataFrame:
    """Bring the evidence of one producer together."""
    sightings = reduce(
        DataFrame.unionByName,
        (
            _sighted(inputs[PRODUCER_EVENTS.name], "logs", "at"),
            _sighted(inputs[CLIENT_CONFIGS.name].where("role = 'producer'"), "logs", "started_at"),
            _sighted(inputs[CLIENT_METRICS.name], "metrics", "at", instance=F.col("instance")),
            _audited(inputs[AUDIT_REPORTS.name], options),
        ),
    )
    named = sightings.groupBy(
        "cluster", "client_id", "host", "evidence", "session", "instance"
    ).agg(
        F.min("first_seen_at").alias("first_seen_at"), F.max("last_seen_at").alias("last_seen_at")
    )
    return _one_row_each(_meet(named))


def _sighted(facts: DataFrame, evidence: str, at: str, instance: Column | None = None) -> DataFrame:
    return (
        facts.where("client_id IS NOT NULL")
        .groupBy(
            "cluster",
            "client_id",
            F.coalesce("host", F.lit("")).alias("host"),
            F.lit(evidence).alias("evidence"),
            F.lit("").alias("session"),
            (F.lit(None).cast("string") if instance is None else instance).alias("instance"),
        )
        .agg(F.min(at).alias("first_seen_at"), F.max(at).alias("last_seen_at"))
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
            F.lit(None).cast("string").alias("instance"),
        )
        .agg(
            F.min(F.coalesce("began_at", "reported_at")).alias("first_seen_at"),
            F.max("reported_at").alias("last_seen_at"),
        )
    )


def _meet(named: DataFrame) -> DataFrame:
    """One host per producer: its own, or the only one the same client id is known by elsewhere."""
    of_client = Window.partitionBy("cluster", "client_id")
    for evidence in _SEEN:
        host = F.when(F.col("evidence") == evidence, F.col("host"))
        named = named.withColumn(f"_{evidence}", F.collect_set(host).over(of_client))
    lone = F.lit(True)
    for evidence in _SEEN:
        lone = lone & (F.size(f"_{evidence}") <= 1)
    first = [F.get(f"_{evidence}", F.lit(0)) for evidence in _SEEN]  # null where it is empty
    best = F.coalesce(*(F.when(host != "", host) for host in first), F.lit(""))
    met = named.withColumn("host", F.when(lone, best).otherwise(F.col("host")))
    return met.drop(*(f"_{evidence}" for evidence in _SEEN))


def _one_row_each(met: DataFrame) -> DataFrame:
    """A row per session; where a producer has none, one row with an empty session."""
    producer = ("cluster", "client_id", "host")
    known = met.groupBy(*producer).agg(
        F.max("instance").alias("instance"),
        *(F.max(F.col("evidence") == e).alias(f"in_{e}") for e in _SEEN),
        F.min("first_seen_at").alias("first_seen_at"),
        F.max("last_seen_at").alias("last_seen_at"),
        F.array_distinct(F.collect_list(F.when(F.col("session") != "", F.col("session")))).alias(
            "sessions"
        ),
    )
    none = F.array(F.lit(""))
    listed = F.when(F.size("sessions") > 0, F.col("sessions")).otherwise(none)
    return known.withColumn("session", F.explode(listed)).drop("sessions")


JOB = Fold(_INPUTS, CLIENTS, everything, meet_clients)
