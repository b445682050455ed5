"""Kafka's errors: by code name, exception class, or the words other clients print for them."""

from __future__ import annotations

import csv
import re
from dataclasses import dataclass
from functools import lru_cache
from importlib.resources import files


@dataclass(frozen=True, slots=True)
class KafkaError:
    """What is known of one error."""

    name: str
    """The code's name, e.g. NOT_ENOUGH_REPLICAS; empty for errors without a code."""
    exception: str
    category: str
    retriable_from: tuple[int, ...] | None
    """First client version that retries it; None if none does."""
    may_be_stored: bool
    """Whether the records may be in the log although the request failed."""
    invalid_metadata: bool


@lru_cache(maxsize=1)
def catalogue() -> dict[str, KafkaError]:
    """Every error, by code name, old name and exception class."""
    known: dict[str, KafkaError] = {}
    text = files(__package__).joinpath("errors.csv").read_text(encoding="utf-8")
    for row in csv.DictReader(text.splitlines()):
        error = KafkaError(
            name=row["name"],
            exception=row["exception"],
            category=row["category"],
            retriable_from=_version(row["retriable_from"]) if row["retriable_from"] else None,
            may_be_stored=row["may_be_stored"] == "yes",
            invalid_metadata=row["invalid_metadata"] == "yes",
        )
        for key in (row["name"], row["exception"], *row["old_names"].split()):
            if key:
                known.setdefault(key, error)
    return known


@lru_cache(maxsize=1)
def _codes() -> dict[int, str]:
    text = files(__package__).joinpath("errors.csv").read_text(encoding="utf-8")
    return {
        int(row["code"]): row["name"] for row in csv.DictReader(text.splitlines()) if row["code"]
    }


def name_of(code: int) -> str | None:
    """The name of an error's number, as brokers send it."""
    return _codes().get(code)


@lru_cache(maxsize=4096)
def look_up(error: str | None) -> KafkaError | None:
    """The error meant by a code name, an exception class, or a client's own words for it."""
    if error is None:
        return None
    known = catalogue()
    if error in known:
        return known[error]
    if error in _RDKAFKA_TEXTS:
        return known.get(_RDKAFKA_TEXTS[error])
    if error.endswith("Error"):  # kafka-python: NotLeaderForPartitionError, RequestTimedOutError
        name = error[: -len("Error")]
        code = re.sub(r"(?<!^)(?=[A-Z])", "_", name).upper()
        return known.get(name + "Exception") or known.get(code)
    return None


@lru_cache(maxsize=4096)
def retriable(error: str | None, version: str | None = None) -> bool | None:
    """Whether a client of *version* (the newest where unknown) retries it; None if unknown.

    OUT_OF_ORDER_SEQUENCE_NUMBER and UNKNOWN_PRODUCER_ID are not retriable by class, though an
    idempotent producer may try them again.
    """
    if error in _RDKAFKA_RETRIABLE:
        return _RDKAFKA_RETRIABLE[error or ""]
    known = look_up(error)
    if known is None:
        return None
    if known.retriable_from is None:
        return False
    return version is None or _version(version) >= known.retriable_from


@lru_cache(maxsize=4096)
def category(error: str | None) -> str | None:
    """What kind of error it is: leadership, replication, timeout, network, authorization ..."""
    if error in _RDKAFKA_CATEGORIES:
        return _RDKAFKA_CATEGORIES[error or ""]
    known = look_up(error)
    return None if known is None else known.category


def _version(text: str) -> tuple[int, ...]:
    return tuple(int(part) for part in re.findall(r"\d{1,6}", text)[:4])


# sarama, errors.go: the words it prints for a code, by their beginning.
_SARAMA = (
    ("Unexpected (unknown?) server error", "UNKNOWN"),
    ("Message contents does not match its CRC", "CORRUPT_MESSAGE"),
    ("Request was for a topic or partition that does not exist", "UNKNOWN_TOPIC_OR_PARTITION"),
    ("In the middle of a leadership election", "LEADER_NOT_AVAILABLE"),
    ("Tried to send a message to a replica that is not the leader", "NOT_LEADER_FOR_PARTITION"),
    ("Request exceeded the user-specified time limit", "REQUEST_TIMED_OUT"),
    ("Broker not available", "BROKER_NOT_AVAILABLE"),
    ("Replica not available", "REPLICA_NOT_AVAILABLE"),
    ("Replica information not available", "REPLICA_NOT_AVAILABLE"),
    ("Message was too large", "MESSAGE_TOO_LARGE"),
    ("The server disconnected before a response was received", "NETWORK_EXCEPTION"),
    (
        "The request attempted to perform an operation on an invalid topic",
        "INVALID_TOPIC_EXCEPTION",
    ),
    ("The request included message batch larger", "RECORD_LIST_TOO_LARGE"),
    ("Messages are rejected since there are fewer in-sync replicas", "NOT_ENOUGH_REPLICAS"),
    ("Messages are written to the log, but to fewer", "NOT_ENOUGH_REPLICAS_AFTER_APPEND"),
    ("The number of required acks is invalid", "INVALID_REQUIRED_ACKS"),
    ("The client is not authorized to access this topic", "TOPIC_AUTHORIZATION_FAILED"),
    ("The client is not authorized to send this request type", "CLUSTER_AUTHORIZATION_FAILED"),
    ("The timestamp of the message is out of acceptable range", "INVALID_TIMESTAMP"),
    ("The broker received an out of order sequence number", "OUT_OF_ORDER_SEQUENCE_NUMBER"),
    ("The broker received a duplicate sequence number", "DUPLICATE_SEQUENCE_NUMBER"),
    ("Producer attempted an operation with an old epoch", "INVALID_PRODUCER_EPOCH"),
    ("Disk error when trying to access log file", "KAFKA_STORAGE_ERROR"),
    ("SASL Authentication failed", "SASL_AUTHENTICATION_FAILED"),
)


