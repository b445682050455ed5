"""Plain words for states, counts and times."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta

from acktrail.contracts.vocabulary import State
from acktrail.retries.state import BudgetState

LOST_WORDS = {
    State.LOST_AFTER_ACK.value: "acknowledged, then gone",
    State.LOST_UNACKED.value: "sent with acks=0, not stored",
    State.REJECTED.value: "not stored, the application got an error",
    State.LOST_INDETERMINATE.value: "not stored, the outcome was unclear to the client",
    State.LOST_IN_CRASH.value: "lost when the producer ended",
    State.UNACCOUNTED.value: "not stored, no outcome reported",
    State.SKIPPED_BY_CONSUMER.value: "skipped by a group",
    State.EXPIRED_BEFORE_READ.value: "deleted before a group read them",
    State.PENDING.value: "not decided yet",
    State.INCONCLUSIVE.value: "cannot be decided",
    State.ABORTED.value: "in aborted transactions",
    State.NOT_OWED.value: "before the group's first offset",
    State.DELIVERED.value: "delivered",
}
GUARANTEES = {
    "none": "none: acks=1 can lose acknowledged messages",
    "at_most_once": "at most once",
    "at_least_once": "at least once",
    "exactly_once_per_partition": "exactly once per partition",
}
BUDGET_WORDS = {
    BudgetState.EXHAUSTED: "used up",
    BudgetState.CRITICAL: "critical",
    BudgetState.BURNING: "retrying",
    BudgetState.UNKNOWN: "retrying, limit not known",
    BudgetState.QUIET: "quiet: answered, or waiting",
    BudgetState.ENDED_UNKNOWN: "over, outcome not known",
    BudgetState.RESTARTED: "restarted",
    BudgetState.RECOVERED: "recovered",
}


def count(number: int, noun: str, plural: str = "") -> str:
    """`1 message`, `2,000 messages`."""
    return f"{number:,} {noun if number == 1 else plural or noun + 's'}"


def moment(at: datetime | None) -> str:
    """To the second, in UTC."""
    return "not known" if at is None else f"{at.astimezone(UTC):%Y-%m-%d %H:%M:%S}Z"


def clock(at: datetime | None) -> str:
    """The time of day to the millisecond, in UTC."""
    if at is None:
        return "not known"
    return f"{at.astimezone(UTC):%H:%M:%S.%f}"[:-3] + "Z"


def span(length: timedelta) -> str:
    """`38 s`, `12 min`, `3.5 h`, `2 days`."""
    seconds = max(0.0, length / timedelta(seconds=1))
    if seconds < 120:
        return f"{seconds:.0f} s"
    if seconds < 7200:
        return f"{seconds / 60:.0f} min"
    if seconds < 172_800:
        return f"{seconds / 3600:.1f} h"
    return f"{seconds / 86400:.0f} days"


def rate(value: float | None) -> str:
    """A rate per second; an empty text where it was not measured."""
    if value is None:
        return ""
    return f"{value:.3g}/s" if value < 1000 else f"{value:,.0f}/s"


def place(topic: str, partition: int | None) -> str:
    """topic-partition; the topic alone where the partition is not known."""
    known = partition is not None and partition >= 0
    return f"{topic}-{partition}" if known else topic
