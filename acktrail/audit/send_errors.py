"""What an error told to a producer means for its *last* attempt, and for the message.

A closed list: only an error that a broker gives before it appends, or that a client gives before
it sends, means "not written" (`failed`). Everything else, what we do not know included, is
indeterminate. An earlier attempt may have been written all the same, its answer lost: only an
error that comes before the first send rules that out.
"""

from __future__ import annotations

from acktrail.contracts.vocabulary import Tier

_NOT_WRITTEN = frozenset(
    {
        # Java exception classes.
        "BufferExhaustedException",
        "ClusterAuthorizationException",
        "InvalidRecordException",
        "InvalidRequiredAcksException",
        "InvalidTimestampException",
        "InvalidTopicException",
        "NotEnoughReplicasException",
        "PolicyViolationException",
        "RecordBatchTooLargeException",
        "RecordTooLargeException",
        "RecordTooLargeException(client)",
        "SerializationException",
        "TimeoutException(buffer)",
        "TimeoutException(metadata)",
        "TopicAuthorizationException",
        "TransactionalIdAuthorizationException",
        "UnsupportedCompressionTypeException",
        "UnsupportedForMessageFormatException",
        # librdkafka names.
        "CLUSTER_AUTHORIZATION_FAILED",
        "INVALID_MSG_SIZE",
        "INVALID_RECORD",
        "INVALID_REQUIRED_ACKS",
        "INVALID_TIMESTAMP",
        "MSG_SIZE_TOO_LARGE",
        "NOT_ENOUGH_REPLICAS",
        "POLICY_VIOLATION",
        "TOPIC_AUTHORIZATION_FAILED",
        "TOPIC_EXCEPTION",
        "TRANSACTIONAL_ID_AUTHORIZATION_FAILED",
        "UNSUPPORTED_COMPRESSION_TYPE",
        "UNSUPPORTED_FOR_MESSAGE_FORMAT",
        "_QUEUE_FULL",
        "_UNKNOWN_PARTITION",
        "_UNKNOWN_TOPIC",
    }
)

_BEFORE_SENDING = frozenset(
    {
        # Thrown by KafkaProducer.send() itself.
        "BufferExhaustedException",
        "RecordTooLargeException(client)",
        "SerializationException",
        "TimeoutException(buffer)",
        "TimeoutException(metadata)",
        # librdkafka's own, from produce().
        "_QUEUE_FULL",
    }
)

# What KafkaProducer says in a TimeoutException, by the place that threw it. Only the first two are
# thrown by send() itself, before anything is handed to the sender.
_TIMEOUTS = (
    ("not present in metadata after", "metadata"),
    ("Failed to update metadata after", "metadata"),
    ("Failed to allocate memory within", "buffer"),
    ("Failed to allocate", "buffer"),
    ("Expiring ", "expired"),
)


def error_name(exception: str, message: str | None = None) -> str:
    """A short name for what a client was told: `TimeoutException(expired)`, `NOT_ENOUGH_REPLICAS`.

    *exception* may be a class with its package and the word `class` before it.
    """
    name = exception.removeprefix("class ").rpartition(".")[2].strip() or "unknown"
    if name == "RecordTooLargeException" and "when serialized which is larger" in (message or ""):
        return f"{name}(client)"
    if name == "TimeoutException":
        for sign, kind in _TIMEOUTS:
            if message and sign in message:
                return f"{name}({kind})"
    return name


def tier_of_error(name: str) -> Tier:
    """`failed` where *name* surely means that nothing was written, else `indeterminate`."""
    return Tier.FAILED if name in _NOT_WRITTEN else Tier.INDETERMINATE


def precedes_sending(name: str) -> bool:
    """Whether *name* is an error that a client gives before it has sent anything."""
    return name in _BEFORE_SENDING
