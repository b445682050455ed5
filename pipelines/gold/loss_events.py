"""The job of `loss_events`: contiguous lost ids of one session, with one state and one cause.

The accounts of a topic and the facts near its losses are rows of one frame, so that no join copies
the facts to every loss.
"""

from __future__ import annotations

from bisect import bisect_left, bisect_right
from collections.abc import Iterable, Iterator, Mapping
from datetime import datetime, timedelta
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.dataset as ds
from pyspark.sql import DataFrame
from pyspark.sql import functions as F

from acktrail.audit.block_account import INSTANTS, LOG, finding_of
from acktrail.audit.causes import LOSSES, cause_of
from acktrail.audit.loss_evidence import (
    OF_LEADERS,
    REACH_MS,
    RESET,
    SETTING,
    WINDOW_MS,
    Loss,
    TopicFacts,
    merge_ranges,
    printed_settings,
)
from acktrail.contracts.arrow import schema
from acktrail.contracts.gold import DELIVERY_LEDGER, LOSS_EVENTS
from acktrail.contracts.vocabulary import State
from acktrail.lake.rows import Rows
from acktrail.window import hour_of
from pipelines.arrow_rows import Row, by_key, rows_of
from pipelines.gold.delivery_ledger import in_buckets, in_one_shape
from pipelines.gold.settings_in_force import SETTINGS_IN_FORCE, settings_in_force
from pipelines.job import Evidence, Options
from pipelines.spark_schema import loose, spark_type

_EVENTS = ("producer_events", "consumer_events", "broker_events")
_FACTS = [
    *("retry", "split_retry", "expired", "send_failed", "connection_failure", "fatal_sequence"),
    *("dropped_at_close", "broker_append_error", "acks0_close", "isr_shrink"),
    *(RESET, *OF_LEADERS),
]
"""Kinds of events that a rule of a cause looks at."""
_FAR = (RESET, *OF_LEADERS)
"""Of these, kinds that have offsets or epochs: they count from further away."""
_COLUMNS = {
    # Accounts and facts.
    "cluster": "string",
    "topic": "string",
    "group": "string",
    "client_id": "string",
    "kind": "string",
    # Accounts.
    "session": "string",
    "block": "long",
    "bucket": "string",
    "host": "string",
    "settings": "map<string,string>",
    "printed": (
        "array<struct<host:string,started_ms:bigint,key:string,settings:map<string,string>>>"
    ),
    "findings": spark_type(DELIVERY_LEDGER.column("findings")).simpleString(),
    # Facts.
    "key": "string",
    "at_ms": "long",
    "after_ms": "long",
    "partition": "long",
    "detail": "string",
    "error": "string",
    "offset": "long",
    "high_watermark": "long",
    "broker": "long",
    "leader": "long",
    "epoch": "long",
    "attempts_left": "long",
    "setting": "string",
    "isr": "array<long>",
    "isr_before": "array<long>",
    "topic_id": "string",
}
_HERE = "named IS NULL OR named = '' OR named = topic"
"""A fact that names no topic may concern any."""
_SPANS = (("first_at", "last_at"), ("first_received_at", "last_received_at"))
"""When a loss happened: by the producer's clock, and by receipts."""
_LOSS = ("cluster", "topic", "client_id", "bucket", *_SPANS[0], *_SPANS[1])
_INSTANT = pa.timestamp("us", tz="UTC")
_MINUTE = timedelta(minutes=1)
_NEAR = timedelta(milliseconds=WINDOW_MS) + _MINUTE
"""How far a fact may be from a loss that it explains, by the minute."""
_REACH = timedelta(milliseconds=REACH_MS) + _MINUTE
"""The same for kinds that have offsets or epochs."""
_ALLOWED = "unclean.leader.election.enable"
_SCHEMA = pa.schema([f.with_nullable(True) for f in schema(LOSS_EVENTS)])
_OF_GROUPS = (State.SKIPPED_BY_CONSUMER, State.EXPIRED_BEFORE_READ)
_SETTINGS = {"acks": "acks", "retries": "retries", "delivery_timeout_ms": "delivery.timeout.ms"}


def touched_losses(evidence: Evidence) -> frozenset[str]:
    """Buckets of changed accounts, and of known losses that new facts are near to."""
    found = set(evidence.changed.get("delivery_ledger", frozenset()))
    if evidence.output is not None:
        found |= _near_news(evidence, evidence.output)
    return frozenset(found)


