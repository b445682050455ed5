"""What brokers and controllers print. Sources: Apache Kafka, core, storage and metadata."""

from __future__ import annotations

import re

from pipelines.reading.layout import without_logger
from pipelines.reading.partitions import split_partition, topic_name
from pipelines.reading.pattern import Fields, Pattern, pattern
from pipelines.reading.producer import simple_name

_BROKER = re.compile(
    r"(?:\[ReplicaManager broker=|\[Replica Manager on Broker |\[KafkaApi-|broker=|\[Broker id=|"
    r"on broker |\[ReplicaFetcher replicaId=|\[Controller |\[QuorumController id=|\[Controller id=)"
    r"(\d{1,9})"
)
_PARTITION = re.compile(r"\[Partition (\S{1,320}) broker=(\d{1,9})\] ?\Z")
_PARTITION_OLD = re.compile(r"Partition (\[[^\]]{1,260}\]) on broker (\d{1,9}): ?\Z")
_LOG = re.compile(
    r"\[(?:Log|UnifiedLog|MergedLog|LocalLog) partition=(\S{1,320}?)(?:, dir=[^\]]{0,400})?\] ?\Z"
)
_EXCEPTION = re.compile(
    r"(?:^|\s|\()((?:[a-z_]\w{0,40}\.){1,8}[A-Z]\w{0,80}(?:Exception|Error))(?:: (.{0,1000}))?"
)
_ISR = r"(?:Set\(|\[)?[\d, ]{0,400}(?:\)|\])?|`[^`\n]{1,80}`"


def broker_of(head: str) -> int | None:
    """The broker that speaks, where the prefix of its message says so."""
    found = _BROKER.findall(head[-400:])
    return int(found[-1]) if found else None


def _of_partition(fields: Fields, found: re.Match[str], text: str) -> bool:
    """Topic and partition stand before the message: [Partition orders-3 broker=1]"""
    head = text[max(0, found.start() - 800) : found.start()]
    named = _PARTITION.search(head) or _PARTITION_OLD.search(head)
    if named is not None:
        fields["topic"], fields["partition"], _ = split_partition(named.group(1))
        fields["broker"] = int(named.group(2))
    return named is not None or "[Partition " in head or "artition" in text


def _changed(fields: Fields) -> bool:
    return bool(fields.get("isr_before"))


def _shrunk(fields: Fields, found: re.Match[str], text: str) -> bool:
    """Up to 0.10 the partition stands behind: Shrinking ISR for partition [orders,3] from ..."""
    if found["old"] is not None:
        fields["topic"], fields["partition"], _ = split_partition(found["old"])
        return True
    if found.groupdict().get("tp") is not None:
        return True
    return _of_partition(fields, found, text) or _changed(fields)


def _appended(fields: Fields, found: re.Match[str], text: str) -> bool:
    thrown = _EXCEPTION.search(text, found.end())
    if thrown is not None:
        fields["error"] = simple_name(thrown.group(1))
        fields["message"] = (thrown.group(2) or "").strip() or None
    return True


def _acks0(fields: Fields, found: re.Match[str], text: str) -> bool:
    named = re.search(r"exceptions: ?(\S{1,340}) -> ([\w.$]{1,200})", text[found.end() :][:1200])
    if named is not None:
        fields["topic"], fields["partition"], topic_id = split_partition(named.group(1))
        fields["error"] = simple_name(named.group(2))
        if topic_id is not None:
            fields["topic_id"] = topic_id
    return True


def _of_log(fields: Fields, found: re.Match[str], text: str) -> bool:
    """Topic and partition stand before: [UnifiedLog partition=orders-3, dir=/var/lib/kafka]"""
    named = _LOG.search(text[max(0, found.start() - 800) : found.start()])
    if named is not None:
        fields["topic"], fields["partition"], _ = split_partition(named.group(1))
    return named is not None or text[: found.start()].strip(" `'\"-*>") == ""


