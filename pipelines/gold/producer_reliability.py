"""The mission's join: metrics, log lines and audits of a producer, topic and hour, side by side."""

from __future__ import annotations

from collections.abc import Mapping
from datetime import UTC, timedelta

import pyarrow as pa
import pyarrow.dataset as ds
from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as F

from acktrail.contracts.vocabulary import State
from acktrail.window import hour_of
from pipelines.arrow_rows import within_hours
from pipelines.job import Evidence, Options

_KEY = ("cluster", "client_id", "topic", "hour")
_HOUR = "yyyy-MM-dd'T'HH"
_LOST = (
    *(s.value for s in State if s.value.startswith("lost_")),
    State.REJECTED.value,
    State.UNACCOUNTED.value,
)
_FAILED = ("send_failed", "fatal_sequence", "dropped_at_close")
_COUNTED = ("retry_lines", "expired_lines", "expired_batches", "failure_lines")
_MEASURED = {
    # column: (metric, how its samples of an hour become one number)
    "error_rate_per_s": ("record-error-rate", "highest"),
    "retry_rate_per_s": ("record-retry-rate", "highest"),
    "errors_total": ("record-error-total", "growth"),
    "retries_total": ("record-retry-total", "growth"),
    "sends_total": ("record-send-total", "growth"),
}


def hours_with_news(evidence: Evidence) -> frozenset[str]:
    """Hours of new metrics and lines, and every hour that a changed account spans."""
    found: set[str] = set()
    for name in ("client_metrics", "broker_metrics", "producer_events"):
        found |= evidence.changed.get(name, frozenset())
    buckets = evidence.changed.get("delivery_ledger", frozenset())
    if buckets and "delivery_ledger" in evidence.inputs:
        ours = ds.field("bucket").isin(sorted(buckets)) & ds.field("first_at").is_valid()
        found |= _spanned(
            evidence.inputs["delivery_ledger"].read("first_at", "last_at", where=ours)
        )
    return frozenset(found)


def _spanned(accounts: pa.Table) -> set[str]:
    """Every hour from the first to the last event of each account."""
    found = set()
    for first, last in zip(*(c.to_pylist() for c in accounts.columns), strict=True):
        hour = first.astimezone(UTC).replace(minute=0, second=0, microsecond=0)
        while hour <= (last or first) or hour <= first:
            found.add(hour_of(hour))
            hour += timedelta(hours=1)
    return found


def rows_of_hours(_evidence: Evidence, keys: frozenset[str]) -> dict[str, ds.Expression]:
    """Metrics and lines of the hours *keys*, and accounts that begin in them."""
    of_hours = ds.field("hour").isin(sorted(keys))
    by_hour = ("client_metrics", "producer_events", "broker_metrics")
    begun = within_hours("first_at", keys)
    return {**dict.fromkeys(by_hour, of_hours), "delivery_ledger": begun}


def join_evidence(
    inputs: Mapping[str, DataFrame], keys: frozenset[str] | None, _options: Options
) -> DataFrame:
    """One row per client, topic and hour of which clients, audits or brokers report anything."""
    own = [
        _metrics(_in_hours(inputs["client_metrics"], keys)),
        _lines(_in_hours(inputs["producer_events"], keys)),
        _audits(inputs["delivery_ledger"], keys),
    ]
    rows = own[0]
    for frame in own[1:]:
        rows = rows.unionByName(frame, allowMissingColumns=True)
    together = rows.groupBy(*_KEY).agg(*_combined())
    return _beside_brokers(together, _in_hours(inputs["broker_metrics"], keys))


def _beside_brokers(clients: DataFrame, brokers: DataFrame) -> DataFrame:
    """*clients* with what brokers count of their topics.

    A topic without a client, and all topics together, have a row without a client id: what
    brokers count of the whole cluster is never put beside one client.
    """
    topics = _failed_requests(brokers.where(F.coalesce("topic", F.lit("")) != ""))
    beside = clients.join(topics, ["cluster", "topic", "hour"], "full")
    named = beside.withColumn("client_id", F.coalesce("client_id", F.lit("")))
    whole = (
        _failed_requests(brokers.where(F.coalesce("topic", F.lit("")) == ""))
        .withColumnRenamed("failed_produce_requests_total", "failed_in_all")
        .join(_produce_errors(brokers), ["cluster", "hour"], "full")
        .select("cluster", "hour", "failed_in_all", "produce_errors_total")
        .withColumns({"client_id": F.lit(""), "topic": F.lit("")})
    )
    failed = F.coalesce("failed_produce_requests_total", "failed_in_all")
    lines = {name: F.coalesce(name, F.lit(0)) for name in _COUNTED}
    return (
        named.join(whole, list(_KEY), "full")
        .withColumns({"failed_produce_requests_total": failed, **lines})
        .drop("failed_in_all")
        .join(_below_min_isr(brokers), ["cluster", "hour"], "left")
    )


