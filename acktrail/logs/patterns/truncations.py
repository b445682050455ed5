"""What brokers print where a replica cuts its log. Sources: Apache Kafka, core and storage."""

from __future__ import annotations

import re

from acktrail.logs.layout import without_logger
from acktrail.logs.partitions import split_partition, topic_name
from acktrail.logs.pattern import Fields, Pattern, pattern

_LOG = re.compile(
    r"\[(?:Log|UnifiedLog|MergedLog|LocalLog) partition=(\S{1,320}?)(?:, dir=[^\]]{0,400})?\] ?\Z"
)


def _of_log(fields: Fields, found: re.Match[str], text: str) -> bool:
    """Topic and partition stand before: [UnifiedLog partition=orders-3, dir=/var/lib/kafka]"""
    named = _LOG.search(text[max(0, found.start() - 800) : found.start()])
    if named is not None:
        fields["topic"], fields["partition"], _ = split_partition(named.group(1))
    return named is not None or text[: found.start()].strip(" `'\"-*>") == ""


def _reset(fields: Fields, found: re.Match[str], _: str) -> bool:
    fields["message"] = without_logger(found.group(0)).strip()
    return True


_OF_REPLICA = re.compile(r"Replica (\d{1,9}) for partition (\[[^\]]{1,260}\]|\S{1,320}) \Z")


def _replica_reset(fields: Fields, found: re.Match[str], text: str) -> bool:
    named = _OF_REPLICA.search(text[max(0, found.start() - 400) : found.start()])
    if named is not None:
        fields["broker"] = int(named.group(1))
        fields["topic"], fields["partition"], _ = split_partition(named.group(2))
    return _reset(fields, found, text) and named is not None


def _refused(fields: Fields, found: re.Match[str], _: str) -> bool:
    topic, partition, _id = split_partition(found["place"])
    named = topic if partition is not None and "partition " in found.group(0) else found["place"]
    fields["topic"] = topic_name(named)
    fields["partition"] = partition if "for partition " in found.group(0) else None
    fields["message"] = found.group(0).strip()
    return True


def _local(fields: Fields, found: re.Match[str], _: str) -> bool:
    if found["local"] is not None:
        fields["high_watermark"] = int(found["local"])
    if found["end"] is not None:
        fields["offset"] = int(found["end"])
    return True


