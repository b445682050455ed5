"""The facts that may explain a loss, from logs and cluster states, as rows of one shape."""

from __future__ import annotations

from collections.abc import Mapping

from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as F

from acktrail.audit.causes import WINDOW_MS
from acktrail.contracts.gold import DELIVERY_LEDGER
from pipelines.spark_schema import spark_type

COLUMNS = {
    "cluster": "string",
    "topic": "string",
    "session": "string",
    "group": "string",
    "block": "long",
    "kind": "string",
    "key": "string",
    "at_ms": "long",
    "partition": "long",
    "client_id": "string",
    "host": "string",
    "error": "string",
    "offset": "long",
    "high_watermark": "long",
    "broker": "long",
    "epoch": "long",
    "attempts_left": "long",
    "isr": "array<long>",
    "settings": "map<string,string>",
    "findings": spark_type(DELIVERY_LEDGER.column("findings")).simpleString(),
    "bucket": "string",
}
EVENTS = ("producer_events", "consumer_events", "broker_events")
_FACTS = [
    *("retry", "split_retry", "expired", "send_failed", "connection_failure", "fatal_sequence"),
    *("dropped_at_close", "broker_append_error", "acks0_close", "isr_shrink", "truncation"),
    *("unclean_election", "leader_recovering", "offset_reset"),
]


def shaped(frame: DataFrame) -> DataFrame:
    """*frame* with exactly the common columns."""
    return frame.select(
        [
            (F.col(n) if n in frame.columns else F.lit(None)).cast(kind).alias(n)
            for n, kind in COLUMNS.items()
        ]
    )


def ms(column: Column) -> Column:
    """An instant in epoch milliseconds."""
    return (F.unix_micros(column) / 1000).cast("long")


def fact_rows(inputs: Mapping[str, DataFrame], losses: DataFrame) -> DataFrame:
    """Facts near the *losses* of each topic; one that names no topic may concern any."""
    places = losses.groupBy("cluster", "topic").agg(
        (ms(F.min("first_at")) - WINDOW_MS).alias("since_ms"),
        (ms(F.max("last_at")) + WINDOW_MS).alias("until_ms"),
    )
    found = [_events(inputs[name], name) for name in EVENTS]
    found.append(_states(inputs["cluster_states"]))
    facts = found[0]
    for frame in found[1:]:
        facts = facts.unionByName(frame)
    facts = facts.withColumnRenamed("topic", "named")
    here = (F.col("named").isNull()) | (F.col("named") == "") | (F.col("named") == F.col("topic"))
    near = F.col("at_ms").between(F.col("since_ms"), F.col("until_ms"))
    timeless = F.col("since_ms").isNull()
    return shaped(facts.join(F.broadcast(places), "cluster").where(here & (near | timeless)))


def _events(events: DataFrame, name: str) -> DataFrame:
    has = events.columns
    kept = events.where(F.col("kind").isin(_FACTS) & F.col("at").isNotNull())
    rows = kept.select(
        *("cluster", "topic", "kind", "partition", "client_id", "host", "error"),
        F.concat(F.lit(f"{name}:"), F.col("event_key")).alias("key"),
        ms(F.col("at")).alias("at_ms"),
        *(
            F.col(n) if n in has else F.lit(None).cast("long").alias(n)
            for n in ("offset", "high_watermark", "attempts_left", "broker")
        ),
        F.col("group") if "group" in has else F.lit(None).cast("string").alias("group"),
        (F.col("leader_epoch") if "leader_epoch" in has else F.lit(None)).alias("epoch"),
    )
    return shaped(rows)


def _states(states: DataFrame) -> DataFrame:
    at = ms(F.col("at"))
    rows = states.select(
        *("cluster", "topic", "partition", "isr"),
        F.lit("cluster_state").alias("kind"),
        F.concat_ws("/", F.lit("cluster_states:"), "topic", "partition", at).alias("key"),
        at.alias("at_ms"),
        F.col("latest_offset").alias("offset"),
        F.col("leader").alias("broker"),
        F.col("leader_epoch").alias("epoch"),
    )
    return shaped(rows)
