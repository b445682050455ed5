"""The alert outbox: a verdict is written down before anybody is told, and marked once they were.

A crash at any point leaves the change in the `alerts` table, and the next run delivers it with
the same key. Every commit moves one position, so two commands at a time never open one twice.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import datetime, timedelta

from acktrail.alerts.finding import Finding
from acktrail.alerts.lifecycle import OPEN, RESOLVED, Alert, alerts_due, newest
from acktrail.contracts.arrow import rows
from acktrail.contracts.runs import ALERTS
from acktrail.crashpoints import crash_point
from acktrail.errors import AlertUndelivered, LakeBusy, PositionConflict
from acktrail.lake import Lake, Position
from expectations.notify.receiver import Receiver

APP_ID = "alerts"
STALE = timedelta(days=7)
"""A receiver that is new, or was away for longer, is not told what was resolved before."""
_ATTEMPTS = 20


@dataclass(frozen=True)
class Delivery:
    """What came of telling the receivers."""

    delivered: int
    """Changes that a receiver took for the first time."""
    waiting: int
    """Changes that some receiver has not taken."""
    problems: tuple[str, ...]

    def require(self) -> None:
        """AlertUndelivered unless every receiver has taken every change."""
        if self.problems:
            raise AlertUndelivered(
                f"{self.waiting} alert(s) stay in the outbox and are sent again by the next "
                "`acktrail check` or `acktrail alerts send`:\n  " + "\n  ".join(self.problems)
            )


class Outbox:
    """The alerts of one lake."""

    def __init__(self, lake: Lake) -> None:
        self._lake = lake

    def alerts(self) -> dict[str, Alert]:
        """The newest state of every alert, by fingerprint."""
        return newest(self._lake.read(ALERTS).to_pylist())

    def record(
        self,
        findings: Sequence[Finding],
        checks: Collection[str],
        now: datetime,
        existing: Collection[str] | None = None,
    ) -> list[Alert]:
        """Write down which alerts open, go on and are resolved; nobody is told yet.

        *checks* are those that ran, *existing* all there are (`alerts_due`).
        """
        changes = self._commit(lambda before: alerts_due(findings, before, checks, now, existing))
        crash_point("alerts recorded")
        return changes

    def deliver(
        self, receivers: Sequence[Receiver], now: datetime, interval: timedelta
    ) -> Delivery:
        """Tell every receiver what it has not taken, and what it wants to hear again."""
        delivered, problems = 0, []
        for receiver in receivers:
            due = _due(self.alerts(), receiver, now, interval)
            if not due:
                continue
            # A crash before this line: nothing was sent, the next run sends it. Between this line
            # and the mark: it was sent, and the next run sends it again under the same key.
            try:
                receiver.send(due, now)
            except AlertUndelivered as problem:
                problems.append(f"{receiver.name}: {problem}")
                continue
            crash_point("alerts sent")
            new = [a for a in due if receiver.name not in a.delivered]
            delivered += len(new)
            if new:
                self._mark({a.key for a in new}, receiver.name, now)
            crash_point("alerts marked")
        left = self.alerts()
        waiting = {
            a.key
            for r in receivers
            for a in _due(left, r, now, interval)
            if r.name not in a.delivered
        }
        return Delivery(delivered, len(waiting), tuple(problems))

    def _mark(self, keys: Collection[str], receiver: str, now: datetime) -> None:
        def taken(before: Mapping[str, Alert]) -> list[Alert]:
            return [
                replace(
                    a,
                    step=a.step + 1,
                    changed_at=now,
                    delivered=tuple(sorted({*a.delivered, receiver})),
                )
                for a in before.values()
                if a.key in keys and receiver not in a.delivered
            ]

        self._commit(taken)

    def _commit(self, decide: Callable[[Mapping[str, Alert]], list[Alert]]) -> list[Alert]:
        """Append what *decide* makes of the newest state, deciding anew if somebody was faster."""
        for _ in range(_ATTEMPTS):
            # The position is read first: a commit between the two lines is then a conflict.
            began = self._lake.position(ALERTS, APP_ID)
            changes = decide(self.alerts())
            if not changes:
                return []
            position = Position(APP_ID, began, 0 if began is None else began + 1)
            try:
                self._lake.append(ALERTS, rows(ALERTS, [c.row() for c in changes]), [position])
            except PositionConflict:
                continue
            return changes
        raise LakeBusy(
            f"alerts: {_ATTEMPTS} changes in a row were overtaken by another `acktrail check`. "
            "Nothing was written; run one at a time."
        )


def _due(
    alerts: Mapping[str, Alert], receiver: Receiver, now: datetime, interval: timedelta
) -> list[Alert]:
    """What *receiver* has not taken; and, if it forgets, what is open or was just resolved."""
    due = []
    for alert in alerts.values():
        taken = receiver.name in alert.delivered
        still_told = now - (3 * interval if taken else STALE)
        if taken and not receiver.forgets:
            continue
        if alert.status == RESOLVED and alert.changed_at < still_told:
            continue
        due.append(alert)
    return sorted(due, key=lambda a: (a.status != OPEN, a.starts_at, a.fingerprint))
