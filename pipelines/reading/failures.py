"""Failures that only an exception tells of: the client prints nothing, the application does.

Kafka's own exceptions have no stack frames: often one line is all there is. Only exceptions that a
send() can end with count, and only where nothing says that a consumer or an admin client speaks.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from itertools import islice

from pipelines.reading.partitions import topic_name
from pipelines.reading.pattern import Fields
from pipelines.reading.source_code import is_source_code

FENCED = frozenset(
    [
        "OutOfOrderSequenceException",
        "UnknownProducerIdException",
        "ProducerFencedException",
        "InvalidProducerEpochException",
        "InvalidPidMappingException",
    ]
)
_SENDING = frozenset(
    [
        "NetworkException",
        "NotLeaderOrFollowerException",
        "NotLeaderForPartitionException",
        "NotEnoughReplicasException",
        "NotEnoughReplicasAfterAppendException",
        "RecordTooLargeException",
        "RecordBatchTooLargeException",
        "CorruptRecordException",
        "InvalidRecordException",
        "InvalidTimestampException",
        "BufferExhaustedException",
        "KafkaStorageException",
        "TransactionAbortedException",
        "LeaderNotAvailableException",
        "UnknownTopicOrPartitionException",
        "InvalidRequiredAcksException",
        "TransactionalIdAuthorizationException",
        "UnsupportedForMessageFormatException",
    ]
)
"""What only a produce request ends with (or nearly so)."""
_SHARED = frozenset(
    [
        "TimeoutException",
        "TopicAuthorizationException",
        "ClusterAuthorizationException",
        "PolicyViolationException",
        "SaslAuthenticationException",
        "SerializationException",
        "InvalidTopicException",
        "UnknownServerException",
        "SslAuthenticationException",
        "DisconnectException",
        "AuthenticationException",
        "UnsupportedVersionException",
        "InterruptException",
        "KafkaException",
        "KafkaProducerException",
        "ConfigException",
        "IllegalStateException",
    ]
)
"""What other requests end with too: something must say that it was a send."""

_VAGUE = frozenset(["KafkaException", "IllegalStateException", "KafkaProducerException"])
_KAFKAS = re.compile(r"apache\.kafka|kafka\.common\.errors|OrgApacheKafka")

_EXCEPTION = re.compile(
    r"(?:(?:org\.)?apache\.kafka\w{0,20}\.(?:common\.errors|common|clients\.(?:producer|consumer)|"
    r"connect\.errors)\.|kafka\.common\.errors\.|OrgApacheKafkaCommonErrors::|"
    r"org\.springframework\.kafka\.core\.|java\.lang\.)"
    r"(?P<name>[A-Z]\w{2,60}Exception)\b"
    r"(?:(?::|：(?=\s{0,4}[A-Z]))(?:\s{0,8}\n[>#/*\s]{0,40}(?!at ))?"
    r"(?=(?P<message>[^\n]{0,1000})))?"
)
_SHORT = re.compile(
    r"(?<![\w.$\\:])(?P<name>(?:Timeout|NotEnoughReplicas|NotLeaderOrFollower|Network|RecordTooLarge|"
    r"OutOfOrderSequence|ProducerFenced|InvalidProducerEpoch|BufferExhausted)Exception)"
    r"(?:(?:: |：\s{0,4}(?=[A-Z])|\s{0,4}\n\s{0,8})(?P<message>[^\n]{1,1000})|[ *]{0,4}(?:\Z| @ ))"
    # These stand in sources and prose more often than in logs, unless Kafka's own words follow.
    r"|(?<![\w.$\\:])(?P<rare>(?:NotLeaderForPartition|UnknownTopicOrPartition|TopicAuthorization|"
    r"ClusterAuthorization)Exception)[:：] ?"
    r"(?P<words>(?:This server |Not authorized to access |Cluster authorization )[^\n]{1,1000})"
)
# Where the topic stands in what is printed around the exception.
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
ANNOUNCED = (
    "Error when sending message to topic ",
    "Exception thrown when sending a message",
    "Error encountered sending record to topic ",
    "Abort sending since an error caught",
    "ailed to send record to ",
    "Failed to send data to Kafka",
    "Unrecoverable exception from producer send callback",
    "kafka.core.KafkaProducerException: Failed to send",
    "Failed to send: ProducerRecord(",
    "Unable to write to Kafka from channel",
    "Unable to write to Kafka in appender",
    "Aborting producer batches due to fatal error",
    "Could not submit metrics to Kafka topic ",
    "Producer is closed forcefully",
    "error state due to ",
)
"""Words that only a failed send is announced with."""
WORDS = (
    "xception",
    "metadata after",
    "sending",
    "when serialized which is larger",
    *ANNOUNCED,
    *(
        f"{verb}{thing}"
        for verb in ("send", "publish", "produce", "sending", "publishing", "producing")
        for thing in (" message", " record", " event", " the ", " a")
    ),
)
"""One of them stands in whatever is read here."""
_STATED = re.compile(
    r"(?:[Ff]ailed to|[Ee]rror|[Uu]nable to|[Cc]ould not) (?:send|publish|produce|sending|"
    r"publishing|producing) (?:the |a |an )?(?:message|record|event)s? to "
    r"(?:[Kk]afka\b|(?:[Kk]afka )?topic\b(?! ?['\"\[]?[\w.-]{0,249}/))"
)
_WAITED = re.compile(r"java\.util\.concurrent\.(TimeoutException)\b")
_WRAPPED = re.compile(
    r"([A-Z]\w{2,60}(?:Exception|Error))[:：] (?:Failed to send data to Kafka: )?\Z"
)
_DETAILS = {
    "Aborting producer batches due to fatal error": "fatal_abort",
    "error state due to ": "transaction_error_state",
    "Producer is closed forcefully": "closed_forcefully",
}
_METADATA = re.compile(
    r"(?:Failed to update metadata after|not present in metadata after) (?P<ms>\d{1,18})\s?ms"
)
_BUFFER = re.compile(
    r"Failed to allocate (?:memory|\d{1,18} bytes) within the configured max blocking time"
    r"(?: (?P<ms>\d{1,18}) ?ms)?"
)
_TOO_LARGE = re.compile(r"The message is \d{1,18} bytes when serialized which is larger than")
_NOT_A_SEND = re.compile(
    r"\[Consumer client|\[AdminClient |\[Admin client|ConsumerCoordinator|ConsumerConfig"
    r"|KafkaConsumer|onsumer\.poll|eserializ|Call\(callName|AdminClient|ReplicaFetcher"
    r"|\[Controller id|\[Partition |node assignment|getting metadata|offsets by times"
    r"|position for partition|fetching topic|FetchSession|fetching metadata|ListenerContainer"
    r"|\[GroupCoordinator|\[RaftManager|\[SocketServer|\[BrokerLifecycle|listTopics"
    r"|Uncaught error in kafka producer I/O thread|processing fetch|minimum record overhead"
    r"|waiting to send the call|\bCall: \w|fetchMetadata|committing (?:offsets|the current)"
    r"|OffsetAndMetadata|magic byte|schema for id|Cancelled \w{1,40} request"
    r"|KafkaStorageException: Error while |\bkafka\.(?:server|log|utils|cluster|controller|network)"
    r"\.[A-Z]|org\.apache\.kafka\.(?:server|storage|controller|raft|image)\."
    r"|Error for partition \S{1,320} (?:to broker \d|at offset \d)|broker \d{1,9}:org\.apache\."
    r"|kafka\.admin\.|kafka\.tools\.|KafkaFutureImpl|executing \w{1,40} command|Reconciliation #"
    r"|kafka\.source\.enumerator|clients\.consumer\.|Exception - [a-z]|subscribed topic"
    r"|describe[TC]|createTopics|create topics?\b|elemetry|Version mismatch when attempting"
)
_A_SEND = re.compile(
    r"(?i)\bsend(?:ing)?\b|\bsent\b|produc(?:e|er|ing)\b|KafkaProducer|KafkaTemplate|publish"
    r"|recordcollector|batch|\bwrit(?:e|ing)\b|\b(?:key|value)\.serializer\b"
)


_ALONE = re.compile(
    r"[^\w\n]{0,24}(?:(?i:error|warn|exception)[:!\]]?\s{1,4})?org\.apache\.kafka\.common\.errors\."
)
"""An exception and nothing else, but for a comment's mark, a quote or a level."""


