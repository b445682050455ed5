"""Contiguous lost ids of one session with one state and one cause, with the evidence for both."""

from __future__ import annotations

from bisect import bisect_left, bisect_right
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import replace
from typing import Any

import pyarrow as pa
from pyspark.sql import DataFrame
from pyspark.sql import functions as F

from acktrail.audit.block_account import LOG, StateRange, finding_of
from acktrail.audit.causes import LOSSES, WINDOW_MS, Fact, Loss, cause_of
from acktrail.audit.reasons import with_ground
from acktrail.contracts.arrow import schema
from acktrail.contracts.gold import LOSS_EVENTS
from acktrail.contracts.vocabulary import State
from pipelines.arrow_rows import Row, by_key, rows_of
from pipelines.gold.ledger_rows import in_buckets
from pipelines.gold.loss_facts import EVENTS, fact_rows, ms, shaped
from pipelines.job import Evidence, Options
from pipelines.spark_schema import loose

_SCHEMA = pa.schema([f.with_nullable(True) for f in schema(LOSS_EVENTS)])
_OF_GROUPS = (State.SKIPPED_BY_CONSUMER, State.EXPIRED_BEFORE_READ)
_SETTINGS = {"acks": "acks", "retries": "retries", "delivery_timeout_ms": "delivery.timeout.ms"}


def concerned_buckets(evidence: Evidence) -> frozenset[str]:
    """Buckets of changed accounts, and of known losses that new facts are near to."""
    found = set(evidence.changed.get("delivery_ledger", frozenset()))
    if evidence.output is None:
        return frozenset(found)
    near = _near_news(evidence, evidence.output)
    if near is not None:
        found |= {row.bucket for row in near.distinct().collect()}
    return frozenset(found)


def _near_news(evidence: Evidence, output: DataFrame) -> DataFrame | None:
    """Buckets of losses within the window of a new fact of their topic or client."""
    frames = []
    losses = output.select("cluster", "topic", "client_id", "bucket", "first_at", "last_at")
    for name in (*EVENTS, "cluster_states"):
        rows = evidence.new.get(name)
        if rows is None:
            continue
        news = rows.where("at IS NOT NULL").select(
            "cluster",
            F.col("topic").alias("named"),
            F.date_trunc("minute", "at").alias("minute"),
        )
        here = F.col("named").isNull() | (F.col("named") == "") | (F.col("named") == F.col("topic"))
        window = WINDOW_MS + 60_000
        close = (ms(F.col("minute")) >= ms(F.col("first_at")) - window) & (
            ms(F.col("minute")) <= ms(F.col("last_at")) + window
        )
        joined = losses.join(F.broadcast(news.distinct()), "cluster")
        frames.append(joined.where(here & (close | F.col("first_at").isNull())).select("bucket"))
    configs = evidence.new.get("client_configs")
    if configs is not None:
        clients = configs.select("cluster", "client_id").distinct()
        frames.append(
            losses.join(F.broadcast(clients), ["cluster", "client_id"], "left_semi").select(
                "bucket"
            )
        )
    result = None
    for frame in frames:
        result = frame if result is None else result.unionByName(frame)
    return result


def explain_losses(
    inputs: Mapping[str, DataFrame], keys: frozenset[str] | None, _options: Options
) -> DataFrame:
    """Every loss in the accounts of the buckets *keys*, with its cause."""
    accounts = in_buckets(inputs["delivery_ledger"], keys).where("size(findings) > 0")
    printed = _printed_settings(inputs["client_configs"])
    told = F.coalesce("settings", F.create_map().cast("map<string,string>"))
    ledger = accounts.join(F.broadcast(printed), ["cluster", "client_id"], "left").withColumn(
        # What the session reported of itself outranks what a log of its client printed.
        "settings",
        F.coalesce(
            F.map_concat(F.map_filter("printed", lambda k, _: ~F.map_contains_key(told, k)), told),
            told,
        ),
    )
    rows = shaped(ledger.withColumn("kind", F.lit("account")))
    facts = fact_rows(inputs, accounts)
    ordered = F.when(F.col("kind") == "account", F.lit(1)).otherwise(F.lit(0))
    return (
        rows.unionByName(facts)
        .withColumn("rank", ordered)
        .repartition("cluster", "topic")
        .sortWithinPartitions("cluster", "topic", "rank", "session", "group", "bucket", "block")
        .mapInArrow(_explain, loose(LOSS_EVENTS))
    )


def _printed_settings(configs: DataFrame) -> DataFrame:
    """Per client, the delivery settings of its newest printed block."""
    newest = F.max_by(F.struct(*_SETTINGS), F.struct("started_at", "record_key")).alias("s")
    pairs = [
        F.struct(F.lit(name).alias("key"), F.col(f"s.{column}").cast("string").alias("value"))
        for column, name in _SETTINGS.items()
    ]
    known = F.filter(F.array(*pairs), lambda pair: pair["value"].isNotNull())
    return (
        configs.where("role = 'producer' AND client_id IS NOT NULL")
        .groupBy("cluster", "client_id")
        .agg(newest)
        .select("cluster", "client_id", F.map_from_entries(known).alias("printed"))
    )


