"""Messages that are gone: one finding for each incident that the audits proved."""

from __future__ import annotations

from typing import Any, ClassVar

import pandas as pd

from acktrail.alerts.finding import Finding, first_keys
from acktrail.contracts.vocabulary import Outcome, State
from expectations.domain.expectation import DomainExpectation, instant, texts


class _ExpectNone(DomainExpectation):
    """No incident with one of *states*."""

    states: ClassVar[tuple[State, ...]] = ()

    def findings(self, frame: pd.DataFrame) -> list[Finding]:
        """One finding for each incident."""
        known = (frame["started_at"].isna()) | (frame["started_at"] <= pd.Timestamp(self.asked_at))
        lost = frame[frame["state"].isin([s.value for s in self.states]) & known]
        return [self._finding(row) for row in lost.to_dict("records")]

    def _finding(self, row: dict[Any, Any]) -> Finding:
        starts_at = instant(row["started_at"], self.asked_at)
        said = _sentence(row)
        what, _, why = said.partition(" Cause: ")
        fix = why.partition(" Fix: ")[2].partition(" Proof: ")[0]
        partitions = row.get("partitions")
        return Finding(
            outcome=Outcome.FAIL,
            cluster=row["cluster"],
            topic=row["topic"],
            group=row["group"],
            state=row["state"],
            cause=row["cause"],
            starts_at=starts_at,
            ends_at=instant(row["ended_at"], starts_at),
            because=said,
            what=said.partition(" Fix: ")[0],
            past=what,
            fix=fix,
            count=int(row["ids"]),
            keys=first_keys((f"incident {row['incident']}", *row["evidence"])),
            clients=texts(row["client_ids"]),
            hosts=texts(_listed(row.get("hosts"))),
            partitions=tuple(f"{row['topic']}-{number}" for number in _listed(partitions)),
            incident=str(row["incident"]),
            loss=True,
        )


class ExpectNoLossAfterAck(_ExpectNone):
    """No message that the cluster acknowledged is gone."""

    states: ClassVar[tuple[State, ...]] = (State.LOST_AFTER_ACK,)


class ExpectNoUnaccountedMessage(_ExpectNone):
    """Something is known about every message that was sent."""

    states: ClassVar[tuple[State, ...]] = (State.UNACCOUNTED,)


class ExpectNoMessageLost(_ExpectNone):
    """No message was lost before it was acknowledged."""

    states: ClassVar[tuple[State, ...]] = (
        State.LOST_UNACKED,
        State.LOST_INDETERMINATE,
        State.LOST_IN_CRASH,
    )


class ExpectNothingSkippedOrExpired(_ExpectNone):
    """No consumer group missed a message that was in the log."""

    states: ClassVar[tuple[State, ...]] = (State.SKIPPED_BY_CONSUMER, State.EXPIRED_BEFORE_READ)


class ExpectNoMessageRejected(_ExpectNone):
    """No send was refused for good."""

    states: ClassVar[tuple[State, ...]] = (State.REJECTED,)


_WORDS = {
    State.LOST_AFTER_ACK: "were acknowledged and are gone",
    State.UNACCOUNTED: "are unaccounted for",
    State.LOST_UNACKED: "sent without acks never arrived",
    State.LOST_INDETERMINATE: "ended in doubt and never arrived",
    State.LOST_IN_CRASH: "were lost with their producer",
    State.SKIPPED_BY_CONSUMER: "were skipped",
    State.EXPIRED_BEFORE_READ: "were deleted before they were read",
    State.REJECTED: "were refused",
}
_OF_SENDS = (*ExpectNoMessageLost.states, *ExpectNoMessageRejected.states)
"""States in which the application may have been told by an error."""


def _sentence(row: dict[Any, Any]) -> str:
    """What happened, whether the application knows, and why.

    An incident says all of that; one that an earlier acktrail wrote has less.
    """
    if " Cause: " in row["because"]:
        return str(row["because"])
    ids, state = int(row["ids"]), State(row["state"])
    clients = texts(row["client_ids"])
    who = f" of {clients[0]}" if len(clients) == 1 else ""
    group = f" for group {row['group']}" if row["group"] else ""
    what = f"{ids} message{'' if ids == 1 else 's'}{who} on topic {row['topic']}{group}"
    words = _WORDS[state].replace("were", "was").replace("are ", "is ") if ids == 1 else None
    cause = _cause(row["because"]).rstrip(".")
    return f"{what} {words or _WORDS[state]}.{_told(row, state)} Cause: {cause}."


def _listed(values: Any) -> list[Any]:
    """A list column; an earlier acktrail wrote none."""
    return [] if values is None or values is pd.NaT else list(values)


def _told(row: dict[Any, Any], state: State) -> str:
    """Whether the application received an error, as the row has it."""
    if state not in _OF_SENDS:
        return ""
    if row["told"] is True:
        return " The application got an error."
    if int(row["events"]) > 1:
        return " The application got no error for some of them."
    return " The application got no error."


def _cause(because: str) -> str:
    """The cause alone: an incident's sentence begins with the counts that were given already."""
    counted, colon, cause = because.partition(": ")
    return cause if colon and counted[:1].isdigit() else because