def sarama_error(text: str) -> str | None:
    """The code's name for what sarama prints after `kafka server: `."""
    for beginning, name in _SARAMA:
        if text.startswith(beginning):
            return name
    return None


# kafkajs, src/protocol/error.js: Kafka's own description of a code.
_KAFKAJS = {
    "This server does not host this topic-partition": "UNKNOWN_TOPIC_OR_PARTITION",
    "There is no leader for this topic-partition as we are in the middle of a leadership "
    "election": "LEADER_NOT_AVAILABLE",
    "This server is not the leader for that topic-partition": "NOT_LEADER_FOR_PARTITION",
    "The request timed out": "REQUEST_TIMED_OUT",
    "The request included a message larger than the max message size the server will accept": (
        "MESSAGE_TOO_LARGE"
    ),
    "The server disconnected before a response was received": "NETWORK_EXCEPTION",
    "The request attempted to perform an operation on an invalid topic": "INVALID_TOPIC_EXCEPTION",
    "Messages are rejected since there are fewer in-sync replicas than required": (
        "NOT_ENOUGH_REPLICAS"
    ),
    "Messages are written to the log, but to fewer in-sync replicas than required": (
        "NOT_ENOUGH_REPLICAS_AFTER_APPEND"
    ),
    "Topic authorization failed": "TOPIC_AUTHORIZATION_FAILED",
    "The broker received an out of order sequence number": "OUT_OF_ORDER_SEQUENCE_NUMBER",
}


def kafkajs_error(text: str) -> str:
    """The code's name for kafkajs's words, or the words."""
    return _KAFKAJS.get(text.strip().rstrip("."), text)


# librdkafka, rdkafka.c rd_kafka_err_descs: its words for a broker's error, without "Broker: ".
_RDKAFKA_TEXTS = {
    "Not enough in-sync replicas": "NOT_ENOUGH_REPLICAS",
    "Message(s) written to insufficient number of in-sync replicas": (
        "NOT_ENOUGH_REPLICAS_AFTER_APPEND"
    ),
    "Not leader for partition": "NOT_LEADER_OR_FOLLOWER",
    "Leader not available": "LEADER_NOT_AVAILABLE",
    "Request timed out": "REQUEST_TIMED_OUT",
    "Message size too large": "MESSAGE_TOO_LARGE",
    "Unknown topic or partition": "UNKNOWN_TOPIC_OR_PARTITION",
    "Topic authorization failed": "TOPIC_AUTHORIZATION_FAILED",
    "Cluster authorization failed": "CLUSTER_AUTHORIZATION_FAILED",
    "Policy violation": "POLICY_VIOLATION",
    "Invalid message": "CORRUPT_MESSAGE",
    "Message batch larger than configured server segment size": "RECORD_LIST_TOO_LARGE",
    "Invalid topic": "INVALID_TOPIC_EXCEPTION",
    "Invalid timestamp": "INVALID_TIMESTAMP",
    "Broker received an out of order sequence number": "OUT_OF_ORDER_SEQUENCE_NUMBER",
    "Broker received a duplicate sequence number": "DUPLICATE_SEQUENCE_NUMBER",
    "Producer attempted an operation with an old epoch": "INVALID_PRODUCER_EPOCH",
    "Unknown Producer Id": "UNKNOWN_PRODUCER_ID",
    "Broker failed to validate record": "INVALID_RECORD",
    "Disk error when trying to access log file on disk": "KAFKA_STORAGE_ERROR",
    "Broker disconnected before response received": "NETWORK_EXCEPTION",
    "Unknown broker error": "UNKNOWN_SERVER_ERROR",
}
# librdkafka, rdkafka.h: errors of its own, by name and by text.
_RDKAFKA_CATEGORIES = {
    "_MSG_TIMED_OUT": "timeout",
    "Message timed out": "timeout",
    "_TIMED_OUT": "timeout",
    "Timed out": "timeout",
    "_QUEUE_FULL": "buffer",
    "Queue full": "buffer",
    "_TRANSPORT": "network",
    "Broker transport failure": "network",
    "_ALL_BROKERS_DOWN": "network",
    "All broker connections are down": "network",
    "_RESOLVE": "network",
    "Host resolution failure": "network",
    "_PURGE_QUEUE": "dropped",
    "_PURGE_INFLIGHT": "dropped",
    "_FATAL": "fatal",
    "_GAPLESS_GUARANTEE": "sequence",
    "_AUTHENTICATION": "authorization",
    "_SSL": "authorization",
    "_UNKNOWN_TOPIC": "unknown_topic",
    "_UNKNOWN_PARTITION": "unknown_topic",
    "REQTMOUT": "timeout",
    "FAIL": "network",
}
_RDKAFKA_RETRIABLE = {
    "_MSG_TIMED_OUT": False,
    "Message timed out": False,
    "_PURGE_QUEUE": False,
    "_PURGE_INFLIGHT": False,
    "_FATAL": False,
    "_QUEUE_FULL": True,
    "Queue full": True,
    "_TRANSPORT": True,
    "Broker transport failure": True,
}
RDKAFKA_WORDS: tuple[str, ...] = tuple(
    sorted(
        {*_RDKAFKA_TEXTS, *(text for text in _RDKAFKA_CATEGORIES if " " in text)},
        key=lambda text: -len(text),
    )
)
"""librdkafka's words for errors, the longest first."""