class Facts:
    """The facts of one topic, in the order of time."""

    def __init__(self, rows: Iterable[Row]) -> None:
        found = {r["key"]: _fact(r) for r in rows}
        self._all = sorted(found.values(), key=lambda f: (f.at_ms or 0, f.key))
        self._times = [f.at_ms or 0 for f in self._all]

    def near(self, finding: StateRange) -> list[Fact]:
        """Facts within the window of *finding*; all where it has no time."""
        if finding.first_ms is None or finding.last_ms is None:
            return self._all
        first = bisect_left(self._times, finding.first_ms - WINDOW_MS)
        last = bisect_right(self._times, finding.last_ms + WINDOW_MS)
        return self._all[first:last]


def _fact(row: Row) -> Fact:
    same = ("kind", "key", "at_ms", "partition", "client_id", "group", "error", "offset")
    more = ("high_watermark", "broker", "epoch", "attempts_left")
    return Fact(**{name: row[name] for name in (*same, *more)}, isr=tuple(row["isr"] or ()))


def _explain(batches: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
    facts, place = Facts(()), ("", "")
    key = ("cluster", "topic", "rank", "session", "group", "bucket")
    for (cluster, topic, rank), rows in _by_topic(batches):
        if place != (cluster, topic):
            facts, place = Facts(()), (cluster, topic)
        if rank == 0:
            facts = Facts(rows)
            continue
        made = [row for _, own in by_key(rows, key) for row in _losses(own, facts)]
        if made:
            yield pa.RecordBatch.from_pylist(made, schema=_SCHEMA)


def _by_topic(batches: Iterable[pa.RecordBatch]) -> Iterator[tuple[tuple[Any, ...], list[Row]]]:
    return by_key(rows_of(batches), ("cluster", "topic", "rank"))


def _losses(accounts: list[Row], facts: Facts) -> Iterator[dict[str, Any]]:
    """The loss events of one session, topic, group and bucket."""
    one = accounts[0]
    settings = dict(one["settings"] or {})
    for finding in merge(finding_of(f) for account in accounts for f in account["findings"]):
        if not _belongs(finding, one["group"]):
            continue
        loss = Loss(finding, one["group"], one["client_id"], settings, facts.near(finding))
        found = cause_of(loss)
        yield {
            **{n: one[n] for n in ("cluster", "session", "topic", "group", "client_id", "host")},
            "first_seq": finding.first_seq,
            "last_seq": finding.last_seq,
            "count": finding.count,
            "partition": finding.partition,
            "first_offset": finding.first_offset,
            "last_offset": finding.last_offset,
            "first_at": _micros(finding.first_ms),
            "last_at": _micros(finding.last_ms),
            "state": finding.state,
            "told": finding.told,
            "cause": found.cause.value,
            "confidence": found.confidence.value,
            "because": with_ground(found.cause, found.because, finding.reason),
            "evidence": list(found.evidence),
            "reason": finding.reason,
            "error": finding.error or None,
            "bucket": one["bucket"],
        }


def _belongs(finding: StateRange, group: str) -> bool:
    """What the log lost is told once, for the log; what a group missed, for the group."""
    return finding.state in (LOSSES if group == LOG else _OF_GROUPS)


def merge(findings: Iterable[StateRange]) -> Iterator[StateRange]:
    """Ranges that follow each other and are alike in all but their ids, as one."""
    kept: StateRange | None = None
    for finding in sorted(findings, key=lambda f: f.first_seq):
        if kept is not None and _follows(kept, finding):
            kept = replace(
                kept,
                last_seq=finding.last_seq,
                first_offset=_least(kept.first_offset, finding.first_offset),
                last_offset=_most(kept.last_offset, finding.last_offset),
                first_ms=_least(kept.first_ms, finding.first_ms),
                last_ms=_most(kept.last_ms, finding.last_ms),
            )
            continue
        if kept is not None:
            yield kept
        kept = finding
    if kept is not None:
        yield kept


def _follows(before: StateRange, after: StateRange) -> bool:
    alike = ("state", "reason", "partition", "told", "acked", "error")
    same = all(getattr(before, n) == getattr(after, n) for n in alike)
    return same and after.first_seq == before.last_seq + 1


def _least(a: int | None, b: int | None) -> int | None:
    return min((v for v in (a, b) if v is not None), default=None)


def _most(a: int | None, b: int | None) -> int | None:
    return max((v for v in (a, b) if v is not None), default=None)


def _micros(value: int | None) -> int | None:
    return None if value is None else value * 1000
