"""What brokers and controllers print. Sources: Apache Kafka, core, storage and metadata."""

from __future__ import annotations

import re

from acktrail.logs.partitions import split_partition
from acktrail.logs.pattern import Fields, Pattern, pattern
from acktrail.logs.patterns.producer import simple_name

_BROKER = re.compile(
    r"(?:\[ReplicaManager broker=|\[Replica Manager on Broker |\[KafkaApi-|broker=|\[Broker id=|"
    r"on broker |\[ReplicaFetcher replicaId=|\[Controller |\[QuorumController id=|\[Controller id=)"
    r"(\d{1,9})"
)
_PARTITION = re.compile(r"\[Partition (\S{1,320}) broker=(\d{1,9})\] ?\Z")
_PARTITION_OLD = re.compile(r"Partition (\[[^\]]{1,260}\]) on broker (\d{1,9}): ?\Z")
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


_IDS = r"(\[[\d, ]{0,200}\])"
_HANDED_OVER = re.compile(r"\bleader: (?:-?\d{1,9} -> )?(-?\d{1,9})")
_EPOCH = re.compile(r"\bleaderEpoch: (?:-?\d{1,9} -> )?(-?\d{1,9})")
_SETS = {
    name: re.compile(rf"\b{name}: {_IDS}(?: -> {_IDS})?") for name in ("isr", "elr", "lastKnownElr")
}


def _ids(text: str | None) -> tuple[int, ...]:
    return tuple(int(n) for n in re.findall(r"\d+", text or ""))


def _unclean(fields: Fields, found: re.Match[str], _: str) -> bool:
    """Not every change that is printed as unclean is one: Kafka 4 prints the return of the last
    known leader so, and every change of a partition whose leader still recovers."""
    diff = found["diff"] or ""
    for name, regex in (("leader", _HANDED_OVER), ("leader_epoch", _EPOCH)):
        value = regex.search(diff)
        if value is not None:
            fields[name] = int(value.group(1))
    sets = {name: regex.search(diff) for name, regex in _SETS.items()}
    isr = sets["isr"]
    if isr is not None:
        fields["isr_before"] = _ids(isr.group(1))
        if isr.group(2) is not None:
            fields["isr_after"] = _ids(isr.group(2))
    before = {name: _ids(at.group(1)) for name, at in sets.items() if at is not None}
    leader = fields.get("leader")
    if leader is None:
        if before.keys() & {"elr", "lastKnownElr"}:
            fields["kind"] = "leader_change"
    elif leader < 0 or leader in (*before.get("isr", ()), *before.get("elr", ())):
        fields["kind"] = "leader_change"
    elif leader in before.get("lastKnownElr", ()):
        fields["kind"] = "last_known_leader"
    return True


_LEADS = re.compile(
    r"(?:Leader |\[Partition \S{1,320} broker=(?P<broker>\d{1,9})\] )(?P<tp>\S{1,320})"
    r"(?: with topic id Some\((?P<topic_id>[\w-]{1,40})\))? \Z"
)


