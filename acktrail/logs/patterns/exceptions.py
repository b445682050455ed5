"""What exceptions in a record report: which one tells most, and whether a send ended with it."""

from __future__ import annotations

import re
from itertools import islice

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
        "NotEnoughReplicasException",
        "NotEnoughReplicasAfterAppendException",
        "RecordTooLargeException",
        "RecordBatchTooLargeException",
        "InvalidRecordException",
        "InvalidTimestampException",
        "BufferExhaustedException",
        "TransactionAbortedException",
        "InvalidRequiredAcksException",
        "TransactionalIdAuthorizationException",
        "UnsupportedForMessageFormatException",
    ]
)
"""What only a produce request ends with (or nearly so)."""
_SHARED = frozenset(
    [
        "TimeoutException",
        "NotLeaderOrFollowerException",
        "NotLeaderForPartitionException",
        "LeaderNotAvailableException",
        "UnknownTopicOrPartitionException",
        "KafkaStorageException",
        "CorruptRecordException",
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
        "IllegalStateException",
    ]
)
"""What other requests end with too: something must report that it was a send."""

_VAGUE = frozenset(
    ["KafkaException", "IllegalStateException", "KafkaProducerException", "InterruptException"]
)
"""What a producer's start and end throw too: only words for a send count."""
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
_WAITED = re.compile(r"java\.util\.concurrent\.(TimeoutException)\b")
_WRAPPED = re.compile(
    r"([A-Z]\w{2,60}(?:Exception|Error))[:：] (?:Failed to send data to Kafka: )?\Z"
)
NOT_A_SEND = re.compile(
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
_SAYS_SEND = re.compile(r"(?i)\bsend(?:ing)?\b|\bsent\b|\bpublish(?:ing)?\b|\bproduc(?:e|ing)\b")
_FRAME = re.compile(r"\n\s{1,16}(?:at |\.\.\. \d)[^\n]{0,2000}")
_SENDS = re.compile(r"\bat [\w.$]{1,200}\.(?:KafkaProducer|KafkaTemplate)\.(?:send|doSend)\(")
"""The frame of a call to send()."""
_ALONE = re.compile(
    r"[^\w\n]{0,24}(?:(?i:error|warn|exception)[:!\]]?\s{1,4})?"
    r"(?:org\.apache\.kafka\.common\.errors\.|[A-Z]\w{2,60}Exception[:：])"
)
"""An exception and nothing else, but for a quote or a level."""


_COMMON = ("TimeoutException", "NetworkException")
_KAFKAS_WORDS = (
    "The server disconnected", "Disconnected from node", "Expiring ", "Topic ", "Failed to update",
    "Failed to allocate", "The request timed out", "Batch ", "Partition ", "Timed out ",
)  # fmt: skip


def _is_kafkas(message: str | None, lines: str) -> bool:
    """Many programs have such exceptions: Kafka's have its words, or stand beside its name."""
    return message is None or "afka" in lines or message.strip().startswith(_KAFKAS_WORDS)


def thrown(lines: str) -> tuple[str | None, str | None]:
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


_PRODUCERS_STATE = re.compile(
    r"after producer has been closed|TransactionalId \S{1,200}: Invalid transition attempted"
)


def ends_a_send(name: str | None, message: str | None, lines: str) -> bool:
    """Whether the exception *name* was the end of a send."""
    sends = _SENDS.search(lines) is not None
    if name is None or sends:
        return name is not None
    prose = _FRAME.sub("", lines)
    if name == "IllegalStateException":
        return _PRODUCERS_STATE.search(prose) is not None
    if name in FENCED or name in _SENDING:
        return message is not None or _A_SEND.search(prose) is not None
    if name not in _SHARED or (message is None and "KafkaProducer" not in prose):
        return False
    if name in _VAGUE:
        return _SAYS_SEND.search(prose) is not None
    return _A_SEND.search(prose) is not None or _ALONE.match(prose) is not None


def of_the_wait(flat: str) -> str | None:
    """The exception of an application that waited for a send and gave up."""
    found = _WAITED.search(flat)
    return None if found is None else found.group(1)


def wrapped_by(flat: str, position: int) -> str | None:
    """The application's own exception around words that begin at *position*."""
    found = _WRAPPED.search(flat[max(0, position - 200) : position])
    return None if found is None else found.group(1)