def _near_news(evidence: Evidence, output: Rows) -> set[str]:
    """Buckets of losses near a new fact of their topic or client."""
    facts: list[tuple[timedelta, _Minutes]] = []
    for name in _EVENTS:
        if name in evidence.new:
            rows = evidence.new[name].read("cluster", "topic", "at", "kind")
            far: Any = pc.is_in(rows.column("kind"), pa.array(_FAR))
            places = rows.select(["cluster", "topic", "at"])
            facts.append((_REACH, _minutes_with_news(places.filter(far))))
            facts.append((_NEAR, _minutes_with_news(places.filter(pc.invert(far)))))
    if "cluster_states" in evidence.new:
        states = evidence.new["cluster_states"].read("cluster", "topic", "at")
        facts.append((_NEAR, _minutes_with_news(states)))
    configs = evidence.new.get("client_configs")
    printed = {} if configs is None else _first_printed(configs)
    set_ = _topics_set(evidence.new.get("cluster_configs"))
    firsts = [minutes[0] for _, news in facts for minutes in news.values()] + list(printed.values())
    if not firsts and not set_:
        return set()
    # By the producer's own times; where its clock is slow, receipts reach further.
    oldest = {} if set_ else {name: min(firsts) - _REACH for _, name in _SPANS}
    late_enough = output.reaching(oldest, nulls=True) if oldest else output
    return {
        loss["bucket"]
        for loss in late_enough.read(*_LOSS).to_pylist()
        if _is_after(loss, printed)
        or {(loss["cluster"], loss["topic"]), (loss["cluster"], "")} & set_
        or any(_is_near(loss, news, reach) for reach, news in facts)
    }


def _topics_set(configs: Rows | None) -> set[tuple[str, str]]:
    """Topics whose settings are newly known."""
    if configs is None:
        return set()
    rows = configs.read("cluster", "entity", where=ds.field("entity_kind") == "topic")
    return {(row["cluster"], row["entity"]) for row in rows.to_pylist()}


def _first_printed(configs: Rows) -> dict[tuple[str, str], datetime]:
    """When each client of *configs* printed its settings first."""
    rows = configs.read("cluster", "client_id", "started_at")
    first = rows.group_by(["cluster", "client_id"]).aggregate([("started_at", "min")])
    return {
        (row["cluster"], row["client_id"]): row["started_at_min"]
        for row in first.to_pylist()
        if row["client_id"] and row["started_at_min"] is not None
    }


def _is_after(loss: dict[str, Any], printed: Mapping[tuple[str, str], datetime]) -> bool:
    """Whether the loss may be one of a client with the settings *printed*."""
    at, last = printed.get((loss["cluster"], loss["client_id"])), loss["last_at"]
    return at is not None and (last is None or last >= at)


_Minutes = dict[tuple[str, str], list[datetime]]


def _minutes_with_news(facts: pa.Table) -> _Minutes:
    """For every cluster and topic (empty: any), the minutes of facts, in order."""
    minutes = pc.floor_temporal(facts.column("at"), unit="minute")
    distinct = facts.set_column(2, "at", minutes).group_by(["cluster", "topic", "at"])
    found: dict[tuple[str, str], list[datetime]] = {}
    for row in distinct.aggregate([]).to_pylist():
        if row["at"] is not None:
            found.setdefault((row["cluster"], row["topic"] or ""), []).append(row["at"])
    return {place: sorted(listed) for place, listed in found.items()}


def _is_near(loss: dict[str, Any], news: _Minutes, reach: timedelta) -> bool:
    here = [news.get((loss["cluster"], topic), []) for topic in {loss["topic"], ""}]
    if loss["first_at"] is None:
        return any(here)
    spans = [(loss[first], loss[last]) for first, last in _SPANS]
    return any(
        bisect_left(minutes, first - reach) < bisect_right(minutes, last + reach)
        for first, last in spans
        for minutes in here
        if first is not None and last is not None
    )


