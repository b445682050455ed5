"""Silver by the counts of the runs that made it: every row is written, or dropped for a reason."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, ClassVar

import pandas as pd

from acktrail.alerts.finding import Finding
from acktrail.contracts.vocabulary import Outcome
from expectations.domain.expectation import DomainExpectation, instant, keys_of, number

_KEY = ("job", "run")


class _CountsExpectation(DomainExpectation):
    def per_job(self, runs: pd.DataFrame, column: str, state: str, said: str) -> list[Finding]:
        """One finding for each job among *runs*, counting *column*."""
        return [
            Finding(
                outcome=Outcome.FAIL,
                cluster="",
                topic="",
                group="",
                state=state,
                cause=str(job),
                starts_at=instant(rows["as_of"].min(), self.asked_at),
                ends_at=None,
                because=f"{number(int(rows[column].sum()), 'row')} {said} {job} in "
                f"{number(len(rows), 'run')}.",
                count=int(rows[column].sum()),
                keys=keys_of(rows, _KEY),
            )
            for job, rows in runs.groupby("job")
        ]


class ExpectEveryRowAccountedFor(_CountsExpectation):
    """No run of a map wrote and dropped fewer rows than it read."""

    def findings(self, frame: pd.DataFrame) -> list[Finding]:
        """One finding for each job in which rows vanished."""
        dropped = frame["dropped"].map(lambda counts: sum(_counts(counts).values()))
        vanished = (frame["rows_in"] - frame["rows_out"] - dropped).astype("int64")
        wrong = frame.assign(vanished=vanished)[(frame["shape"] == "map") & (vanished > 0)]
        return self.per_job(wrong, "vanished", "rows_vanished", "vanished in")


class ExpectNothingUnreadableDropped(_CountsExpectation):
    """No run dropped rows because they could not be read."""

    thresholds: ClassVar[dict[str, float]] = {"unreadable_rows": 0}

    def findings(self, frame: pd.DataFrame) -> list[Finding]:
        """One finding for each job that could not read its input."""
        unread = frame["dropped"].map(
            lambda counts: sum(n for reason, n in _counts(counts).items() if _unintended(reason))
        )
        counted = frame.assign(unread=unread.astype("int64"))
        wrong = counted[counted["unread"] > self.limit(frame, "unreadable_rows")]
        return self.per_job(wrong, "unread", "rows_unreadable", "could not be read by")


def _counts(dropped: Any) -> dict[str, int]:
    given = dropped if isinstance(dropped, Mapping) else dict(dropped or ())
    return {str(reason): int(n) for reason, n in given.items()}


def _unintended(reason: str) -> bool:
    return reason.startswith("unread")
