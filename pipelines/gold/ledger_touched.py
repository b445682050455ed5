"""Which buckets of the ledger new evidence concerns: its own, what is open, what it may cut."""

from __future__ import annotations

from pyspark.sql import DataFrame
from pyspark.sql import functions as F

from acktrail.contracts.vocabulary import Tier
from pipelines.job import Evidence


def concerned_buckets(evidence: Evidence) -> frozenset[str]:
    """Changed blocks; open accounts of topics and sessions with news; blocks above new offsets.

    An account in which all is delivered changes only when the log is cut below its offsets, when
    a group turns out to owe it, or when a scan reads its offsets anew: all of these speak of an
    offset at or below the block's last one.
    """
    changed = evidence.changed.get("audit_blocks", frozenset())
    found = set(changed) | {before for key in changed if (before := _before(key))}
    places = _places_with_news(evidence)
    if places is not None:
        frames = [_above(evidence, places)]
        if evidence.output is not None:
            frames.append(_open(evidence, places.select("cluster", "topic").distinct()))
            frames.append(_new_readers(evidence, evidence.output))
        found |= _collected(frames)
    if evidence.output is not None:
        found |= _collected(_open_sessions(evidence, evidence.output))
    return frozenset(found)


def _before(bucket: str) -> str | None:
    """The bucket whose last ids are implied by this one's."""
    place, _, number = bucket.rpartition(".")
    return f"{place}.{int(number) - 1}" if number.isdigit() and int(number) > 0 else None


def _collected(frames: list[DataFrame]) -> set[str]:
    if not frames:
        return set()
    result = frames[0]
    for frame in frames[1:]:
        result = result.unionByName(frame)
    return {row.bucket for row in result.distinct().collect()}


def _places_with_news(evidence: Evidence) -> DataFrame | None:
    """cluster, topic, partition and the lowest offset that new evidence speaks of."""
    found = []
    for name, offset in (("audit_parts", "first_offset"), ("group_offsets", "committed_offset")):
        rows = evidence.new.get(name)
        if rows is None:
            continue
        if name == "audit_parts":
            rows = rows.where(F.col("tier").isin(Tier.SCANNED.value, Tier.CONSUMED.value))
        found.append(
            rows.groupBy("cluster", "topic", "partition").agg(F.min(offset).alias("from_offset"))
        )
    states = evidence.new.get("cluster_states")
    if states is not None:
        found.append(_ends_since(states, evidence.inputs["cluster_states"]))
    configs = evidence.new.get("cluster_configs")
    if configs is not None:
        found.append(_configured(evidence, configs))
    if not found:
        return None
    result = found[0]
    for frame in found[1:]:
        result = result.unionByName(frame)
    return result.groupBy("cluster", "topic", "partition").agg(
        F.min("from_offset").alias("from_offset")
    )


def _ends_since(new: DataFrame, states: DataFrame) -> DataFrame:
    """The lowest end answered since the first new answer: a late one may make others a proof."""
    place = ["cluster", "topic", "partition"]
    since = new.groupBy(*place).agg(F.min("at").alias("since"))
    return (
        states.join(F.broadcast(since), place)
        .where(F.col("at") >= F.col("since"))
        .groupBy(*place)
        .agg(F.min("latest_offset").alias("from_offset"))
    )


def _configured(evidence: Evidence, configs: DataFrame) -> DataFrame:
    """A topic's or broker's settings concern all open accounts, so no offset is named."""
    topics = evidence.inputs["audit_blocks"].select("cluster", "topic").distinct()
    changed = configs.select("cluster", "entity_kind", "entity").distinct()
    concerned = (F.col("entity_kind") == "broker") | (F.col("entity") == F.col("topic"))
    return (
        topics.join(changed, "cluster")
        .where(concerned)
        .select(
            "cluster",
            "topic",
            F.lit(-1).cast("long").alias("partition"),
            F.lit(None).cast("long").alias("from_offset"),
        )
    )


def _above(evidence: Evidence, places: DataFrame) -> DataFrame:
    """Buckets of blocks that reach to or above an offset with news."""
    blocks = evidence.inputs["audit_blocks"].select(
        "cluster", "topic", "partition", "last_offset", "bucket"
    )
    return (
        blocks.join(F.broadcast(places), ["cluster", "topic", "partition"])
        .where(F.col("last_offset") >= F.col("from_offset"))
        .select("bucket")
    )


def _open(evidence: Evidence, topics: DataFrame) -> DataFrame:
    assert evidence.output is not None
    accounts = evidence.output.where("open").select("cluster", "topic", "bucket")
    return accounts.join(F.broadcast(topics), ["cluster", "topic"], "left_semi").select("bucket")


def _new_readers(evidence: Evidence, output: DataFrame) -> DataFrame:
    """A group that reports its first read on a topic has an account of every block it owes."""
    rows = evidence.new.get("audit_parts")
    blocks = evidence.inputs["audit_blocks"].select("cluster", "topic", "bucket")
    if rows is None:
        return blocks.where(F.lit(False)).select("bucket")
    readers = rows.where(F.col("tier") == Tier.CONSUMED.value).select("cluster", "topic", "group")
    known = output.select("cluster", "topic", "group").distinct()
    new = readers.distinct().join(known, ["cluster", "topic", "group"], "left_anti")
    return blocks.join(F.broadcast(new), ["cluster", "topic"], "left_semi").select("bucket")


def _open_sessions(evidence: Evidence, output: DataFrame) -> list[DataFrame]:
    """A heartbeat may say that a session ended, or that it lives: its open accounts may change."""
    rows = evidence.new.get("audit_parts")
    if rows is None:
        return []
    beats = rows.where(F.col("tier") == Tier.HEARTBEAT.value).select("cluster", "session")
    accounts = output.where("open").select("cluster", "session", "bucket")
    return [
        accounts.join(F.broadcast(beats.distinct()), ["cluster", "session"], "left_semi").select(
            "bucket"
        )
    ]