def facts_near(evidence: Evidence, keys: frozenset[str]) -> dict[str, ds.Expression]:
    """The accounts of the buckets *keys*, and the facts of the time of their losses."""
    ours = ds.field("bucket").isin(sorted(keys))
    needed = {"delivery_ledger": ours, "client_configs": ds.scalar(False)}
    ledger = evidence.inputs["delivery_ledger"]
    accounts = ledger.read("first_at", "last_at", "findings", where=ours)
    lengths: Any = pc.list_value_length(accounts.column("findings"))
    lossy = accounts.filter(pc.greater(lengths, pa.scalar(0)))
    times = [lossy.column(name) for name in _SPANS[0]]
    if any(column.null_count for column in times):
        return needed  # without a time, any fact may be near
    if not lossy.num_rows:
        none = (*_EVENTS, "cluster_states", "cluster_configs")
        return {**needed, **dict.fromkeys(none, ds.scalar(False))}
    findings: Any = pc.list_flatten(lossy.column("findings"))
    firsts, lasts = [pc.min(times[0]).as_py()], [pc.max(times[1]).as_py()]
    known = {field.name for field in findings.type}
    for found, name, of in zip((firsts, lasts), _SPANS[1], (pc.min, pc.max), strict=True):
        if name in known and (at := of(pc.struct_field(findings, name)).as_py()) is not None:
            found.append(at)
    near = _between(min(firsts), max(lasts), WINDOW_MS)
    far = _between(min(firsts), max(lasts), REACH_MS)
    at = ds.field("at")
    in_time = (at >= pa.scalar(near[0], _INSTANT)) & (at <= pa.scalar(near[1], _INSTANT))
    return {
        **needed,
        "producer_events": _in_hours(*near),
        **dict.fromkeys(("broker_events", "consumer_events"), _in_hours(*far)),
        "cluster_states": in_time,
    }


def settings_of_losers(evidence: Evidence, keys: frozenset[str]) -> dict[str, pa.Table]:
    """What clients with losses in the buckets *keys* had printed of their settings by then."""
    configs = evidence.inputs.get("client_configs")
    if configs is None:
        return {}
    ours = ds.field("bucket").isin(sorted(keys))
    accounts = evidence.inputs["delivery_ledger"].read("client_id", "findings", where=ours)
    lengths: Any = pc.list_value_length(accounts.column("findings"))
    lossy = accounts.filter(pc.greater(lengths, pa.scalar(0)))
    clients: Any = pc.unique(lossy.column("client_id")).drop_null()
    findings: Any = pc.list_flatten(lossy.column("findings"))
    firsts: Any = pc.struct_field(findings, "first_at")
    since = None if firsts.null_count else pc.min(firsts).as_py()
    found = settings_in_force(configs, ("role", *_SETTINGS), since, clients)
    return {SETTINGS_IN_FORCE: found}


def _between(first: datetime, last: datetime, reach_ms: int) -> tuple[datetime, datetime]:
    window = timedelta(milliseconds=reach_ms + 1)
    return first - window, last + window


def _in_hours(first: datetime, last: datetime) -> ds.Expression:
    hour = ds.field("hour")
    return (hour >= hour_of(first)) & (hour <= hour_of(last))


def explain_losses(
    inputs: Mapping[str, DataFrame], keys: frozenset[str] | None, _options: Options
) -> DataFrame:
    """Every loss in the accounts of the buckets *keys*, with its cause."""
    accounts = in_buckets(inputs["delivery_ledger"], keys).where("size(findings) > 0")
    printed = _printed_blocks(inputs.get(SETTINGS_IN_FORCE, inputs["client_configs"]))
    ledger = accounts.join(F.broadcast(printed), ["cluster", "client_id"], "left")
    rows = in_one_shape(_COLUMNS, ledger.withColumn("kind", F.lit("account")))
    return (
        rows.withColumn("rank", F.lit(1))
        .unionByName(_facts(inputs, accounts).withColumn("rank", F.lit(0)))
        .repartition("cluster", "topic")
        .sortWithinPartitions("cluster", "topic", "rank", "session", "group", "bucket", "block")
        .mapInArrow(explain_topics, loose(LOSS_EVENTS))
    )


def _printed_blocks(configs: DataFrame) -> DataFrame:
    """Per client, the delivery settings of every block that it has printed."""
    pairs = [
        F.struct(F.lit(name).alias("key"), F.col(column).cast("string").alias("value"))
        for column, name in _SETTINGS.items()
    ]
    known = F.filter(F.array(*pairs), lambda pair: pair["value"].isNotNull())
    block = F.struct(
        "host",
        F.unix_millis("started_at").alias("started_ms"),
        F.col("record_key").alias("key"),
        F.map_from_entries(known).alias("settings"),
    )
    return (
        configs.where("role = 'producer' AND client_id IS NOT NULL AND started_at IS NOT NULL")
        .groupBy("cluster", "client_id")
        .agg(F.collect_list(block).alias("printed"))
    )


