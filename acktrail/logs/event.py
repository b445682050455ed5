"""What a log record says: one event, with every field that its text gives, and no other."""

from __future__ import annotations

from dataclasses import asdict, dataclass
from typing import Any

PRODUCER, CONSUMER, BROKER = "producer", "consumer", "broker"

KINDS: dict[str, tuple[str, str]] = {
    # kind: (side, what happened)
    "retry": (PRODUCER, "A batch was refused and put back; `attempts_left` remain after it."),
    "split_retry": (PRODUCER, "A batch was too large, split, and its halves sent again."),
    "expired": (PRODUCER, "Records were given up because their time ran out."),
    "send_failed": (PRODUCER, "Records were given up because of an error."),
    "invalid_metadata": (PRODUCER, "The broker asked is not the right one; metadata is renewed."),
    "connection_failure": (PRODUCER, "A connection was lost, refused or timed out."),
    "fatal_sequence": (PRODUCER, "Sequence or epoch broken, or fenced: the producer cannot go on."),
    "sequence_reset": (
        PRODUCER,
        "Unacknowledged batches expired; the producer starts a new epoch.",
    ),
    "dropped_at_close": (PRODUCER, "The producer was closed with records still unsent."),
    "late_success": (PRODUCER, "A batch reported as failed was stored after all."),
    "config_block": (PRODUCER, "The settings a producer started with."),
    "metadata_error": (PRODUCER, "A metadata request was answered with an error."),
    "idempotence_disabled": (PRODUCER, "Idempotence was switched off by another setting."),
    "reordered": (PRODUCER, "A retried batch was put back in front of later ones."),
    "client_version": (PRODUCER, "The version of a Java client."),
    "broker_append_error": (BROKER, "A produce request's records were not appended."),
    "acks0_close": (BROKER, "A producer with acks=0 was cut off: its records are lost."),
    "isr_shrink": (BROKER, "A replica fell out of the in-sync set."),
    "isr_expand": (BROKER, "A replica came back into the in-sync set."),
    "isr_updated": (BROKER, "The in-sync set was changed."),
    "truncation": (BROKER, "A replica cut its log; `detail` says whether committed records went."),
    "high_watermark_back": (BROKER, "A replica's high watermark went back; its log was not cut."),
    "unclean_election": (BROKER, "A replica that may lack committed records became leader."),
    "last_known_leader": (BROKER, "The last leader leads again; nobody was in sync meanwhile."),
    "leader_change": (BROKER, "Another change of a partition that still recovers."),
    "leader_recovering": (BROKER, "This broker leads, and may lack committed records."),
    "leader_start": (BROKER, "This broker leads from a leader epoch and an offset on."),
    "log_created": (BROKER, "This broker created the log of a partition: it was not there."),
    "poll_timeout": (CONSUMER, "A consumer did not poll within max.poll.interval.ms."),
    "leave_group": (CONSUMER, "A consumer left its group."),
    "rebalance": (CONSUMER, "Partitions were given, taken or lost."),
    "offset_reset": (CONSUMER, "A consumer's position was moved without its doing."),
    "commit_failed": (CONSUMER, "An offset commit was refused."),
    "consumer_config_block": (CONSUMER, "The settings a consumer started with."),
}

LOSSES = frozenset(
    (
        "expired",
        "send_failed",
        "fatal_sequence",
        "sequence_reset",
        "dropped_at_close",
        "broker_append_error",
        "acks0_close",
        "truncation",
        "unclean_election",
    )
)
"""Kinds by which records are lost, or may be: their texts are never passed over in silence."""

BACKGROUND = frozenset(
    kind
    for kind, (side, _) in KINDS.items()
    if side == CONSUMER
    or kind in {"metadata_error", "idempotence_disabled", "reordered", "client_version"}
    or kind in {"isr_expand", "isr_updated", "leader_change", "leader_start", "log_created"}
)
"""Kinds that alone say nothing of a record's fate: `acktrail read` shows them on request."""


@dataclass(frozen=True, slots=True)
class Event:
    """One event. A field is None where the text does not give it."""

    kind: str
    detail: str | None = None
    """Which text it was: finer than the kind."""
    level: str | None = None
    ts: str | None = None
    """As printed, in ISO form: with an offset only where one was printed."""
    client_id: str | None = None
    transactional_id: str | None = None
    topic: str | None = None
    partition: int | None = None
    correlation_id: int | None = None
    attempts_left: int | None = None
    error: str | None = None
    message: str | None = None
    records: int | None = None
    elapsed_ms: int | None = None
    node: int | None = None
    group: str | None = None
    broker: int | None = None
    topic_id: str | None = None
    offset: int | None = None
    high_watermark: int | None = None
    leader: int | None = None
    leader_epoch: int | None = None
    isr_before: tuple[int, ...] | None = None
    isr_after: tuple[int, ...] | None = None
    logger: str | None = None
    thread: str | None = None
    version: str | None = None
    """Version of the client, where the text itself says it."""
    settings: dict[str, str] | None = None
    """The settings of a configuration block, as printed."""

    @property
    def side(self) -> str:
        """Who speaks: producer, consumer or broker."""
        return KINDS[self.kind][0]

    def as_dict(self) -> dict[str, Any]:
        """The fields as plain values."""
        return asdict(self)


@dataclass(frozen=True, slots=True)
class UnreadRecord:
    """A record that looks like evidence and could not be read."""

    reason: str
    """The words that looked like evidence."""


Reading = Event | UnreadRecord | None
"""What a record is: an event, unreadable evidence, or nothing of interest."""
