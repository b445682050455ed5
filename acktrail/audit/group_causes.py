"""Why a group did not get what was in the log."""

from __future__ import annotations

from acktrail.audit.explained import Explained, Rule, place, with_account
from acktrail.audit.loss_evidence import Fact, Loss
from acktrail.audit.reasons import Reason
from acktrail.contracts.vocabulary import Cause, Confidence

_JUMPS = (Reason.JUMPED_OVER, Reason.RESET_WHILE_EMPTY)


def commit_before_processing(loss: Loss) -> Explained | None:
    """Rule 1: committed, and the process ended before it was done."""
    if loss.finding.reason != Reason.COMMITTED_UNPROCESSED:
        return None
    return Explained(
        Cause.COMMIT_BEFORE_PROCESSING,
        Confidence.EXACT,
        f"{loss.group} committed past {_offsets(loss)} of {place(loss)} before processing them",
        with_account(loss),
        "commit after processing",
    )


def consumer_reset(loss: Loss) -> Explained | None:
    """Rule 2: the group's position was moved past it."""
    if loss.finding.reason not in _JUMPS:
        return None
    empty = loss.finding.reason == Reason.RESET_WHILE_EMPTY
    found = _resets(loss)
    after = loss.finding.last_offset
    named = any(f.offset is not None and after is not None and f.offset == after + 1 for f in found)
    who = (
        f"the commits of {loss.group} were moved while it had no member,"
        if empty
        else f"a member of {loss.group} jumped"
    )
    return Explained(
        Cause.CONSUMER_RESET,
        Confidence.EXACT if named else Confidence.SAME_CLIENT,
        f"{who} over {_offsets(loss)} of {place(loss)}",
        with_account(loss, found),
        "reset the group to the first of these offsets, to read them now",
    )


def retention(loss: Loss) -> Explained | None:
    """Rule 3: deleted by retention before the group came."""
    return Explained(
        Cause.RETENTION,
        Confidence.EXACT if loss.finding.last_offset is not None else Confidence.SAME_CLIENT,
        f"retention deleted {_offsets(loss)} of {place(loss)} before {loss.group} read them",
        with_account(loss),
        "a longer retention.ms, or a group that keeps up",
    )


SKIPPED: tuple[Rule, ...] = (commit_before_processing, consumer_reset)
EXPIRED: tuple[Rule, ...] = (retention,)


def _resets(loss: Loss) -> list[Fact]:
    """Lines of the group about the partition, that moved the position past the last lost offset.

    By the offset; a consumer's clock is its own.
    """
    after = loss.finding.last_offset
    lines = [
        f
        for f in loss.facts
        if f.kind == "offset_reset"
        and f.group == loss.group
        and f.partition is not None
        and f.partition == loss.finding.partition
    ]
    if after is None:
        return []
    moved = [f for f in lines if f.offset is not None and f.offset > after]
    nearest = min((f.offset for f in moved if f.offset is not None), default=None)
    return [f for f in moved if f.offset == nearest]


def _offsets(loss: Loss) -> str:
    first, last = loss.finding.first_offset, loss.finding.last_offset
    if first is None:
        return "its offset"
    return f"offset {first}" if first == last else f"offsets {first} to {last}"