PATTERNS: tuple[Pattern, ...] = (
    # kafka/server/ReplicaFetcherThread.scala (2.0 to 4.1), UnifiedLog.java (4.2+), WARN:
    #   [ReplicaFetcher replicaId=2, leaderId=1, fetcherId=0] Truncating orders-3 to offset 88210
    #   below high watermark 88231
    pattern(
        "Truncating ",
        r"Truncating (?:future )?(?P<tp>\S{1,340}) to offset (?P<offset>\d{1,18}) below high "
        r"watermark (?P<high_watermark>\d{1,18})",
        "truncation",
        "below_high_watermark",
        words=("Truncating ", "high watermark"),
        sure=(" below high watermark ",),
        example="Truncating orders-3 to offset 88210 below high watermark 88231",
    ),
    # ReplicaFetcherThread.scala, AbstractFetcherThread.scala, INFO: the usual cut after a leader
    # change, down to what the leader has.
    #   Truncating partition orders-3 with TruncationState(offset=88210, completed=true) due to
    #   local high watermark 88231
    #   ... due to leader epoch and offset EpochEndOffset(errorCode=0, partition=3, leaderEpoch=7,
    #   endOffset=88210)
    pattern(
        "Truncating partition ",
        r"Truncating partition (?P<tp>\S{1,340}) (?:to local high watermark (?P<high_watermark>"
        r"\d{1,18})|with TruncationState\(offset=(?P<offset>-?\d{1,18})[^)]{0,60}\)"
        r"(?: due to (?:local high watermark (?P<local>\d{1,18})|leader epoch and offset "
        r"EpochEndOffset\([^()]{0,80}leaderEpoch=(?P<leader_epoch>-?\d{1,9}),))?"
        r"|to leader epoch and offset EpochEndOffset\([^()]{0,120}endOffset=(?P<end>-?\d{1,18}))",
        "truncation",
        "to_leader",
        _local,
        sure=True,
        example="Truncating partition orders-3 with TruncationState(offset=88210, "
        "completed=true) due to local high watermark 88231",
    ),
    # kafka/log/Log.scala, 0.8 to 0.11, INFO: Truncating log orders-3 to offset 88210.
    pattern(
        "Truncating log ",
        r"Truncating log (?P<tp>\S{1,320}) to offset (?P<offset>\d{1,18})",
        "truncation",
        "to_offset",
        sure=True,
        example="Truncating log orders-3 to offset 88210.",
    ),
    # kafka/log/Log.scala, UnifiedLog.scala, UnifiedLog.java, INFO:
    #   [UnifiedLog partition=orders-3, dir=/var/lib/kafka] Truncating to offset 88210
    pattern(
        "Truncating to offset ",
        r"Truncating to offset (?P<offset>\d{1,18})",
        "truncation",
        "to_offset",
        _of_log,
        shared=True,
        example="[UnifiedLog partition=orders-3, dir=/k] Truncating to offset 88210",
    ),
    # UnifiedLog.scala, UnifiedLog.java, WARN; a follower prints it whenever it starts from a high
    # watermark above its leader's, and no record need be cut:
    #   [UnifiedLog partition=orders-3, dir=/k] Non-monotonic update of high watermark from
    #   (offset=335, segment=[-1:-1]) to (offset=327, segment=[0:9668])
    pattern(
        "Non-monotonic update of high watermark",
        r"Non-monotonic update of high watermark from \(offset=(?P<high_watermark>\d{1,18})"
        r"[^()]{0,80}\) to \(offset=(?P<offset>\d{1,18})",
        "high_watermark_back",
        "high_watermark_back",
        _of_log,
        words=("high watermark",),
        sure=True,
        example="[UnifiedLog partition=orders-3, dir=/k] Non-monotonic update of high watermark "
        "from (offset=335, segment=[-1:-1]) to (offset=327, segment=[0:9668])",
    ),
    # kafka/server/AbstractFetcherThread.scala, WARN:
    #   Reset fetch offset for partition orders-3 from 88231 to current leader's latest offset 88210
    pattern(
        "Reset fetch offset for partition ",
        r"Reset fetch offset for partition (?P<tp>\S{1,340}) from -?\d{1,18} to current leader's "
        r"latest offset (?P<offset>-?\d{1,18})",
        "truncation",
        "reset_to_leader_end",
        _reset,
        words=("etch offset",),
        sure=True,
        example="Reset fetch offset for partition orders-3 from 88231 to current leader's "
        "latest offset 88210",
    ),
    #   0.8 to 0.10: Replica 1 for partition [orders,3] reset its fetch offset from 88231 to current
    #   leader 2's latest offset 88210
    pattern(
        "reset its fetch offset ",
        r"reset its fetch offset (?:from -?\d{1,18} )?to current leader (?P<leader>\d{1,9})'s "
        r"latest offset (?P<offset>-?\d{1,18})",
        "truncation",
        "reset_to_leader_end",
        _replica_reset,
        words=("etch offset",),
        sure=True,
        example="Replica 1 for partition [orders,3] reset its fetch offset from 88231 to "
        "current leader 2's latest offset 88210",
    ),
    # kafka/server/ReplicaFetcherThread.scala, 0.8.2 to 1.1, FATAL; the broker stops instead:
    #   Halting because log truncation is not allowed for topic orders, Current leader 1's latest
    #   offset 0 is less than replica 2's latest offset 151
    pattern(
        "because log truncation is not allowed for ",
        r"because log truncation is not allowed for (?:topic|partition) (?P<place>\S{1,320}?),? "
        r"[Cc]urrent leader(?: (?P<leader>\d{1,9}))?'s latest offset (?P<offset>\d{1,18}) is less "
        r"than replica(?: (?P<broker>\d{1,9}))?'s latest offset",
        "truncation",
        "refused",
        _refused,
        words=("log truncation",),
        sure=True,
        example="Halting because log truncation is not allowed for topic orders, Current leader "
        "1's latest offset 0 is less than replica 2's latest offset 151",
        continues=(r"[Cc]urrent leader\b",),
    ),
)