def _unclean(fields: Fields, found: re.Match[str], _: str) -> bool:
    diff = found["diff"] or ""
    for name, regex in (
        ("leader", r"leader: (?:-?\d{1,9} -> )?(-?\d{1,9})"),
        ("leader_epoch", r"leaderEpoch: (?:-?\d{1,9} -> )?(-?\d{1,9})"),
    ):
        value = re.search(regex, diff)
        if value is not None:
            fields[name] = int(value.group(1))
    isr = re.search(r"isr: (\[[\d, ]{0,200}\])(?: -> (\[[\d, ]{0,200}\]))?", diff)
    if isr is not None:
        before, after = isr.group(1), isr.group(2)
        fields["isr_before"] = tuple(int(n) for n in re.findall(r"\d+", before))
        if after is not None:
            fields["isr_after"] = tuple(int(n) for n in re.findall(r"\d+", after))
    return True


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
    # kafka/server/ReplicaManager.scala, appendRecordsToLocalLog; the exception is on the next line,
    # without frames. 4.1+ puts the topic id before; up to 0.10.0 [orders,3].
    #   [ReplicaManager broker=1] Error processing append operation on partition orders-3
    #   org.apache.kafka.common.errors.NotEnoughReplicasException: The size of the current ISR ...
    pattern(
        "Error processing append operation on partition ",
        r"Error processing append operation on partition "
        r"(?P<tp>\[[^\]]{1,260}\]|\S{1,340})",
        "broker_append_error",
        "append_error",
        _appended,
        sure=True,
    ),
    # kafka/server/KafkaApis.scala, 0.8.2 to 4.4: one event on two lines.
    #   [KafkaApi-1] Closing connection due to error during produce request with correlation id 77
    #   from client id fire-and-forget with ack=0
    #   Topic and partition to exceptions: orders-1 -> org.apache.kafka.common.errors.NotLeader...
    pattern(
        "Closing connection due to error during produce request",
        r"Closing connection due to error during produce request with correlation id "
        r"(?P<correlation_id>\d{1,18}|\S{1,20}) from client id (?P<client_id>.{0,400}?) with ack=0",
        "acks0_close",
        "acks0_close",
        _acks0,
        sure=True,
    ),
    # kafka/server/KafkaApis.scala, 0.8:
    #   [KafkaApi-1] Produce request with correlation id 77 from client pay on partition [orders,3]
    #   failed due to Leader not local for partition [orders,3] on broker 1
    pattern(
        "Produce request with correlation id ",
        r"Produce request with correlation id (?P<correlation_id>\d{1,18}|\S{1,20}) from client "
        r"(?P<client_id>.{0,400}?) on partition (?P<tp>\[[^\]]{1,260}\]|\S{1,320}?) ?failed due to "
        r"(?P<message>.{1,600})",
        "broker_append_error",
        "produce_request_failed",
    ),
    # kafka/server/KafkaApis.scala, 0.8.2, the exception behind it:
    #   [KafkaApi-0] Error processing ProducerRequest with correlation id 616 from client pay on
    #   partition [orders,0]
    pattern(
        "Error processing ProducerRequest with correlation id ",
        r"Error processing ProducerRequest with correlation id "
        r"(?P<correlation_id>\d{1,18}|\S{1,20}) from client (?P<client_id>.{0,400}?) on partition "
        r"(?P<tp>\[[^\]]{1,260}\]|\S{1,320})",
        "broker_append_error",
        "append_error",
        _appended,
        sure=True,
    ),
    # kafka/server/ReplicaManager.scala, 0.8 to 0.11, FATAL; the broker stops:
    #   Halting due to unrecoverable I/O error while handling produce request:
    pattern(
        "error while handling produce request",
        r"error while handling produce request(?!:? ?[\"'])",
        "broker_append_error",
        "append_halted",
        _appended,
    ),
    # kafka/cluster/Partition.scala: 0.11 to 2.1 the short text, 2.2+ the long one.
    #   [Partition orders-3 broker=1] Shrinking ISR from 1,2,3 to 1. Leader: (highWatermark: 88210,
    #   endOffset: 88231). Out of sync replicas: (brokerId: 2, endOffset: 88210, ...
    #   <= 0.10: Partition [orders,3] on broker 1: Shrinking ISR for partition [orders,3] from
    #   1,2 to 1
    pattern(
        "Shrinking ISR ",
        r"Shrinking ISR (?:for partition (?P<old>\[[^\]]{1,260}\]|\S{1,320}) )?from "
        r"(?P<isr_before>" + _ISR + r") to (?P<isr_after>" + _ISR + r")"
        r"(?: ?for partition (?P<tp>\S{1,320}))?"
        r"(?:\.?\s{0,4}Leader: \(highWatermark: (?P<high_watermark>-?\d{1,18}), endOffset: "
        r"(?P<offset>-?\d{1,18}))?",
        "isr_shrink",
        "isr_shrink",
        _shrunk,
    ),
    #   [Partition orders-3 broker=1] Expanding ISR from 1 to 1,2      (until 2.7)
    pattern(
        "Expanding ISR ",
        r"Expanding ISR (?:for partition (?P<old>\[[^\]]{1,260}\]|\S{1,320}) )?from "
        r"(?P<isr_before>" + _ISR + r") to (?P<isr_after>" + _ISR + r")",
        "isr_expand",
        "isr_expand",
        _shrunk,
    ),
    #   [Partition orders-3 broker=1] ISR updated to 1 (under-min-isr) and version updated to 12
    pattern(
        "ISR updated ",
        r"ISR updated (?:from AlterIsr )?to (?P<isr_after>\[?[\d,]{0,400}\]?)"
        r"(?: \(under-min-isr\))? {0,2}and (?:zkVersion|version) updated to",
        "isr_updated",
        "isr_updated",
        _of_partition,
    ),
    # kafka/server/ReplicaFetcherThread.scala (2.0 to 4.1), UnifiedLog.java (4.2+), WARN:
    #   [ReplicaFetcher replicaId=2, leaderId=1, fetcherId=0] Truncating orders-3 to offset 88210
    #   below high watermark 88231
    pattern(
        "Truncating ",
        r"Truncating (?:future )?(?P<tp>\S{1,340}) to offset (?P<offset>\d{1,18}) below high "
        r"watermark (?P<high_watermark>\d{1,18})",
        "truncation",
        "below_high_watermark",
    ),
    # ReplicaFetcherThread.scala, AbstractFetcherThread.scala, INFO: the usual cut after a leader
    # change, down to what the leader has.
    #   Truncating partition orders-3 with TruncationState(offset=88210, completed=true) due to
    #   local high watermark 88231
    pattern(
        "Truncating partition ",
        r"Truncating partition (?P<tp>\S{1,340}) (?:to local high watermark (?P<high_watermark>"
        r"\d{1,18})|with TruncationState\(offset=(?P<offset>-?\d{1,18})[^)]{0,60}\)"
        r"(?: due to local high watermark (?P<local>\d{1,18}))?|to leader epoch and offset "
        r"EpochEndOffset\([^()]{0,120}endOffset=(?P<end>-?\d{1,18}))",
        "truncation",
        "to_leader",
        _local,
    ),
    # kafka/log/Log.scala, 0.8 to 0.11, INFO: Truncating log orders-3 to offset 88210.
    pattern(
        "Truncating log ",
        r"Truncating log (?P<tp>\S{1,320}) to offset (?P<offset>\d{1,18})",
        "truncation",
        "to_offset",
    ),
    # kafka/log/Log.scala, UnifiedLog.scala, UnifiedLog.java, INFO:
    #   [UnifiedLog partition=orders-3, dir=/var/lib/kafka] Truncating to offset 88210
    pattern(
        "Truncating to offset ",
        r"Truncating to offset (?P<offset>\d{1,18})",
        "truncation",
        "to_offset",
        _of_log,
    ),
    # UnifiedLog.scala, UnifiedLog.java, WARN:
    #   [UnifiedLog partition=orders-3, dir=/k] Non-monotonic update of high watermark from
    #   (offset=335, segment=[-1:-1]) to (offset=327, segment=[0:9668])
    pattern(
        "Non-monotonic update of high watermark",
        r"Non-monotonic update of high watermark from \(offset=(?P<high_watermark>\d{1,18})"
        r"[^()]{0,80}\) to \(offset=(?P<offset>\d{1,18})",
        "truncation",
        "high_watermark_back",
        _of_log,
        sure=True,
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
        sure=True,
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
        sure=True,
    ),
    # metadata/PartitionRegistration.java, 3.0+, by every controller that replays the record:
    #   [QuorumController id=1] UNCLEAN partition change for orders-3 with topic ID 3DxQ8q2dTvC:
    #   isr: [1] -> [2], leader: -1 -> 2, leaderRecoveryState: RECOVERED -> RECOVERING,
    #   leaderEpoch: 7 -> 8, partitionEpoch: 12 -> 13
    pattern(
        "UNCLEAN partition change for ",
        r"UNCLEAN partition change for (?P<tp>\S{1,320}?)"
        r"(?: with topic ID (?P<topic_id>[\w-]{1,40}))?:(?P<diff>.{0,600})",
        "unclean_election",
        "unclean_kraft",
        _unclean,
        sure=True,
    ),
    # controller/ReplicationControlManager.java; ERROR in 3.9, INFO in 4.0+, details since 4.3.
    #   Triggering unclean leader election for offline partition orders-3. (isr: [1], ...
    pattern(
        "Triggering unclean leader election for offline partition ",
        r"Triggering unclean leader election for offline partition (?P<tp>\S{1,320}?)\.?(?:\s|\Z)"
        r"(?P<diff>\(.{0,400})?",
        "unclean_election",
        "unclean_triggered",
        _unclean,
        sure=True,
    ),
    # kafka/controller/PartitionLeaderSelector.scala, 0.8.2 to 1.0, WARN:
    #   No broker in ISR is alive for [orders,3]. Elect leader 2 from live brokers 2. There's
    #   potential data loss.
    pattern(
        "No broker in ISR is alive for ",
        r"No broker in ISR is alive for (?P<tp>\[[^\]]{1,260}\]|\S{1,320}?)\. Elect leader "
        r"(?P<leader>\d{1,9}) from live brokers",
        "unclean_election",
        "unclean_zookeeper",
    ),
    # state.change.logger, 3.2+:
    #   [Broker id=2] The topic partition orders-3 was marked as RECOVERING. Marking the topic ...
    pattern(
        "The topic partition ",
        r"The topic partition (?P<tp>\S{1,320}) was marked as RECOVERING",
        "leader_recovering",
        "leader_recovering",
    ),
)