def read_failure(lines: str, flat: str) -> tuple[Fields, int] | None:
    """What a record says of a failed send that no other text tells of, and where it begins to."""
    announced = next((words for words in ANNOUNCED if words in flat), None) or _stated(flat)
    if announced is None and _NOT_A_SEND.search(flat) is not None:
        return None
    if is_source_code(flat):
        return None
    metadata, buffer = _METADATA.search(flat), _BUFFER.search(flat)
    name, message = _thrown(lines)
    waited = metadata or buffer
    too_large = _TOO_LARGE.search(flat)
    refused = waited is not None or announced is not None or too_large is not None
    if name is None and announced is not None:
        name = wrapped_by(flat, flat.find(announced)) or _of_the_wait(flat)
    elif name is None and too_large is not None:
        name = wrapped_by(flat, too_large.start())
    if not refused and not _counts(name, message, flat):
        return None
    fields: Fields = {
        "kind": "fatal_sequence" if name in FENCED else "send_failed",
        "detail": _detail(metadata is not None, buffer is not None, flat, announced),
        "error": name,
        "message": message,
        "elapsed_ms": None if waited is None or waited["ms"] is None else int(waited["ms"]),
    }
    fields["topic"], fields["partition"] = _place(flat)
    return fields, len(flat) if announced is None else flat.find(announced)


def _of_the_wait(flat: str) -> str | None:
    found = _WAITED.search(flat)
    return None if found is None else found.group(1)


