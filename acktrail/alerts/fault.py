"""Which fault a finding is a sign of: the part of a page's identity that its findings share.

A finding that names its cause belongs to the fault behind that cause: brokers that do not take or
keep records, sends that are refused until somebody changes something, a consumer group that
misses records. A rate that is too high names no cause: it is a sign of whatever else is wrong.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final, Protocol

from acktrail.contracts.vocabulary import Cause, State
from acktrail.logs.kafka_errors import catalogue
from acktrail.retries.state import RUNNING_OUT

BROKERS: Final = "brokers"
"""Brokers do not take records, or do not keep them: one fault of the cluster, whatever topics."""
REFUSED: Final = "sends_refused"
"""Sends to one topic are refused until somebody changes something."""
PRODUCER: Final = "producer_ended"
"""A producer of one topic ended and took records with it."""
CONSUMERS: Final = "consumers"
"""One group misses records, or reads far too many again."""
LEDGER: Final = "accounts"
"""The accounts of one topic are not as they must be."""
UNEXPLAINED: Final = "unexplained"
"""Messages are concerned, and nothing found so far says why."""

BROKER_STATES: Final = (
    *("partitions_offline", "under_min_isr", "under_replicated"),
    *("failed_produce_requests", "failed_fetch_requests", "isr_flapping"),
)
"""States of the findings of checks on brokers."""
WEAK_STATES: Final = ("error_rate_high", "retry_rate_high", "failed_produce_unexplained")
"""States of findings that measure messages in trouble and name no cause."""

_LOSSES = frozenset(
    state.value
    for state in State
    if state.value.startswith("lost_") or state in (State.REJECTED, State.UNACCOUNTED)
)
_MISSED = (State.SKIPPED_BY_CONSUMER.value, State.EXPIRED_BEFORE_READ.value, "redelivered")
_ACCOUNTS = ("books_do_not_balance", "duplicated", "out_of_order")
_BY_STATE: dict[str, str] = {
    **dict.fromkeys(WEAK_STATES, UNEXPLAINED),
    **dict.fromkeys((RUNNING_OUT, *BROKER_STATES), BROKERS),
    **dict.fromkeys(_ACCOUNTS, LEDGER),
}
_BY_CAUSE: dict[str, str] = {
    Cause.RECORD_TOO_LARGE: REFUSED,
    Cause.AUTHORIZATION: REFUSED,
    Cause.SERIALIZATION: REFUSED,
    Cause.DROPPED_AT_CLOSE: PRODUCER,
    Cause.PRODUCER_CRASH: PRODUCER,
    Cause.UNKNOWN: UNEXPLAINED,
}
"""Causes of losses that are not the brokers'."""
_OF_BROKERS = ("leadership", "timeout", "network", "replication", "storage", "buffer", "server")
_OF_SEQUENCES = ("sequence", "fenced", "transaction")


@dataclass(frozen=True, order=True)
class FaultIdentity:
    """A kind of fault, and what it is about: a topic, a group, a source; empty: the cluster."""

    kind: str
    subject: str = ""

    @property
    def name(self) -> str:
        """As it stands in labels and in the outbox."""
        return f"{self.kind}:{self.subject}" if self.subject else self.kind

    @staticmethod
    def named(name: str) -> FaultIdentity:
        """The fault whose name is *name*."""
        kind, _, subject = name.partition(":")
        return FaultIdentity(kind, subject)


class FaultSign(Protocol):
    """What names a fault: a finding, a symptom, or an alert of an earlier version."""

    @property
    def state(self) -> str:
        """What is wrong."""

    @property
    def cause(self) -> str:
        """Why, where it is known."""

    @property
    def topic(self) -> str:
        """Where; empty: no topic of its own."""

    @property
    def group(self) -> str:
        """Of which consumer group; empty: of none."""


def fault_of(sign: FaultSign) -> FaultIdentity:
    """The fault behind *sign*."""
    state, cause, topic = sign.state, sign.cause, sign.topic
    if state in _MISSED:
        return FaultIdentity(CONSUMERS, sign.group or topic)
    if state in _LOSSES:
        kind = _BY_CAUSE.get(cause, BROKERS)
    elif state == "non_retriable_error":
        kind = _kind_of_error(cause)
    elif state in _BY_STATE:
        kind = _BY_STATE[state]
    else:
        return FaultIdentity(state, "/".join(part for part in (topic, sign.group, cause) if part))
    return FaultIdentity(kind) if kind in (BROKERS, UNEXPLAINED) else FaultIdentity(kind, topic)


def _kind_of_error(error: str) -> str:
    known = catalogue().get(error)
    if known is None or known.category in _OF_SEQUENCES:
        return UNEXPLAINED  # a broken sequence is what is left of expired batches
    return BROKERS if known.category in _OF_BROKERS else REFUSED
