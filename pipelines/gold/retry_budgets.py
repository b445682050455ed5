"""retry_budgets: which batches are being retried, and when their budget ends.

Evidence is spread over the hours it can concern, and the rules see one client and one hour at a
time, with what lies before and after it. So a partition is a function of the evidence around its
hour, whatever runs brought that evidence in.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import asdict
from datetime import UTC, datetime, timedelta
from functools import reduce
from typing import TYPE_CHECKING, Any

import pyarrow as pa
from pyspark.sql import functions as F

from acktrail.contracts.arrow import rows as arrow_rows
from acktrail.contracts.bronze import CLUSTER_STATES
from acktrail.contracts.gold import RETRY_BUDGETS
from acktrail.contracts.silver import CLIENT_CONFIGS, CLIENT_METRICS, PRODUCER_EVENTS
from pipelines.job import Evidence, Fold, Options
from pipelines.rules.client_budgets import (
    CONFIG,
    ERRORS,
    EVENT,
    LEADER_BUCKET_S,
    LOWEST_QUEUE_MS,
    QUEUE,
    RETRIES,
    SETTLING,
    ClientHour,
    Place,
    budgets_of_hour,
    hours_concerned,
)
from pipelines.rules.retry_signs import ENDING_KINDS, OPENING_KINDS
from pipelines.spark_schema import struct

if TYPE_CHECKING:
    from pyspark.sql import Column, DataFrame

KINDS = sorted(ENDING_KINDS | OPENING_KINDS)
_HOUR = "%Y-%m-%dT%H"
_ONE_HOUR = timedelta(hours=1)
_QUARTER_S = 900
_SPARK_HOUR = "yyyy-MM-dd'T'HH"
_TOTALS = {"record-error-total": ERRORS, "record-retry-total": RETRIES}
_QUEUE_METRIC = "record-queue-time-max"
_COLUMNS = {
    "tag": "string",
    "cluster": "string",
    "client": "string",
    "opened_hour": "string",
    "host": "string",
    "key": "string",
    "at": "timestamp",
    "kind": "string",
    "topic": "string",
    "partition": "bigint",
    "correlation_id": "bigint",
    "attempts_left": "bigint",
    "error": "string",
    "retriable": "boolean",
    "category": "string",
    "node": "bigint",
    "records": "bigint",
    "elapsed_ms": "bigint",
    "origin": "string",
    "value": "double",
    "instance": "string",
    "settings": "map<string,string>",
}
"""All evidence in one frame, so that one grouping serves the rules; *tag* says what a row is."""


def chains_concerned(evidence: Evidence) -> frozenset[str]:
    """The hours in which chains were opened that the new evidence can change.

    Retry lines and long queue times open chains, so their own time decides. All other evidence
    only says more of chains that are there.
    """
    hours = _hours_of_signs(evidence.new)
    others = [name for name in evidence.new if name != PRODUCER_EVENTS.name]
    if others and evidence.output is not None:
        written = {r[0] for r in evidence.output.select("opened_hour").distinct().collect()}
        hours |= written & _hours_of_samples(evidence.changed)
        first = _first_of_others(evidence.new) if written - hours else None
        hours |= {hour for hour in written if first is not None and hour >= first}
    return frozenset(hours)


def _hours_of_signs(new: Mapping[str, DataFrame]) -> set[str]:
    """The hours that new lines and queue times concern; only distinct quarters are collected."""
    signs = []
    if PRODUCER_EVENTS.name in new:
        signs.append(new[PRODUCER_EVENTS.name].where(F.col("kind").isin(KINDS)).select("at"))
    if CLIENT_METRICS.name in new:
        signs.append(_long_queues(new[CLIENT_METRICS.name]).select("at"))
    if not signs:
        return set()
    both = reduce(lambda a, b: a.union(b), signs).where("at IS NOT NULL")
    quarters = both.select(F.floor(F.unix_timestamp("at") / _QUARTER_S)).distinct().collect()
    times = [datetime.fromtimestamp(int(row[0]) * _QUARTER_S, UTC) for row in quarters]
    return {hour.strftime(_HOUR) for at in times for hour in hours_concerned(at)}


def _hours_of_samples(changed: Mapping[str, frozenset[str]]) -> set[str]:
    hours = [_hour(text) for text in changed.get(CLIENT_METRICS.name, ()) if text != "undated"]
    return {_text(hour + n * _ONE_HOUR) for hour in hours for n in (-1, 0, 1)}


def _first_of_others(new: Mapping[str, DataFrame]) -> str | None:
    """From which hour on new settings or answers of the cluster can change a chain."""
    times = [
        new[table.name].select(F.col(column).alias("at"))
        for table, column in ((CLIENT_CONFIGS, "started_at"), (CLUSTER_STATES, "at"))
        if table.name in new
    ]
    if not times:
        return None
    first = reduce(lambda a, b: a.union(b), times).agg(F.min("at")).collect()[0][0]
    return None if first is None else _text(first.astimezone(UTC) - _ONE_HOUR)


def _long_queues(metrics: DataFrame) -> DataFrame:
    """Samples of a queue time that could matter, whatever the delivery timeout."""
    return _clients_as_a_whole(metrics).where(_is_long_queue())


def _clients_as_a_whole(metrics: DataFrame) -> DataFrame:
    return metrics.where("topic IS NULL AND node IS NULL")


def _is_long_queue() -> Column:
    return (F.col("metric") == _QUEUE_METRIC) & (F.col("value") >= LOWEST_QUEUE_MS)


def budget_retries(
    inputs: Mapping[str, DataFrame], keys: frozenset[str] | None, options: Options
) -> DataFrame:
    """The budgets of the chains opened in the hours *keys* (all: None)."""
    metrics = _near(inputs[CLIENT_METRICS.name], keys)
    events = _near(inputs[PRODUCER_EVENTS.name], keys).where(F.col("kind").isin(KINDS))
    events = events.where("at IS NOT NULL")
    queues = _long_queues(metrics)
    found = _found(events, queues)
    clients = sorted({row["client_id"] for row in found})
    hours = _hours(found, keys)
    ours = F.coalesce("client_id", F.lit("")).isin(clients)
    samples = _clients_as_a_whole(metrics).where(ours)
    samples = samples.where(_is_long_queue() | F.col("metric").isin(list(_TOTALS)))
    evidence = (
        _spread(_events(events), hours)
        .unionByName(_spread(_samples(samples), hours))
        .unionByName(_configs(inputs[CLIENT_CONFIGS.name].where(ours), hours))
    )
    leaders = _leaders(inputs[CLUSTER_STATES.name], found)
    return evidence.groupBy("cluster", "client", "opened_hour").applyInArrow(
        _rules(dict(options.inventory), leaders), struct(RETRY_BUDGETS)
    )


def _found(events: DataFrame, queues: DataFrame) -> list[Any]:
    """Which clients and topics have signs, in which hours: not more than gold will have.

    Collected, so that all other evidence stays out of the shuffle; a quiet fleet has none.
    """
    client = F.coalesce("client_id", F.lit("")).alias("client_id")
    hour = F.date_trunc("hour", "at").alias("hour")
    signs = events.select(client, "topic", hour).union(queues.select(client, "topic", hour))
    return signs.distinct().collect()


def _hours(found: Sequence[Any], keys: frozenset[str] | None) -> list[str]:
    """The hours that can have chains: of *keys*, where given."""
    near = {_text(row["hour"].astimezone(UTC) + n * _ONE_HOUR) for row in found for n in (-1, 0, 1)}
    return sorted(near if keys is None else near & keys)


def _leaders(states: DataFrame, found: Sequence[Any]) -> dict[Place, int]:
    """The leader of each partition that has signs, for every five minutes the cluster answered."""
    topics = sorted({row["topic"] for row in found if row["topic"]})
    if not topics:
        return {}
    times = [row["hour"].astimezone(UTC) for row in found]
    at = F.col("at")
    near = (at >= F.lit(min(times))) & (at < F.lit(max(times) + _ONE_HOUR))
    bucket = F.floor(F.unix_timestamp("at") / LEADER_BUCKET_S).alias("bucket")
    leading = states.where(near & F.col("topic").isin(topics) & (F.col("leader") >= 0))
    each = leading.groupBy("cluster", "topic", "partition", bucket)
    answers = each.agg(F.max_by("leader", "at").alias("leader")).collect()
    return {(r["cluster"], r["topic"], r["partition"], r["bucket"]): r["leader"] for r in answers}


def _rules(
    inventory: Mapping[str, Mapping[str, str]],
    leaders: Mapping[Place, int],
) -> Callable[[tuple[Any, ...], pa.Table], pa.Table]:
    """The rules as Spark calls them: one client and hour in, its budgets out."""

    def budgets(key: tuple[Any, ...], table: pa.Table) -> pa.Table:
        cluster, client, hour = (str(part.as_py()) for part in key)
        wanted = ClientHour(cluster, client, _hour(hour))
        found = budgets_of_hour(wanted, table.to_pylist(), inventory, leaders)
        place = {"cluster": cluster, "client_id": client, "opened_hour": hour}
        return arrow_rows(
            RETRY_BUDGETS,
            [
                {**asdict(budget), "evidence": list(budget.evidence), "host": host, **place}
                for host, budget in found
            ],
        )

    return budgets


def _events(events: DataFrame) -> DataFrame:
    return _shaped(
        events,
        tag=F.lit(EVENT),
        key=F.col("event_key"),
        origin=F.regexp_replace("record_key", "/[^/]*$", ""),
    )


def _samples(metrics: DataFrame) -> DataFrame:
    """Samples of the client as a whole; totals give their growth, the rest their value."""
    tags = {**_TOTALS, _QUEUE_METRIC: QUEUE}
    tag = F.create_map(*(F.lit(part) for pair in tags.items() for part in pair))[F.col("metric")]
    total = F.col("metric").endswith("-total")
    return _shaped(
        metrics.where(~total | F.col("increase").isNotNull()),
        tag=tag,
        key=F.concat_ws("/", "source", "series", F.unix_millis("at").cast("string")),
        value=F.when(total, F.col("increase")).otherwise(F.col("value")),
    )


def _configs(configs: DataFrame, hours: Sequence[str]) -> DataFrame:
    """For each client and hour: its starts until then."""
    names = {
        "retries": "retries",
        "delivery.timeout.ms": "delivery_timeout_ms",
        "request.timeout.ms": "request_timeout_ms",
        "linger.ms": "linger_ms",
        "retry.backoff.ms": "retry_backoff_ms",
        "retry.backoff.max.ms": "retry_backoff_max_ms",
        "client.version": "client_version",
    }
    pairs = [part for n, c in names.items() for part in (F.lit(n), F.col(c).cast("string"))]
    producers = configs.where("role = 'producer' AND started_at IS NOT NULL")
    shaped = _shaped(
        producers,
        tag=F.lit(CONFIG),
        key=F.col("record_key"),
        at=F.col("started_at"),
        origin=F.regexp_replace("record_key", "/[^/]*$", ""),
        settings=F.map_filter(F.create_map(*pairs), lambda _name, value: value.isNotNull()),
    ).drop("opened_hour")
    listed = F.array(*(F.lit(hour) for hour in hours)).cast("array<string>")
    spread = shaped.withColumn("opened_hour", F.explode(listed))
    hour = F.to_timestamp("opened_hour", _SPARK_HOUR)
    until = hour + F.expr("INTERVAL 1 HOUR") + _span(SETTLING)
    return spread.where(F.col("at") < until).select(*_COLUMNS)


def _shaped(frame: DataFrame, **given: Column) -> DataFrame:
    """*frame* with the common columns: *given*, else its own, else null."""
    client = F.coalesce("client_id", F.lit(""))
    chosen = {"client": client, **given}
    return frame.select(
        *(
            (
                chosen[name]
                if name in chosen
                else F.col(name)
                if name in frame.columns
                else F.lit(None)
            )
            .cast(kind)
            .alias(name)
            for name, kind in _COLUMNS.items()
        )
    )


def _spread(frame: DataFrame, hours: Sequence[str]) -> DataFrame:
    """Each row once for every hour whose chains it can concern; of *hours* only."""
    own = F.date_trunc("hour", "at")
    early = F.col("at") < own + _span(SETTLING)
    concerned = F.array(
        F.when(early, own - F.expr("INTERVAL 1 HOUR")), own, own + F.expr("INTERVAL 1 HOUR")
    )
    spread = frame.withColumn("_hour", F.explode(F.array_compact(concerned)))
    spread = spread.withColumn("opened_hour", F.date_format("_hour", _SPARK_HOUR)).drop("_hour")
    return spread.where(F.col("opened_hour").isin(list(hours))).select(*_COLUMNS)


def _near(frame: DataFrame, keys: frozenset[str] | None) -> DataFrame:
    """The partitions of *frame* that can concern the hours *keys*."""
    if keys is None:
        return frame
    near = {_text(_hour(key) + n * _ONE_HOUR) for key in keys for n in (-1, 0, 1)}
    return frame.where(F.col("hour").isin(sorted(near)))


def _hour(text: str) -> datetime:
    return datetime.strptime(text, _HOUR).replace(tzinfo=UTC)


def _text(hour: datetime) -> str:
    return hour.strftime(_HOUR)


def _span(length: timedelta) -> Column:
    return F.expr(f"INTERVAL {int(length.total_seconds())} SECOND")


JOB = Fold(
    inputs=(PRODUCER_EVENTS, CLIENT_CONFIGS, CLIENT_METRICS, CLUSTER_STATES),
    output=RETRY_BUDGETS,
    touched=chains_concerned,
    transform=budget_retries,
)
