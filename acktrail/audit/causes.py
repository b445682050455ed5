"""Why ids were lost: the rules for each state that is a loss, in order.

Rules of the log ask which change of leader cut the lost offset off (`leaders`), then what kind it
was. Confidence `exact` means that a row of the evidence names the id, or partition, offset and
epoch, and that nothing else was needed for the loss.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace

from acktrail.audit import client_causes, group_causes, log_causes
from acktrail.audit.explained import Explained, Rule
from acktrail.audit.loss_evidence import Loss
from acktrail.contracts.vocabulary import Cause, Confidence, State

RULES: Mapping[State, tuple[Rule, ...]] = {
    State.LOST_AFTER_ACK: log_causes.RULES,
    State.LOST_UNACKED: (client_causes.fire_and_forget,),
    State.REJECTED: client_causes.GIVEN_UP,
    State.LOST_INDETERMINATE: client_causes.GIVEN_UP,
    State.LOST_IN_CRASH: (client_causes.dropped_at_close, client_causes.producer_crashed),
    State.UNACCOUNTED: (client_causes.dropped_at_close,),
    State.SKIPPED_BY_CONSUMER: group_causes.SKIPPED,
    State.EXPIRED_BEFORE_READ: group_causes.EXPIRED,
}
"""The rules for each state that is a loss, in order."""

LOSSES = tuple(RULES)


def cause_of(loss: Loss) -> Explained:
    """The first rule that applies."""
    for rule in RULES[State(loss.finding.state)]:
        found = rule(loss)
        if found is not None:
            unproved = found.confidence is Confidence.EXACT and not found.evidence
            return replace(found, confidence=Confidence.SAME_CLIENT) if unproved else found
    return Explained(Cause.UNKNOWN, Confidence.NONE, "unknown; no evidence shows why")
