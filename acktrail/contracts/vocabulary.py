"""The closed lists of words that tables use."""

from __future__ import annotations

from enum import StrEnum


class Tier(StrEnum):
    """Where a set of ids, or a range of offsets, was seen."""

    SENT = "sent"
    ACKED = "acked"
    ACKED_NO_OFFSET = "acked_no_offset"
    FAILED = "failed"
    INDETERMINATE = "indeterminate"
    SENT_UNACKED = "sent_unacked"
    ABORTED = "aborted"
    COMMITTED = "committed"
    """Part of a transaction that was committed; the acks are reported apart."""
    ACKED_OFFSETS = "acked_offsets"
    """No ids: offsets at which the session was acked, where the client is not told the id."""
    IN_LOG = "in_log"
    DELIVERED = "delivered"
    SCANNED = "scanned"
    """No ids: the offset range that a scan has read, whatever it found."""
    CONSUMED = "consumed"
    """No ids: the offset range that a group's member has read."""
    HEARTBEAT = "heartbeat"
    """No ids: the reporter is alive, with the session's settings."""


PRODUCER_TIERS = (
    Tier.SENT,
    Tier.ACKED,
    Tier.ACKED_NO_OFFSET,
    Tier.FAILED,
    Tier.INDETERMINATE,
    Tier.SENT_UNACKED,
    Tier.ABORTED,
    Tier.COMMITTED,
)
"""Tiers of ids that a producer reports itself: handed over, then what became of them."""


class State(StrEnum):
    """What became of an id, for one group. The order is the order of decision."""

    DELIVERED = "delivered"
    NOT_OWED = "not_owed"
    """In the log below the first offset the group was given: the group owes none of them."""
    SKIPPED_BY_CONSUMER = "skipped_by_consumer"
    EXPIRED_BEFORE_READ = "expired_before_read"
    PENDING = "pending"
    LOST_AFTER_ACK = "lost_after_ack"
    LOST_UNACKED = "lost_unacked"
    REJECTED = "rejected"
    LOST_INDETERMINATE = "lost_indeterminate"
    LOST_IN_CRASH = "lost_in_crash"
    ABORTED = "aborted"
    UNACCOUNTED = "unaccounted"
    INCONCLUSIVE = "inconclusive"


class Cause(StrEnum):
    """Why ids were lost; strongest evidence first."""

    TRUNCATED = "truncated"
    UNCLEAN_ELECTION = "unclean_election"
    LOG_DIRECTORY_LOST = "log_directory_lost"
    ACKS_1_LEADER_CHANGE = "acks_1_leader_change"
    RETRIES_EXHAUSTED = "retries_exhausted"
    DELIVERY_TIMEOUT = "delivery_timeout"
    NOT_ENOUGH_REPLICAS = "not_enough_replicas"
    RECORD_TOO_LARGE = "record_too_large"
    AUTHORIZATION = "authorization"
    SERIALIZATION = "serialization"
    METADATA_TIMEOUT = "metadata_timeout"
    BUFFER_EXHAUSTED = "buffer_exhausted"
    DROPPED_AT_CLOSE = "dropped_at_close"
    PRODUCER_CRASH = "producer_crash"
    FIRE_AND_FORGET = "fire_and_forget"
    CONSUMER_RESET = "consumer_reset"
    COMMIT_BEFORE_PROCESSING = "commit_before_processing"
    RETENTION = "retention"
    UNKNOWN = "unknown"


class Confidence(StrEnum):
    """How near the evidence is to the loss."""

    EXACT = "exact"
    """A row names the id, or partition, offset and epoch; nothing else was needed for the loss."""
    SAME_CLIENT = "same_client"
    """Same client, partition and time."""
    SAME_BROKER = "same_broker"
    """Same broker and time."""
    NONE = "none"


class Grade(StrEnum):
    """How bad a failed check is."""

    WARN = "warn"
    FAIL = "fail"


class Outcome(StrEnum):
    """What a check found; missing evidence is never a pass."""

    PASS = "pass"
    FAIL = "fail"
    UNDECIDED = "undecided"


class SourceState(StrEnum):
    """The state of one source in an agent."""

    UP = "up"
    """It is read."""
    FAILING = "failing"
    """It failed; the agent tries again, or the next run with --once does."""
    HELD = "held"
    """Another process reads it; this one waits until that process has ended."""
    STOPPED = "stopped"
    """It cannot be read until a person changes something."""
    ENDED = "ended"
    """The agent read it and ended normally."""


ELECTIONS = ("unclean_election", "last_known_leader", "leader_change")
"""Kinds of broker events that controllers print about an election of a leader."""
