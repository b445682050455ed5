"""Why a state was given: the clause a person reads, and what is still missing."""

from __future__ import annotations

from enum import StrEnum

from acktrail.contracts.vocabulary import Cause


class Reason(StrEnum):
    """The ground of a verdict."""

    NONE = "none"
    # pending
    NOT_SCANNED = "not_scanned"
    OUTCOME_OPEN = "outcome_open"
    NO_COMPLETE_SCAN = "no_complete_scan"
    GROUP_BEHIND = "group_behind"
    # inconclusive
    RETENTION = "retention"
    COMPACTED = "compacted"
    TOPIC_RECREATED = "topic_recreated"
    TRANSACTIONAL = "transactional"
    UNREPORTED_RANGE = "unreported_range"
    # decided
    SCANNED_PAST = "scanned_past"
    BEYOND_END = "beyond_end"
    BEYOND_END_CLOCK = "beyond_end_clock"
    COMPLETE_SCAN = "complete_scan"
    TOLD = "told"
    JUMPED_OVER = "jumped_over"
    COMMITTED_UNPROCESSED = "committed_unprocessed"
    EXPIRED = "expired"


CLAUSES: dict[Reason, str] = {
    Reason.NONE: "",
    Reason.NOT_SCANNED: "no scan since the ack has read past its offset",
    Reason.OUTCOME_OPEN: "its producer has not reported an outcome yet",
    Reason.NO_COMPLETE_SCAN: "the topic has not been scanned to its end late enough to tell",
    Reason.GROUP_BEHIND: "the group has not come that far",
    Reason.RETENTION: "retention took its offset before a scan",
    Reason.COMPACTED: "the topic is compacted, so that absence proves nothing",
    Reason.TOPIC_RECREATED: "the topic was deleted and made again",
    Reason.TRANSACTIONAL: "transactional sends are not judged",
    Reason.UNREPORTED_RANGE: "the group moved past it, but no audited member reported reading it",
    Reason.SCANNED_PAST: "a scan that began after the ack read past its offset and did not find it",
    Reason.BEYOND_END: "the log ends below its offset under a higher leader epoch",
    Reason.BEYOND_END_CLOCK: (
        "the log ended below its offset twice under one leader epoch, longer apart than replicas "
        "may lag (a clock decided)"
    ),
    Reason.COMPLETE_SCAN: (
        "a scan of the whole log, begun after every deadline of the send, found it nowhere "
        "(a clock decided)"
    ),
    Reason.TOLD: "the client reported an error that means it was not written",
    Reason.JUMPED_OVER: "a member of the group jumped over its offset",
    Reason.COMMITTED_UNPROCESSED: "the group committed past it before it was processed",
    Reason.EXPIRED: "retention took it before the group read it",
}

_SAYS_THE_GROUND = frozenset(
    {Cause.CONSUMER_RESET, Cause.COMMIT_BEFORE_PROCESSING, Cause.RETENTION, Cause.UNKNOWN}
)
"""Causes whose sentence has the ground of the state in it."""


def with_ground(cause: Cause, because: str, reason: str) -> str:
    """Why ids were lost, and the ground of their state where it adds something."""
    return because if cause in _SAYS_THE_GROUND else f"{because} ({CLAUSES[Reason(reason)]})"
