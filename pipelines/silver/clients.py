"""`clients`: which log host, metrics target, client id and audit session are one producer.

Hosts meet by name, after the alias rules. Where they do not, a client id that only one host logs,
only one target measures, or only one host audits in the cluster is still one producer.
"""

from __future__ import annotations

from collections.abc import Mapping

from pyspark.sql import DataFrame, Window
from pyspark.sql import functions as F

from acktrail.contracts.silver import CLIENT_SIGHTINGS, CLIENTS
from pipelines.job import Fold, Options, everything

_SEEN = ("logs", "metrics", "audits")


def meet_clients(
    inputs: Mapping[str, DataFrame], _keys: frozenset[str] | None, _options: Options
) -> DataFrame:
    """Bring the evidence of one producer together."""
    named = (
        inputs[CLIENT_SIGHTINGS.name]
        .groupBy("cluster", "client_id", "host", "evidence", "session", "instance")
        .agg(
            F.min("first_seen_at").alias("first_seen_at"),
            F.max("last_seen_at").alias("last_seen_at"),
        )
    )
    return _one_row_each(_meet(named))


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


JOB = Fold((CLIENT_SIGHTINGS,), CLIENTS, everything, meet_clients)