def wrapped_by(flat: str, position: int) -> str | None:
    """The application's own exception around words that begin at *position*."""
    found = _WRAPPED.search(flat[max(0, position - 200) : position])
    return None if found is None else found.group(1)


def _place(flat: str) -> tuple[str | None, int | None]:
    """The topic that is named first, and its partition, wherever that stands."""
    found = [place for regex in _TOPICS if (place := regex.search(flat)) is not None]
    if not found:
        return None, None
    topic = found[0]["topic"]
    numbers = (p.groupdict().get("partition") for p in found if p["topic"] == topic)
    partition = next((number for number in numbers if number is not None), None)
    return topic_name(topic), None if partition is None else int(partition)


_OTHER_BROKER = re.compile(r"(?i)rocketmq|pulsar|\bnats\b|mqtt|arn:aws|rabbit|pub/?sub|amqp|\w://")
_REASON = re.compile(r"[^:\n]{0,80}: \S")
_HEADED = re.compile(r"[^A-Za-z]{0,40}\d\d:\d\d|[^A-Za-z]{0,8}(?:[A-Z]{4,8}|\w{4,8}:)[\s\]:!]")
"""Words that stand in prose too are an event behind a time or a level, or with a reason."""


def _stated(flat: str) -> str | None:
    """An application's own words for it, where they are plain."""
    found = _STATED.search(flat[:4000])
    if found is None or _OTHER_BROKER.search(flat[:4000]) is not None:
        return None
    said = found.group(0)
    if said.endswith("topic") or _REASON.match(flat, found.end()) is not None:
        return said
    return said if _HEADED.match(flat) is not None else None


def read_verifiable(said: Mapping[str, object]) -> Fields:
    """What tools/VerifiableProducer.java says of a message that failed.

    {"timestamp":1769842800000,"name":"producer_send_error","topic":"orders","exception":"class
    org.apache.kafka.common.errors.NotEnoughReplicasException","message":"Messages are ...", ...}
    """
    topic, thrown, message = (said.get(name) for name in ("topic", "exception", "message"))
    error = thrown.rpartition(".")[2] if isinstance(thrown, str) else None
    return {
        "kind": "fatal_sequence" if error in FENCED else "send_failed",
        "detail": "verifiable_send_error",
        "error": error or None,
        "message": message if isinstance(message, str) else None,
        "topic": topic_name(topic) if isinstance(topic, str) else None,
    }


_COMMON = ("TimeoutException", "NetworkException")
_KAFKAS_WORDS = (
    "The server disconnected", "Disconnected from node", "Expiring ", "Topic ", "Failed to update",
    "Failed to allocate", "The request timed out", "Batch ", "Partition ", "Timed out ",
)  # fmt: skip


def _is_kafkas(message: str | None, lines: str) -> bool:
    """Many programs have such exceptions: Kafka's have its words, or stand beside its name."""
    return message is None or "afka" in lines or message.strip().startswith(_KAFKAS_WORDS)


def _thrown(lines: str) -> tuple[str | None, str | None]:
    """The most telling exception: a sequence error, else one a send ends with, else any."""
    found = [(e["name"], e["message"]) for e in islice(_EXCEPTION.finditer(lines), 32)] or [
        (e["name"] or e["rare"], e["message"] or e["words"])
        for e in islice(_SHORT.finditer(lines), 4)
    ]
    found = [one for one in found if one[0] not in _COMMON or _is_kafkas(one[1], lines)]
    for names in (FENCED, _SENDING, _SHARED - _VAGUE, _SHARED):
        for name, message in found:
            if name in names:
                return name, (message or "").strip() or None
    if found and _KAFKAS.search(lines) is not None:
        return found[0][0], (found[0][1] or "").strip() or None
    return None, None


_BULLET = re.compile(r"\s{0,8}[-*•] `?[\w.]{0,100}Exception`?: [a-z]")
"""An entry of somebody's list of errors."""
_PRODUCERS_STATE = re.compile(
    r"after producer has been closed|is not writable|Invalid transition attempted|"
    r"\bat org\.apache\.kafka\.clients\.producer\."
)


def _counts(name: str | None, message: str | None, flat: str) -> bool:
    if name is None or _BULLET.match(flat) is not None:
        return False
    if name == "IllegalStateException":
        return _PRODUCERS_STATE.search(flat) is not None
    if name in FENCED or name in _SENDING:
        return message is not None or _A_SEND.search(flat) is not None
    if name in _SHARED and (message is not None or "KafkaProducer" in flat):
        return _A_SEND.search(flat) is not None or _ALONE.match(flat) is not None
    return False


def _detail(metadata: bool, buffer: bool, flat: str, announced: str | None) -> str:
    if metadata or buffer:
        return "metadata_timeout" if metadata else "buffer_exhausted"
    if _TOO_LARGE.search(flat) is not None:
        return "record_too_large"
    return _DETAILS.get(announced or "", "exception" if announced is None else "send_error")
