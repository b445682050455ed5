"""The rows that a ledger is made of: blocks, and everything known of their topics, in one frame.

A block needs the evidence of its whole topic. Each topic is dealt with in slices of sessions, and
every slice is given the topic's evidence, so that no join copies it to every block.
"""

from __future__ import annotations

from collections.abc import Mapping
from functools import reduce

from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as F

from acktrail.audit.block_account import HOUR_MS
from acktrail.contracts.silver import AUDIT_BLOCKS
from acktrail.contracts.vocabulary import PRODUCER_TIERS, Tier
from pipelines.silver.audit_parts import OFFSETS
from pipelines.spark_schema import spark_type

SLICES = 8

_COLUMNS = {
    # All kinds of rows; session, bucket and block are empty (-1) for what is known of a topic.
    "cluster": "string",
    "topic": "string",
    "session": "string",
    "bucket": "string",
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
    # heartbeat
    "settings": "map<string,string>",
    "minutes": "array<long>",
    # scanned, consumed
    "part": "long",
    "assignment": "long",
    "first_offset": "long",
    "last_offset": "long",
    # state, commit: answers of the cluster
    "at_ms": "long",
    # state
    "earliest_offset": "long",
    "latest_offset": "long",
    "leader_epoch": "long",
    "topic_id": "string",
    # commit
    "committed_offset": "long",
    "metadata": "string",
    # policy, replica_lag: settings of the topic and of its cluster
    "compacted": "boolean",
    "replica_lag_ms": "long",
}
"""Each column has one meaning, and is null in rows of other kinds."""
_PRODUCER = [tier.value for tier in PRODUCER_TIERS]


def in_buckets(frame: DataFrame, keys: frozenset[str] | None) -> DataFrame:
    """The rows of the buckets *keys*; all for None."""
    return frame if keys is None else frame.where(F.col("bucket").isin(sorted(keys)))


def evidence_rows(
    inputs: Mapping[str, DataFrame], blocks: DataFrame, keys: frozenset[str] | None
) -> DataFrame:
    """Blocks, sessions and topics' evidence, as rows of one shape."""
    topics = blocks.groupBy("cluster", "topic").agg(_ms(F.min("first_at")).alias("since_ms"))
    own = _together(
        [
            _block_rows(blocks),
            _beats(inputs, keys),
            _later_rows(inputs["audit_blocks"], keys),
            _written_elsewhere(blocks),
        ]
    ).withColumn("slice", F.pmod(F.hash("session"), F.lit(SLICES)))
    known = _together(
        [_offsets(inputs), _states(inputs), _commits(inputs), *_configs(inputs, topics)]
    )
    # The cluster's answers matter from an hour before the first event of the topic's blocks.
    recent = (F.col("kind") != "state") | (F.col("at_ms") >= F.col("since_ms") - HOUR_MS)
    shared = (
        known.join(F.broadcast(topics), ["cluster", "topic"])
        .where(recent | F.col("since_ms").isNull())
        .drop("since_ms")
        .withColumn("slice", F.explode(F.sequence(F.lit(0), F.lit(SLICES - 1))))
    )
    return own.unionByName(shared)


def _together(frames: list[DataFrame]) -> DataFrame:
    return reduce(DataFrame.union, map(_shaped, frames))


def _shaped(frame: DataFrame) -> DataFrame:
    """*frame* with exactly the common columns. As SQL text, which is one call to the planner."""
    own = frozenset(frame.columns)
    default = {"session": "''", "bucket": "''", "block": "-1"}
    return frame.selectExpr(
        *(
            f"CAST({f'`{name}`' if name in own else default.get(name, 'NULL')} AS {kind}) "
            f"AS `{name}`"
            for name, kind in _COLUMNS.items()
        )
    )


def _ms(column: Column) -> Column:
    return (F.unix_micros(column) / 1000).cast("long")


def _block_rows(blocks: DataFrame) -> DataFrame:
    return blocks.select(
        *("cluster", "session", "topic", "bucket", "block", "partition", "group"),
        *("tier", "parts"),
        F.lit("block").alias("kind"),
    )