def _facts(inputs: Mapping[str, DataFrame], losses: DataFrame) -> DataFrame:
    """Facts near the *losses* of each topic."""
    first = "min(least(first_at, array_min(findings.first_received_at)))"
    last = "max(greatest(last_at, array_max(findings.last_received_at)))"
    places = losses.groupBy("cluster", "topic").agg(
        F.expr(f"unix_millis({first}) AS since_ms"), F.expr(f"unix_millis({last}) AS until_ms")
    )
    found = []
    for name in _EVENTS:
        events = inputs[name].where(F.col("kind").isin(_FACTS) & F.col("at").isNotNull())
        brokers = "leader_epoch" in events.columns
        epoch = "leader_epoch AS epoch" if brokers else "NULL AS epoch"
        isr = "isr_after AS isr" if brokers else "NULL AS isr"
        key = f"concat('{name}:', event_key) AS key"
        found.append(events.selectExpr("*", key, "unix_millis(at) AS at_ms", epoch, isr))
    states = inputs["cluster_states"].selectExpr(
        *("cluster", "topic", "topic_id", "partition", "isr", "'cluster_state' AS kind"),
        "concat_ws('/', 'cluster_states:', topic, partition, unix_millis(at)) AS key",
        *("unix_millis(at) AS at_ms", "unix_millis(after_at) AS after_ms"),
        "CASE WHEN latest_offset >= 0 THEN latest_offset END AS offset",
        *("leader AS broker", "leader_epoch AS epoch"),
    )
    facts = in_one_shape(_COLUMNS, *found, states, _settings_of_topics(inputs["cluster_configs"]))
    far = ", ".join(f"'{kind}'" for kind in _FAR)
    reach = f"CASE WHEN kind IN ({far}) THEN {REACH_MS} ELSE {WINDOW_MS} END"
    near = f"at_ms BETWEEN since_ms - {reach} AND until_ms + {reach} OR since_ms IS NULL"
    joined = (
        facts.withColumnRenamed("topic", "named")
        .join(F.broadcast(places), "cluster")
        .where(_HERE)
        .where(f"{near} OR kind = '{SETTING}'")
    )
    return joined.drop("named", "since_ms", "until_ms")


def _settings_of_topics(configs: DataFrame) -> DataFrame:
    """Whether unclean elections were allowed, as the topic's settings said from a time on."""
    return configs.where("entity_kind = 'topic'").selectExpr(
        *("cluster", "entity AS topic", f"'{SETTING}' AS kind", "unix_millis(at) AS at_ms"),
        "concat_ws('/', 'cluster_configs:', entity, unix_millis(at)) AS key",
        f"settings['{_ALLOWED}'] AS setting",
    )


def explain_topics(batches: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
    """In a task: the losses of every topic with their causes. The facts of a topic come first."""
    facts, place = TopicFacts(), ("", "")
    for (cluster, topic, rank), rows in by_key(rows_of(batches), ("cluster", "topic", "rank")):
        if place != (cluster, topic):
            facts, place = TopicFacts(), (cluster, topic)
        if rank == 0:
            facts = TopicFacts(rows)
            continue
        accounts = by_key(rows, ("session", "group", "bucket"))
        made = [event for _, same in accounts for event in _loss_events(same, facts)]
        if made:
            yield pa.RecordBatch.from_pylist(made, schema=_SCHEMA)


def _loss_events(accounts: list[Row], facts: TopicFacts) -> Iterator[dict[str, Any]]:
    """The loss events of one session, topic, group and bucket.

    What the log lost is reported once, for the log; what a group missed, for the group.
    """
    one = accounts[0]
    reported_settings = dict(one["settings"] or {})
    reported = LOSSES if one["group"] == LOG else _OF_GROUPS
    for finding in merge_ranges(finding_of(f) for account in accounts for f in account["findings"]):
        if finding.state not in reported:
            continue
        printed = printed_settings(one["printed"] or (), one["host"], finding.first_ms)
        # What the session reported of itself outranks what a log of its client printed.
        found = cause_of(
            Loss(
                finding,
                one["group"],
                one["client_id"],
                {**printed, **reported_settings},
                facts.near(finding),
                one["host"],
                f"delivery_ledger:{one['session']}/{one['topic']}/{one['group']}/{one['block']}",
                one["topic"],
            )
        )
        yield {
            **{n: one[n] for n in ("cluster", "session", "topic", "group", "client_id", "host")},
            "first_seq": finding.first_seq,
            "last_seq": finding.last_seq,
            "count": finding.count,
            "partition": finding.partition,
            "first_offset": finding.first_offset,
            "last_offset": finding.last_offset,
            **{name: _micros(getattr(finding, ms)) for name, ms in INSTANTS.items()},
            "state": finding.state,
            "told": finding.told,
            "cause": found.cause.value,
            "confidence": found.confidence.value,
            "because": found.because,
            "evidence": list(found.evidence),
            "reason": finding.reason,
            "error": finding.error or None,
            "bucket": one["bucket"],
        }


def _micros(ms: int | None) -> int | None:
    return None if ms is None else ms * 1000