def _leads(fields: Fields, found: re.Match[str], text: str) -> bool:
    """Who leads stands before: [Broker id=2] Leader orders-3 with topic id Some(3DxQ8q2dTvC)"""
    named = _LEADS.search(text[max(0, found.start() - 800) : found.start()])
    if named is None:
        return False
    fields["topic"], fields["partition"], _ = split_partition(named["tp"])
    if named["topic_id"] is not None:
        fields["topic_id"] = named["topic_id"]
    if named["broker"] is not None:
        fields["broker"] = int(named["broker"])
    return fields["partition"] is not None


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
        words=("append operation",),
        sure=True,
        example="[ReplicaManager broker=1] Error processing append operation on partition orders-3 "
        "(kafka.server.ReplicaManager)",
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
        words=("roduce request",),
        sure=True,
        example="[KafkaApi-1] Closing connection due to error during produce request with "
        "correlation id 77 from client id fire-and-forget with ack=0",
        continues=("Topic and partition to exceptions:",),
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
        words=("roduce request",),
        sure=True,
        example="[KafkaApi-1] Produce request with correlation id 77 from client pay on partition "
        "[orders,3] failed due to Leader not local for partition [orders,3] on broker 1",
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
        example="[KafkaApi-0] Error processing ProducerRequest with correlation id 616 from "
        "client pay on partition [orders,0]",
    ),
    # kafka/server/ReplicaManager.scala, 0.8 to 0.11, FATAL; the broker stops:
    #   Halting due to unrecoverable I/O error while handling produce request:
    pattern(
        "error while handling produce request",
        r"error while handling produce request",
        "broker_append_error",
        "append_halted",
        _appended,
        words=("roduce request",),
        sure=True,
        example="Halting due to unrecoverable I/O error while handling produce request:",
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
        sure=("Shrinking ISR from", "Shrinking ISR for"),
        example="[Partition orders-3 broker=1] Shrinking ISR from 1,2,3 to 1. Leader: "
        "(highWatermark: 88210, endOffset: 88231).",
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
        words=("NCLEAN",),
        sure=True,
        example="[QuorumController id=1] UNCLEAN partition change for orders-3 with topic ID "
        "3DxQ8q2dTvC: isr: [1] -> [2], leader: -1 -> 2, leaderEpoch: 7 -> 8, partitionEpoch: 12 "
        "-> 13",
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
        words=("unclean leader",),
        sure=True,
        example="Triggering unclean leader election for offline partition orders-3.",
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
        sure=True,
        example="No broker in ISR is alive for [orders,3]. Elect leader 2 from live brokers 2. "
        "There's potential data loss.",
    ),
    # state.change.logger, 3.2+:
    #   [Broker id=2] The topic partition orders-3 was marked as RECOVERING. Marking the topic ...
    pattern(
        "The topic partition ",
        r"The topic partition (?P<tp>\S{1,320}) was marked as RECOVERING",
        "leader_recovering",
        "leader_recovering",
        words=("marked as RECOVERING",),
        sure=("was marked as RECOVERING",),
        example="[Broker id=2] The topic partition orders-3 was marked as RECOVERING. Marking it",
    ),
    # state.change.logger, 2.6+; kafka.cluster.Partition, 1.1 to 2.5. Followers print another text:
    #   [Broker id=2] Leader orders-3 with topic id Some(3DxQ8q2dTvC) starts at leader epoch 8 from
    #   offset 88210 with partition epoch 13, high watermark 88210, ISR [2], adding replicas [] and
    #   removing replicas [] (under-min-isr). Previous leader Some(-1) and previous leader epoch ...
    #   [Partition orders-3 broker=2] orders-3 starts at leader epoch 8 from offset 88210 with high
    #   watermark 88210. Previous leader epoch was 7.
    pattern(
        "starts at leader epoch ",
        r"starts at leader epoch (?P<leader_epoch>\d{1,9}) from offset (?P<offset>\d{1,18}) with "
        r"(?:partition epoch \d{1,9}, )?high watermark (?P<high_watermark>\d{1,18})"
        r"(?:, ISR (?P<isr_after>\[[\d, ]{0,400}\]))?",
        "leader_start",
        "leader_start",
        _leads,
        example="[Broker id=2] Leader orders-3 with topic id Some(3DxQ8q2dTvC) starts at leader "
        "epoch 8 from offset 88210 with partition epoch 13, high watermark 88210, ISR [2]",
    ),
    # kafka/log/LogManager.scala, INFO; at a restart it means that the log was not there:
    #   Created log for partition orders-3 in /var/lib/kafka/orders-3 with properties {}
    pattern(
        "Created log for partition ",
        r"Created log for partition (?P<tp>\[[^\]]{1,260}\]|\S{1,320}) in ",
        "log_created",
        "log_created",
        example="Created log for partition orders-3 in /var/lib/kafka/orders-3 with properties {} "
        "(kafka.log.LogManager)",
    ),
)
