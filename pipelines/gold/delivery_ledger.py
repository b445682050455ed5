"""The job of `delivery_ledger`: blocks beside the evidence of their topic, judged id by id.

A block needs the evidence of its whole topic. Each topic is dealt with in slices of sessions, and
every slice that has blocks is given the topic's evidence, so that no join copies it to every block.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from functools import reduce
from typing import Any

import pyarrow as pa
from pyspark.sql import DataFrame
from pyspark.sql import functions as F

from acktrail.aliases import Aliases, named_session
from acktrail.audit.block_account import fields_of
from acktrail.audit.needed_ranges import GROUP
from acktrail.audit.session_account import NAMES, accounts_of
from acktrail.audit.topic_evidence import BEFORE_MS, TopicEvidence, topic_of
from acktrail.audit.wire import bucket_of
from acktrail.contracts.arrow import schema
from acktrail.contracts.gold import DELIVERY_LEDGER
from acktrail.contracts.silver import AUDIT_BLOCKS
from acktrail.contracts.vocabulary import PRODUCER_TIERS, Tier
from pipelines.arrow_rows import by_key, rows_of
from pipelines.gold.ledger_needed import (
    FIRST_COMMITS,
    RANGES_READ,
    SCANNED_PLACES,
    SESSIONS_BEGUN,
)
from pipelines.job import Options
from pipelines.silver.audit_parts import OFFSETS
from pipelines.spark_schema import loose, spark_type

SLICES = 8

_COLUMNS = {
    # All kinds of rows; session is empty in those about a topic.
    "cluster": "string",
    "topic": "string",
    "session": "string",
    "kind": "string",
    "block": "long",
    "partition": "long",
    "group": "string",
    # block: the parts of one tier
    "tier": "string",
    "parts": spark_type(AUDIT_BLOCKS.column("parts")).simpleString(),
    # later: a later bucket in which the session goes on
    "later_bucket": "string",
    # heartbeat, scanned, consumed: reports
    "reporter": "string",
    "number": "long",
    "began_ms": "long",
    "ended_ms": "long",
    "closed": "boolean",
    "received_ms": "long",
    # heartbeat
    "exited": "boolean",
    "outcomes": "map<string,string>",
    "dropped": "map<string,string>",
    # acked_offsets
    "ids": "binary",
    "settings": "map<string,string>",
    "minutes": "array<long>",
    # scanned, consumed
    "part": "long",
    "assignment": "long",
    "first_offset": "long",
    "last_offset": "long",
    # scanned, consumed, heartbeat, acked_offsets
    "records": "long",
    # scanned, consumed, state, commit
    "topic_id": "string",
    # scanned
    "unnamed": "binary",
    # scanned, state, commit: what was known when it was asked
    "after_ms": "long",
    # state, commit, first_commit: answers of the cluster
    "at_ms": "long",
    # state
    "earliest_offset": "long",
    "latest_offset": "long",
    "leader_epoch": "long",
    # commit, first_commit
    "committed_offset": "long",
    "metadata": "string",
    "members": "long",
    "group_state": "string",
    # policy, replica_lag: settings of the topic and of its cluster
    "compacted": "boolean",
    "replica_lag_ms": "long",
}
"""Each column has one meaning, and is null in rows of other kinds."""
_BLOCK = ("cluster", "topic", "session", "block", "partition", "group", "tier", "parts")
_SCHEMA = pa.schema([f.with_nullable(True) for f in schema(DELIVERY_LEDGER)])
_INSTANTS = {"first_at": "first_ms", "last_at": "last_ms", "settles_at": "settles_ms"}


def balance(
    inputs: Mapping[str, DataFrame], keys: frozenset[str] | None, options: Options
) -> DataFrame:
    """Judge every id of the buckets *keys*, and write the accounts."""
    aliases = Aliases(tuple(options.aliases))
    return (
        _evidence_rows(inputs, keys)
        .repartition("cluster", "topic", "slice")
        .sortWithinPartitions("cluster", "topic", "slice", "session")
        .mapInArrow(lambda batches: account_sessions(batches, aliases), loose(DELIVERY_LEDGER))
    )


def account_sessions(
    batches: Iterable[pa.RecordBatch], aliases: Aliases
) -> Iterator[pa.RecordBatch]:
    """In a task: the accounts of every session. The rows of its topic, without one, come first."""
    topic, place = TopicEvidence(), ("", "", -1)
    made: list[dict[str, Any]] = []
    for key, rows in by_key(rows_of(batches), ("cluster", "topic", "slice", "session")):
        cluster, name, number, session = key
        if place != (cluster, name, number):
            topic, place = TopicEvidence(), (cluster, name, number)
        if not session:
            topic = topic_of(rows)
            continue
        for account in accounts_of(rows, topic):
            named = named_session({n: account[n] for n in NAMES}, session, aliases)
            account |= {"cluster": cluster, "topic": name, "session": session, **named}
            account["bucket"] = bucket_of(session, account["block"])
            made.append(_arrow_row(account))
        if len(made) >= 256:
            yield pa.RecordBatch.from_pylist(made, schema=_SCHEMA)
            made = []
    if made:
        yield pa.RecordBatch.from_pylist(made, schema=_SCHEMA)


def _arrow_row(account: dict[str, Any]) -> dict[str, Any]:
    """The account with instants in microseconds, maps as pairs and findings as structs."""
    for column, name in _INSTANTS.items():
        ms = account.pop(name)
        account[column] = None if ms is None else ms * 1000
    for name in ("reasons", "settings"):
        account[name] = sorted(account[name].items())
    account["findings"] = [fields_of(finding) for finding in account["findings"]]
    return account


def in_buckets(frame: DataFrame, keys: frozenset[str] | None) -> DataFrame:
    """The rows of the buckets *keys*; all for None."""
    return frame if keys is None else frame.where(F.col("bucket").isin(sorted(keys)))


def _evidence_rows(inputs: Mapping[str, DataFrame], keys: frozenset[str] | None) -> DataFrame:
    """Blocks, sessions and the evidence of their topics, as rows of one shape."""
    blocks = in_buckets(inputs["audit_blocks"], keys)
    place = F.pmod(F.hash("session"), F.lit(SLICES)).alias("slice")
    slices = blocks.groupBy("cluster", "topic", place).agg(
        F.unix_millis(F.min(F.least("first_at", "first_received_at"))).alias("since_ms"),
        F.unix_millis(F.min("first_received_at")).alias("heard_ms"),
    )
    own = in_one_shape(
        _COLUMNS,
        blocks.selectExpr(*_BLOCK, "'block' AS kind"),
        _heartbeats(inputs["audit_parts"], keys),
        _acked_offsets(inputs["audit_parts"], keys),
        _later_buckets(inputs["audit_blocks"], keys),
        _written_elsewhere(blocks),
        _successors(inputs.get(SESSIONS_BEGUN, inputs["client_sightings"]), blocks),
    ).withColumn("slice", place)
    known = in_one_shape(
        _COLUMNS,
        *_ranges_read(inputs),
        *_cluster_answers(inputs),
        *_cluster_settings(inputs["cluster_configs"], slices.select("cluster", "topic").distinct()),
    )
    # These matter from some time before the first event or receipt of a slice's blocks.
    kind, after, since = F.col("kind"), F.col("after_ms"), F.col("since_ms") - BEFORE_MS
    recent = (
        F.when(kind.isin("state", "commit"), F.greatest("at_ms", "after_ms") >= since)
        .when(kind == Tier.SCANNED.value, (after == 0) | (after >= F.col("heard_ms") - BEFORE_MS))
        .otherwise(True)
    )
    shared = (
        known.join(F.broadcast(slices), ["cluster", "topic"])
        .where(F.coalesce(recent, F.col("since_ms").isNull()))
        .drop("since_ms", "heard_ms")
        .withColumn("session", F.lit(""))
    )
    return own.unionByName(shared)


def in_one_shape(columns: Mapping[str, str], *frames: DataFrame) -> DataFrame:
    """All rows of *frames*, with exactly these *columns*: name and type; null where one has none.

    As SQL text, which is one call to the planner.
    """
    shaped = []
    for frame in frames:
        own = frozenset(frame.columns)
        wanted = (
            f"CAST({f'`{name}`' if name in own else 'NULL'} AS {kind}) AS `{name}`"
            for name, kind in columns.items()
        )
        shaped.append(frame.selectExpr(*wanted))
    return reduce(DataFrame.union, shaped)


def _heartbeats(parts: DataFrame, keys: frozenset[str] | None) -> DataFrame:
    """Heartbeats of the sessions: they lie in the first bucket of each."""
    beats = _of_first_buckets(parts, Tier.HEARTBEAT, keys)
    return beats.where("session <> ''").selectExpr(
        *("cluster", "session", "topic", "reporter", "number", "settings", "minutes", "closed"),
        *("exited", "outcomes", "dropped", "records", "received_ms", "'heartbeat' AS kind"),
        "coalesce(ended_ms, reported_ms) AS ended_ms",
    )


def _acked_offsets(parts: DataFrame, keys: frozenset[str] | None) -> DataFrame:
    """Acks of which no id is known: they lie in the first bucket of each session."""
    return _of_first_buckets(parts, Tier.ACKED_OFFSETS, keys).selectExpr(
        *("cluster", "session", "topic", "partition", "reporter", "part", "number", "block"),
        *("ids", "records", "received_ms", f"'{Tier.ACKED_OFFSETS.value}' AS kind"),
    )


def _of_first_buckets(parts: DataFrame, tier: Tier, keys: frozenset[str] | None) -> DataFrame:
    """The rows of one tier in the first buckets of the sessions in *keys*."""
    first = None if keys is None else frozenset(f"{key.rpartition('.')[0]}.0" for key in keys)
    return in_buckets(parts.where(F.col("tier") == tier.value), first)


def _later_buckets(blocks: DataFrame, keys: frozenset[str] | None) -> DataFrame:
    """In which later buckets a session goes on: then every id of the earlier ones exists."""
    split = [] if keys is None else [key.rpartition(".") for key in keys]
    after = frozenset(f"{place}.{int(number) + 1}" for place, _, number in split)
    rows = in_buckets(blocks, None if keys is None else after).where("bucket NOT LIKE '%.0'")
    return rows.selectExpr(
        "cluster", "session", "topic", "bucket AS later_bucket", "'later' AS kind"
    ).distinct()


def _written_elsewhere(blocks: DataFrame) -> DataFrame:
    """Sessions that wrote to another topic or cluster than the one they are seen in."""
    place = "struct(cluster, topic)"
    tiers = ", ".join(f"'{tier.value}'" for tier in PRODUCER_TIERS)
    wrote = f"CASE WHEN tier IN ({tiers}) THEN {place} END"
    return (
        blocks.groupBy("session")
        .agg(F.expr(f"collect_set({place}) AS seen"), F.expr(f"collect_set({wrote}) AS wrote"))
        .selectExpr("session", "explode(seen) AS here", "wrote")
        .where("exists(wrote, place -> place <> here)")
        .selectExpr("here.cluster", "session", "here.topic", "'elsewhere' AS kind")
    )


def _successors(sightings: DataFrame, blocks: DataFrame) -> DataFrame:
    """Other sessions of the same client and host: when the first report of each was received."""
    known = (
        sightings.where("session <> '' AND host <> ''")
        .groupBy("cluster", "client_id", "host", "session")
        .agg(F.unix_millis(F.min("first_received_at")).alias("received_ms"))
    )
    own = (
        blocks.select("cluster", "topic", "session")
        .distinct()
        .join(known.drop("received_ms"), ["cluster", "session"])
    )
    others = known.withColumnRenamed("session", "other")
    return (
        own.join(others, ["cluster", "client_id", "host"])
        .where("other <> session")
        .selectExpr("cluster", "topic", "session", "received_ms", "'successor' AS kind")
        .distinct()
    )


def _ranges_read(inputs: Mapping[str, DataFrame]) -> tuple[DataFrame, DataFrame, DataFrame]:
    """What scans and members of groups have read; partitions ever scanned; members that closed.

    Those that are needed, and these partitions, are chosen beforehand where old rows are left out.
    """
    known = inputs.get(RANGES_READ)
    if known is None:
        known = inputs["audit_parts"].where(F.col("bucket") == OFFSETS)
    rows = known.where(F.col("tier").isin(Tier.SCANNED.value, Tier.CONSUMED.value))
    ranges = rows.where("first_offset IS NOT NULL AND last_offset IS NOT NULL").selectExpr(
        *("cluster", "topic", "partition", "group", "reporter", "part", "number"),
        *("first_offset", "last_offset", "assignment", "closed", "tier AS kind"),
        *("records", "leader_epoch", "topic_id", "unnamed", "after_ms", "received_ms"),
        "coalesce(began_ms, reported_ms) AS began_ms",
        "coalesce(ended_ms, reported_ms) AS ended_ms",
    )
    places = inputs.get(SCANNED_PLACES)
    if places is None:
        scanned = ranges.where(F.col("kind") == Tier.SCANNED.value)
        places = scanned.select("cluster", "topic", "partition").distinct()
    beats = known.where(F.col("tier") == Tier.HEARTBEAT.value)
    closed = beats.where("closed AND group <> ''").selectExpr(
        "cluster", "topic", "group", "reporter", "'member_closed' AS kind"
    )
    return ranges, places.withColumn("kind", F.lit("scanned_partition")), closed.distinct()


def _cluster_answers(inputs: Mapping[str, DataFrame]) -> tuple[DataFrame, DataFrame, DataFrame]:
    """States of partitions; commits of groups, and the lowest of all time.

    The lowest is summed up beforehand where old commits are left out (`first_commits`).
    -1001 is librdkafka's "could not get it".
    """
    states = inputs["cluster_states"].selectExpr(
        *("cluster", "topic", "partition", "leader_epoch", "topic_id"),
        "unix_millis(after_at) AS after_ms",
        "CASE WHEN earliest_offset >= 0 THEN earliest_offset END AS earliest_offset",
        "CASE WHEN latest_offset >= 0 THEN latest_offset END AS latest_offset",
        *("'state' AS kind", "unix_millis(at) AS at_ms"),
    )
    commits = (
        inputs["group_offsets"]
        .selectExpr(
            *("cluster", "topic", "topic_id", "partition", "group", "committed_offset"),
            *("metadata", "members", "group_state", "'commit' AS kind"),
            *("unix_millis(at) AS at_ms", "unix_millis(after_at) AS after_ms"),
        )
        .where("committed_offset IS NOT NULL")
    )
    first = inputs.get(FIRST_COMMITS)
    if first is None:
        lowest = F.min("committed_offset").alias("committed_offset")
        first = commits.groupBy(*GROUP).agg(lowest)
    first = first.withColumn("kind", F.lit("first_commit"))
    return states, commits, first


def _cluster_settings(configs: DataFrame, topics: DataFrame) -> tuple[DataFrame, DataFrame]:
    """Whether a topic is or was compacted, and since when that is known; how long replicas may lag.

    Of a cluster's brokers, the longest `replica.lag.time.max.ms`.
    """
    cleanup = F.col("settings")["cleanup.policy"]
    compacted = F.max(cleanup.contains("compact"))
    known_at = F.coalesce("after_at", "at")  # rows of earlier versions have the agent's clock only
    at_ms = F.when(cleanup.isNotNull(), F.unix_millis(known_at))
    policy = (
        configs.where("entity_kind = 'topic'")
        .groupBy("cluster", F.col("entity").alias("topic"))
        .agg(compacted.alias("compacted"), F.min(at_ms).alias("at_ms"))
        .withColumn("kind", F.lit("policy"))
    )
    longest = F.max(F.col("settings")["replica.lag.time.max.ms"].cast("long"))
    lag = (
        configs.where("entity_kind = 'broker'")
        .groupBy("cluster")
        .agg(longest.alias("replica_lag_ms"))
        .join(F.broadcast(topics), "cluster")
        .withColumn("kind", F.lit("replica_lag"))
    )
    return policy, lag