def _in_hours(frame: DataFrame, keys: frozenset[str] | None) -> DataFrame:
    return frame if keys is None else frame.where(F.col("hour").isin(sorted(keys)))


def _named(column: str) -> Column:
    return F.coalesce(F.col(column), F.lit("")).alias(column)


def _metrics(samples: DataFrame) -> DataFrame:
    wanted = samples.where(F.col("metric").isin([m for m, _ in _MEASURED.values()]))
    wanted = wanted.where("node IS NULL")
    columns = []
    for column, (metric, how) in _MEASURED.items():
        mine = F.col("metric") == metric
        if how == "highest":
            columns.append(F.max(F.when(mine, F.col("value"))).alias(column))
        else:
            columns.append(F.sum(F.when(mine, F.col("increase"))).alias(column))
    return wanted.groupBy("cluster", _named("client_id"), _named("topic"), "hour").agg(*columns)


def _lines(events: DataFrame) -> DataFrame:
    retry = F.col("kind").isin("retry", "split_retry")
    return events.groupBy("cluster", _named("client_id"), _named("topic"), "hour").agg(
        F.count_if(retry).alias("retry_lines"),
        F.count_if(F.col("kind") == "expired").alias("expired_lines"),
        F.count_distinct(F.when(F.col("kind") == "expired", F.col("event_key"))).alias(
            "expired_batches"
        ),
        F.count_if(F.col("kind").isin(*_FAILED)).alias("failure_lines"),
        F.min(F.when(retry, F.col("attempts_left"))).alias("attempts_left_min"),
    )


def _audits(ledger: DataFrame, keys: frozenset[str] | None) -> DataFrame:
    """Accounts of the log, and the latencies of groups, in the hour of a block's first event."""
    accounts = ledger.where("first_at IS NOT NULL").withColumn(
        "hour", F.date_format("first_at", _HOUR)
    )
    of_log = F.col("group") == ""
    lost = sum((F.col(name) for name in _LOST), F.lit(0))
    columns = {
        "sent": F.col("sent"),
        "acked": F.col("acked"),
        "lost": lost,
        "duplicated": F.col("duplicates"),
        "out_of_order": F.col("out_of_order"),
    }
    return (
        _in_hours(accounts, keys)
        .groupBy("cluster", _named("client_id"), "topic", "hour")
        .agg(
            *(F.sum(F.when(of_log, value)).alias(name) for name, value in columns.items()),
            F.percentile(F.col("latency_p50_ms"), F.lit(0.5)).cast("long").alias("latency_p50_ms"),
            F.max("latency_p99_ms").alias("latency_p99_ms"),
        )
    )


def _combined() -> list[Column]:
    """Each column comes from one of the frames only, so that any way to add them will do."""
    whole = [F.max(name).alias(name) for name in _MEASURED]
    counted = [F.coalesce(F.sum(name), F.lit(0)).alias(name) for name in _COUNTED]
    audited = ("sent", "acked", "lost", "duplicated", "out_of_order")
    return [
        *whole,
        *counted,
        F.min("attempts_left_min").alias("attempts_left_min"),
        *(F.sum(name).alias(name) for name in audited),
        F.max("latency_p50_ms").alias("latency_p50_ms"),
        F.max("latency_p99_ms").alias("latency_p99_ms"),
    ]


def _failed_requests(brokers: DataFrame) -> DataFrame:
    """Growth of the failed produce requests of each topic, all brokers together."""
    failed = brokers.where(F.col("metric") == "failed-produce-requests-total")
    return failed.groupBy("cluster", _named("topic"), "hour").agg(
        F.sum("increase").alias("failed_produce_requests_total")
    )


def _produce_errors(brokers: DataFrame) -> DataFrame:
    errors = (
        (F.col("metric") == "request-errors-total")
        & (F.col("request") == "Produce")
        & (F.col("error") != "NONE")
    )
    return (
        brokers.where(errors)
        .groupBy("cluster", "hour")
        .agg(F.sum("increase").alias("produce_errors_total"))
    )


def _below_min_isr(brokers: DataFrame) -> DataFrame:
    below = brokers.where(F.col("metric") == "under-min-isr-partitions")
    return below.groupBy("cluster", "hour").agg(F.max("value").alias("under_min_isr_max"))
