"""Why a client gave up, or ended: what the application was told, and what its log says.

An error describes the last attempt only. Where it is the whole story (too large, no metadata), the
report that names the ids and the error is the proof; what a log adds is near in time, not exact.
"""

from __future__ import annotations

from acktrail.audit.explained import Explained, Rule, keys, place, with_account
from acktrail.audit.loss_evidence import Fact, Loss
from acktrail.contracts.vocabulary import Cause, Confidence

_BY_ERROR: tuple[tuple[tuple[str, ...], Cause, str, str], ...] = (
    (
        ("TimeoutException(metadata)", "_UNKNOWN_TOPIC", "_UNKNOWN_PARTITION"),
        Cause.METADATA_TIMEOUT,
        "no broker told the client where the topic is within max.block.ms",
        "check that the topic exists and that the client reaches a broker",
    ),
    (
        ("TimeoutException(buffer)", "BufferExhausted", "_QUEUE_FULL"),
        Cause.BUFFER_EXHAUSTED,
        "the client's buffer was full: it sends slower than the application produces",
        "a larger buffer.memory, or a slower application",
    ),
    (
        ("RecordTooLarge", "RecordBatchTooLarge", "MSG_SIZE_TOO_LARGE", "INVALID_MSG_SIZE"),
        Cause.RECORD_TOO_LARGE,
        "the record is larger than max.request.size or max.message.bytes allows",
        "smaller records, or higher limits on client and topic",
    ),
    (
        ("Authorization", "AUTHORIZATION", "_AUTHENTICATION", "SaslAuthentication"),
        Cause.AUTHORIZATION,
        "the client may not write to the topic",
        "give the client's principal the right to write",
    ),
    (
        ("Serialization", "InvalidRecord", "INVALID_RECORD"),
        Cause.SERIALIZATION,
        "the record could not be serialized, or the broker refused its form",
        "correct the records that the application makes",
    ),
    (
        ("_PURGE_", "_DESTROY", "KafkaException(closed)", "ForcedClose"),
        Cause.DROPPED_AT_CLOSE,
        "the producer was closed before the record was sent",
        "flush before closing, with a time-out that suffices",
    ),
)
_FAILURES = ("send_failed", "expired", "fatal_sequence", "connection_failure")
_RETRIABLE = (
    *("NotEnoughReplicas", "NOT_ENOUGH_REPLICAS", "NotLeader", "NOT_LEADER", "TimeoutException"),
    *("NetworkException", "_TRANSPORT", "_TIMED_OUT", "REQUEST_TIMED_OUT", "DisconnectException"),
    *("UnknownTopicOrPartition", "UNKNOWN_TOPIC_OR_PART", "LeaderNotAvailable"),
    *("LEADER_NOT_AVAILABLE", "CorruptRecord", "CORRUPT_MESSAGE", "KafkaStorage"),
    *("KAFKA_STORAGE_ERROR", "OutOfOrderSequence", "_ALL_BROKERS_DOWN"),
)
_EXPIRED = ("TimeoutException(expired)", "_MSG_TIMED_OUT", "_TIMED_OUT_QUEUE")


def fire_and_forget(loss: Loss) -> Explained | None:
    """acks=0, so nobody was asked whether it arrived; why it did not is another question."""
    return Explained(
        Cause.FIRE_AND_FORGET,
        Confidence.SAME_CLIENT,
        "acks=0: the client never asks whether a record was stored",
        with_account(loss, loss.near("acks0_close")),
        "acks=all",
    )


def refused_by_error(loss: Loss) -> Explained | None:
    """The error itself is the cause: metadata, buffer, size, rights, form, close."""
    for signs, cause, why, fix in _BY_ERROR:
        if any(sign in loss.finding.error for sign in signs):
            evidence = with_account(loss, _of_client(loss, _FAILURES))
            return Explained(cause, Confidence.EXACT, why, evidence, fix)
    return None


