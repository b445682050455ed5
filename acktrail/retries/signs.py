"""What the budget rules look at: signs of retrying, and the settings they are judged by."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Final

LONGEST: Final = timedelta(minutes=30)
"""No chain is followed for longer, whatever the delivery timeout: it bounds what is reread."""

PRINTED_WITHIN: Final = timedelta(milliseconds=50)
"""So soon after an answer came is its line printed; the backoff began with the answer."""

RETRY: Final = "retry"
SPLIT_RETRY: Final = "split_retry"
CONNECTION_FAILURE: Final = "connection_failure"
QUEUE_TIME: Final = "queue_time"
EXPIRED: Final = "expired"
SEND_FAILED: Final = "send_failed"
SEQUENCE_RESET: Final = "sequence_reset"
FATAL_SEQUENCE: Final = "fatal_sequence"
DROPPED_AT_CLOSE: Final = "dropped_at_close"
INVALID_METADATA: Final = "invalid_metadata"
"""Printed after a retry line; alone where a batch was not retried."""
NO_LEADER: Final = "no_leader"
"""The cluster answered that the partition has no leader."""

OPENING_KINDS: Final = frozenset({RETRY, SPLIT_RETRY, CONNECTION_FAILURE, QUEUE_TIME})
FAILURES: Final = frozenset(
    {EXPIRED, SEND_FAILED, SEQUENCE_RESET, FATAL_SEQUENCE, DROPPED_AT_CLOSE}
)
"""Each says that records were given up."""
ENDING_KINDS: Final = FAILURES | {INVALID_METADATA}

FATAL_ABORT: Final = "fatal_abort"
_UNCOUNTED: Final = frozenset({FATAL_ABORT, "closed_forcefully", "transaction_error_state"})

# The request waited for its whole time-out, or its connection broke, before the line was printed.
_WAITED: Final = frozenset({"REQUEST_TIMED_OUT", "NETWORK_EXCEPTION"})
# A new leader is tried at once since 3.7 (KAFKA-15415): no backoff can be counted on.
_LEADER_MOVED: Final = frozenset(
    {"NOT_LEADER_OR_FOLLOWER", "NOT_LEADER_FOR_PARTITION", "FENCED_LEADER_EPOCH"}
)


@dataclass(frozen=True)
class Sign:
    """One event of one client: what is needed of a row of `producer_events`."""

    key: str
    kind: str
    at: datetime
    topic: str = ""
    partition: int = -1
    correlation_id: int | None = None
    attempts_left: int | None = None
    error: str | None = None
    retriable: bool | None = None
    category: str | None = None
    node: int | None = None
    records: int | None = None
    elapsed_ms: int | None = None
    origin: str = ""
    """The file it was read from: two processes may share a client id, not a file."""
    detail: str | None = None
    """Which text it was: finer than the kind."""

    @property
    def drops_all(self) -> bool:
        """Whether the client let go of every batch it held: closed by force, or failed for good.

        Kafka clients, Sender and RecordAccumulator.abortIncompleteBatches.
        """
        return self.kind == DROPPED_AT_CLOSE or self.detail == FATAL_ABORT

    @property
    def uncounted(self) -> bool:
        """Whether batches may have gone that no record-error-total ever counts."""
        return self.drops_all or self.kind == FATAL_SEQUENCE or self.detail in _UNCOUNTED

    @property
    def waited(self) -> bool:
        """Whether the request may have waited for its time-out before this line."""
        return self.error in _WAITED

    @property
    def leader_moved(self) -> bool:
        """Whether the client may retry at once at another leader."""
        return self.error in _LEADER_MOVED


@dataclass(frozen=True)
class RetrySettings:
    """The settings that bound a retry; None is "not known"."""

    known_from: str
    """Where they were read: evidence key, or the name of the inventory."""
    since: datetime | None = None
    """When the client started with them; None: at all times."""
    until: datetime | None = None
    """For those of an audit session, heard of since *since*: when it was last heard of."""
    retries: int | None = None
    delivery_timeout_ms: int | None = None
    request_timeout_ms: int | None = None
    linger_ms: int | None = None
    retry_backoff_ms: int | None = None
    retry_backoff_max_ms: int | None = None
    client_version: str | None = None
    origin: str = ""

    @property
    def version(self) -> tuple[int, int] | None:
        """Major and minor of the client, where known."""
        found = re.match(r"(\d+)\.(\d+)", self.client_version or "")
        return (int(found[1]), int(found[2])) if found else None

    @property
    def timeless(self) -> bool:
        """Whether this client is too old to have a delivery timeout (before 2.1)."""
        return self.version is not None and self.version < (2, 1)


NOTHING_KNOWN: Final = RetrySettings(known_from="")


def settings_in_force(
    known: Sequence[RetrySettings], at: datetime, origin: str = ""
) -> RetrySettings:
    """The settings a client ran with at *at*: its own file's last start before, else any's.

    An audit session serves where no start was printed, and settings without a time (an inventory)
    where neither is known.
    """
    started = [s for s in known if s.until is None and s.since is not None and s.since <= at]
    own = [s for s in started if origin and s.origin == origin]
    chosen = own or started
    if chosen:
        return max(chosen, key=lambda s: (s.since or at, s.known_from))
    audited = _audited_then(known, at)
    if audited is not None:
        return audited
    timeless = sorted((s for s in known if s.since is None), key=lambda s: s.known_from)
    return timeless[0] if timeless else NOTHING_KNOWN


def _audited_then(known: Sequence[RetrySettings], at: datetime) -> RetrySettings | None:
    """The audit session of then: the last that was heard of by then, else the first after.

    A session may be heard of late, and be silent while it retries: for as long as a chain lives.
    """
    heard = sorted(
        (s.since, s.known_from, s)
        for s in known
        if s.since is not None
        and s.until is not None
        and s.since - LONGEST <= at <= s.until + LONGEST
    )
    before = [s for since, _, s in heard if since <= at]
    return before[-1] if before else heard[0][2] if heard else None


def milliseconds(count: float) -> timedelta:
    """*count* milliseconds."""
    return timedelta(milliseconds=count)
