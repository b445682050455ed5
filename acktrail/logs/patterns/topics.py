"""Where the topic stands in what is printed around a failed send."""

from __future__ import annotations

import re

from acktrail.logs.partitions import topic_name

_TOPICS = (
    # producer/internals/ErrorLoggingCallback.java
    re.compile(r"Error when sending message to topic (?P<topic>\S{1,249}?)(?: with key|:|\s|\Z)"),
    # spring-kafka, support/LoggingProducerListener.java
    re.compile(
        r"Exception thrown when sending a message .{0,2000}?to topic (?P<topic>[^\s:]{1,249})"
        r"(?: and partition (?P<partition>\d{1,9}))?:",
        re.DOTALL,
    ),
    # streams/processor/internals/RecordCollectorImpl.java
    re.compile(r"(?:sending|send a) record .{0,400}?to topic (?P<topic>\S{1,249}) (?:for|due)"),
    # flink, connector/kafka/sink/KafkaWriter.java
    re.compile(
        r"Failed to send data to Kafka (?P<topic>[A-Za-z0-9._-]{1,249})-(?P<partition>\d{1,9})@"
    ),
    # connect/runtime/AbstractWorkerSourceTask.java
    re.compile(
        r"[Ff]ailed to send record to (?:topic |(?!topic\b))(?P<topic>[A-Za-z0-9._-]{1,249})\b"
    ),
    re.compile(
        r"Topic ['\"`]?(?P<topic>[A-Za-z0-9._-]{1,249})['\"`]? not present(?: in metadata|\s|\Z)"
    ),
    re.compile(
        r"Partition (?P<partition>\d{1,9}) of topic (?P<topic>[A-Za-z0-9._-]{1,249}) with partition"
    ),
    # kafka/cluster/Partition.scala: the text of NotEnoughReplicasException
    re.compile(
        r"min\.(?:isr|insync\.replicas) requirement of \d{1,4} for partition "
        r"(?P<topic>[A-Za-z0-9._-]{1,249})-"
        r"(?P<partition>\d{1,9})\b"
    ),
    # spring-kafka, listener/DeadLetterPublishingRecoverer.java
    re.compile(r"Dead-letter publication to (?P<topic>[A-Za-z0-9._-]{1,249}) failed for"),
    # storage/log/ProducerAppendInfo.java, kafka/cluster/Partition.scala: what brokers say of it
    re.compile(
        r"(?:at offset -?\d{1,18} ?in|is no longer valid in|Number of insync replicas for) "
        r"partition (?P<topic>[A-Za-z0-9._-]{1,249})-(?P<partition>\d{1,9})"
    ),
    re.compile(
        r"Epoch of producer \d{1,18} at offset -?\d{1,18} in (?P<topic>[A-Za-z0-9._-]{1,249})-"
        r"(?P<partition>\d{1,9}) is "
    ),
    # spring-kafka, core/KafkaTemplate.java: Failed to send: ProducerRecord(topic=orders, ...
    re.compile(
        r"ProducerRecord\(topic=(?P<topic>[A-Za-z0-9._-]{1,249}), partition="
        r"(?:(?P<partition>\d{1,9})|null)"
    ),
    # smallrye-reactive-messaging, SRMSG18206
    re.compile(r"from channel \S{1,200} \(topic: (?P<topic>[A-Za-z0-9._-]{1,249})\)"),
    re.compile(
        r"max\.request\.size configuration\. Topic: (?P<topic>[A-Za-z0-9._-]{1,249}), "
        r"Partition: (?P<partition>\d{1,9})"
    ),
    re.compile(r"Could not submit metrics to Kafka topic (?P<topic>[A-Za-z0-9._-]{1,249}):"),
    re.compile(r"Not authorized to access topics: \[(?P<topic>[A-Za-z0-9._-]{1,249})\]"),
    re.compile(r"\bto (?:Kafka )?topic[ :=]{1,2}['\"\[]?(?P<topic>[A-Za-z0-9._-]{1,249})"),
)


def topic_of(flat: str) -> tuple[str | None, int | None]:
    """The topic that is named first, and its partition, wherever that stands."""
    found = [place for regex in _TOPICS if (place := regex.search(flat)) is not None]
    if not found:
        return None, None
    topic = found[0]["topic"]
    numbers = (p.groupdict().get("partition") for p in found if p["topic"] == topic)
    partition = next((number for number in numbers if number is not None), None)
    return topic_name(topic), None if partition is None else int(partition)