def delivery_timed_out(loss: Loss) -> Explained | None:
    """Its time ran out, however many retries were left."""
    if not any(sign in loss.finding.error for sign in _EXPIRED):
        return None
    retries = _of_client(loss, ("retry", "split_retry", "expired", "connection_failure"))
    burnt = _most_common([f.error for f in retries if f.error])
    timeout = loss.settings.get("delivery.timeout.ms") or loss.settings.get("message.timeout.ms")
    return Explained(
        Cause.DELIVERY_TIMEOUT,
        Confidence.EXACT,
        f"not acknowledged within {f'{timeout} ms' if timeout else 'delivery.timeout.ms'}"
        + (f"; {burnt} used the time up" if burnt else ""),
        with_account(loss, retries[-20:]),
        "a longer delivery.timeout.ms than the longest outage",
    )


def retries_exhausted(loss: Loss) -> Explained | None:
    """An error that is retried came once more than `retries` allows."""
    if not any(sign in loss.finding.error for sign in _RETRIABLE):
        return None
    lines = [f for f in _of_client(loss, ("retry", "split_retry")) if f.attempts_left is not None]
    retries = loss.settings.get("retries", "")
    if not lines and retries in ("", "0"):
        return None
    return Explained(
        Cause.RETRIES_EXHAUSTED,
        Confidence.SAME_CLIENT,
        f"{loss.finding.error} outlasted all {retries or 'configured'} retries",
        with_account(loss, lines[-20:]),
        "use default retries, and a longer delivery.timeout.ms",
    )


def not_enough_replicas(loss: Loss) -> Explained | None:
    """Fewer replicas in sync than the topic demands, and the client does not retry."""
    if not any(sign in loss.finding.error for sign in ("NotEnoughReplicas", "NOT_ENOUGH_REPLICAS")):
        return None
    found = loss.near("broker_append_error", "isr_shrink")
    return Explained(
        Cause.NOT_ENOUGH_REPLICAS,
        Confidence.EXACT,
        f"fewer replicas of {place(loss)} were in sync than min.insync.replicas demands, "
        "and the client does not retry",
        with_account(loss, found[:20]),
        "bring the replicas back, and use default retries",
    )


def gave_up_at_once(loss: Loss) -> Explained | None:
    """A passing error, but `retries` is 0: the first one is the last."""
    if loss.settings.get("retries") != "0":
        return None
    if not any(sign in loss.finding.error for sign in _RETRIABLE):
        return None
    return Explained(
        Cause.RETRIES_EXHAUSTED,
        Confidence.SAME_CLIENT,
        f"retries=0: {loss.finding.error} was not tried again",
        with_account(loss, _of_client(loss, _FAILURES)),
        "use default retries",
    )


def dropped_at_close(loss: Loss) -> Explained | None:
    """The client logged that it was closed with records unsent."""
    found = _of_client(loss, ("dropped_at_close",))
    if not found:
        return None
    return Explained(
        Cause.DROPPED_AT_CLOSE,
        Confidence.SAME_CLIENT,
        "the producer was closed with records still unsent",
        keys(found),
        "flush before closing, with a time-out that suffices",
    )


def producer_crashed(loss: Loss) -> Explained | None:
    """Its process ended without reporting an outcome."""
    return Explained(
        Cause.PRODUCER_CRASH,
        Confidence.SAME_CLIENT,
        "the producer's process ended with the record still in its buffer",
        with_account(loss),
        "let the application send again what was not acknowledged before it ended",
    )


GIVEN_UP: tuple[Rule, ...] = (
    refused_by_error,
    delivery_timed_out,
    retries_exhausted,
    not_enough_replicas,
    gave_up_at_once,
    dropped_at_close,
)


def _of_client(loss: Loss, kinds: tuple[str, ...]) -> list[Fact]:
    """Facts of the loss's own client and host; of any of the topic where they are not known."""
    return [
        f
        for f in loss.near(*kinds)
        if (loss.client_id in (None, "") or f.client_id in (None, loss.client_id))
        and (loss.host is None or f.host in (None, loss.host))
    ]


def _most_common(names: list[str]) -> str | None:
    return max(sorted(set(names)), key=names.count, default=None)
