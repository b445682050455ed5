"""Whether the agents read what they were told to read."""

from __future__ import annotations

from collections.abc import Mapping
from datetime import datetime
from typing import Any, ClassVar

import pandas as pd

from acktrail.alerts.finding import Finding
from acktrail.contracts.vocabulary import Outcome, SourceState
from expectations.domain.expectation import DomainExpectation, clock

Row = Mapping[str, Any]

_ONCE = "agent --once"
_WHAT_TO_DO = {
    SourceState.FAILING: "The agent tries again by itself; look at the error.",
    SourceState.HELD: "Stop one of the two processes.",
    SourceState.STOPPED: "Fix what the error names, then start the agent again.",
}


class _OfSources(DomainExpectation):
    def _with_limits(self, frame: pd.DataFrame) -> list[dict[str, Any]]:
        """The rows, each with its thresholds as durations."""
        limits = {n: pd.to_timedelta(self.limit(frame, n), unit="s") for n in self.thresholds}
        rows: list[dict[str, Any]] = frame.assign(**limits).to_dict("records")  # type: ignore[assignment]
        return rows


class ExpectEverySourceUp(_OfSources):
    """Every source that an agent has run is read, or was read lately."""

    thresholds: ClassVar[dict[str, float]] = {
        "source_down_s": 300,
        "source_silent_s": 1800,
        "once_silent_s": 7200,
        "source_retired_s": 7 * 86_400,
    }

    def findings(self, frame: pd.DataFrame) -> list[Finding]:
        """One finding for each source that is down, and for each that nobody reads any more."""
        found = (self._finding(row) for row in self._with_limits(frame))
        return [finding for finding in found if finding is not None]

    def _finding(self, row: Row) -> Finding | None:
        silent = self.asked_at - row["at"]
        if silent > row["source_retired_s"]:
            return None  # taken out of service; `acktrail agent status` still shows it
        state, once = SourceState(row["state"]), row["command"] == _ONCE
        if state in _WHAT_TO_DO:
            # A run with --once has already tried several times, and stopped needs a person.
            patient = state is not SourceState.STOPPED and not once
            if patient and self.asked_at - row["state_since_at"] < row["source_down_s"]:
                return None
            since = clock(row["state_since_at"])
            because = f"{_named(row)} is {state.value} since {since}: {row['error']}"
            because = f"{because.rstrip('.')}. {_WHAT_TO_DO[state]}"
            return self._failure(row, f"source_{state.value}", row["state_since_at"], because)
        if silent <= row["once_silent_s" if once else "source_silent_s"]:
            return None
        how = "ended" if state is SourceState.ENDED else "last reported"
        because = (
            f"{_named(row)} is not read by any agent: `acktrail {row['command']}` ({row['agent']}) "
            f"{how} at {clock(row['at'])}. Start the agent again."
        )
        return self._failure(row, "source_silent", row["at"], because)

    def _failure(self, row: Row, state: str, since: datetime, because: str) -> Finding:
        return Finding(
            outcome=Outcome.FAIL,
            cluster=row["cluster"],
            topic="",
            group="",
            state=state,
            cause=_key(row),
            starts_at=since,
            ends_at=None,
            because=because,
            keys=(_key(row),),
        )


class ExpectConfiguredInputsFound(_OfSources):
    """Every path and topic in the settings of a source is there and can be read."""

    thresholds: ClassVar[dict[str, float]] = {"unread_input_s": 600, "source_retired_s": 7 * 86_400}

    def findings(self, frame: pd.DataFrame) -> list[Finding]:
        """One finding for each source that has not found its files or topics for a while."""
        return [
            self._failure(row)
            for row in self._with_limits(frame)
            if len(row["unread"])
            and self.asked_at - row["unread_since_at"] >= row["unread_input_s"]
            and self.asked_at - row["at"] <= row["source_retired_s"]
        ]

    def _failure(self, row: Row) -> Finding:
        return Finding(
            outcome=Outcome.FAIL,
            cluster=row["cluster"],
            topic="",
            group="",
            state="inputs_not_found",
            cause=_key(row),
            starts_at=row["unread_since_at"].to_pydatetime(),
            ends_at=None,
            because=(
                f"{_named(row)} does not find {len(row['unread'])} of its configured inputs: "
                f"{'; '.join(text.rstrip('.') for text in row['unread'][:3])}. "
                "Correct the settings, or grant access."
            ),
            count=len(row["unread"]),
            keys=tuple(row["unread"]),
        )


def _key(row: Row) -> str:
    return f"{row['source']}@{row['host']}" if row["host"] else str(row["source"])


def _named(row: Row) -> str:
    where = f" on {row['host']}" if row["host"] else ""
    return f"Source {row['source']} ({row['kind']}{where})"