def _beats(inputs: Mapping[str, DataFrame], keys: frozenset[str] | None) -> DataFrame:
    """Heartbeats of the sessions: they lie in the first bucket of each."""
    beats = inputs["audit_parts"].where(F.col("tier") == Tier.HEARTBEAT.value)
    if keys is not None:
        first = {f"{key.rpartition('.')[0]}.0" for key in keys}
        beats = beats.where(F.col("bucket").isin(sorted(first)))
    return beats.where(F.col("session") != "").select(
        *("cluster", "session", "topic", "reporter", "number", "settings", "minutes", "closed"),
        F.lit("heartbeat").alias("kind"),
        F.coalesce("ended_ms", "reported_ms").alias("ended_ms"),
    )


def _later_rows(blocks: DataFrame, keys: frozenset[str] | None) -> DataFrame:
    """In which later buckets a session goes on: then every id of the earlier ones exists."""
    after = blocks if keys is None else blocks.where(F.col("bucket").isin(sorted(map(_next, keys))))
    rows = after.where(~F.col("bucket").endswith(".0"))
    later = F.col("bucket").alias("later_bucket")
    return rows.select(
        "cluster", "session", "topic", later, F.lit("later").alias("kind")
    ).distinct()


def _written_elsewhere(blocks: DataFrame) -> DataFrame:
    """Sessions that wrote to another topic or cluster than the one they are seen in."""
    place = "struct(cluster, topic)"
    wrote = f"CASE WHEN tier IN ({', '.join(map(repr, _PRODUCER))}) THEN {place} END"
    return (
        blocks.groupBy("session")
        .agg(F.expr(f"collect_set({place}) AS seen"), F.expr(f"collect_set({wrote}) AS wrote"))
        .selectExpr("session", "explode(seen) AS here", "wrote")
        .where("exists(wrote, place -> place <> here)")
        .selectExpr("here.cluster", "session", "here.topic", "'elsewhere' AS kind")
    )


def _next(bucket: str) -> str:
    place, _, number = bucket.rpartition(".")
    return f"{place}.{int(number) + 1}"


def _offsets(inputs: Mapping[str, DataFrame]) -> DataFrame:
    """Ranges of offsets that scans and members of groups have read."""
    rows = inputs["audit_parts"].where(F.col("bucket") == OFFSETS)
    rows = rows.where(F.col("tier").isin(Tier.SCANNED.value, Tier.CONSUMED.value))
    return rows.where("first_offset IS NOT NULL AND last_offset IS NOT NULL").select(
        *("cluster", "topic", "partition", "group", "reporter", "part", "number"),
        *("first_offset", "last_offset", "assignment", "closed"),
        F.col("tier").alias("kind"),
        F.coalesce("began_ms", "reported_ms").alias("began_ms"),
        F.coalesce("ended_ms", "reported_ms").alias("ended_ms"),
    )


def _states(inputs: Mapping[str, DataFrame]) -> DataFrame:
    """What the cluster answered; librdkafka says -1001 for an offset it could not get."""
    known = [
        F.when(F.col(name) >= 0, F.col(name)).alias(name)
        for name in ("earliest_offset", "latest_offset")
    ]
    return inputs["cluster_states"].select(
        *("cluster", "topic", "partition", "leader_epoch", "topic_id"),
        *known,
        F.lit("state").alias("kind"),
        _ms(F.col("at")).alias("at_ms"),
    )


def _commits(inputs: Mapping[str, DataFrame]) -> DataFrame:
    return (
        inputs["group_offsets"]
        .where("committed_offset IS NOT NULL")
        .select(
            *("cluster", "topic", "partition", "group", "committed_offset", "metadata"),
            F.lit("commit").alias("kind"),
            _ms(F.col("at")).alias("at_ms"),
        )
    )


def _longest_lag() -> Column:
    return F.max(F.col("settings")["replica.lag.time.max.ms"].cast("long"))


def _configs(inputs: Mapping[str, DataFrame], topics: DataFrame) -> list[DataFrame]:
    """Whether a topic is or was compacted; the longest time its cluster's replicas may lag."""
    configs = inputs["cluster_configs"]
    policy = (
        configs.where("entity_kind = 'topic'")
        .groupBy("cluster", F.col("entity").alias("topic"))
        .agg(F.max(F.col("settings")["cleanup.policy"].contains("compact")).alias("compacted"))
        .withColumn("kind", F.lit("policy"))
    )
    lag = (
        configs.where("entity_kind = 'broker'")
        .groupBy("cluster")
        .agg(_longest_lag().alias("replica_lag_ms"))
        .join(F.broadcast(topics.select("cluster", "topic")), "cluster")
        .withColumn("kind", F.lit("replica_lag"))
    )
    return [policy, lag]
