"""The alert outbox: a change of an alert is committed before it is sent, and marked once taken.

A crash at any point leaves the change in the `alerts` table, and the next run delivers it with
the same key. Every commit moves one position, so two commands at a time never open one twice.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import datetime, timedelta
from typing import Any, Protocol

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.dataset as ds

from acktrail.alerts.alert import OPEN, RESOLVED, Alert, fingerprint_of, identity_of, newest
from acktrail.alerts.finding import Finding
from acktrail.alerts.grouping import occurrences
from acktrail.alerts.lifecycle import acknowledged, alerts_due
from acktrail.contracts.arrow import rows
from acktrail.contracts.runs import ALERTS
from acktrail.crashpoints import crash_point
from acktrail.errors import AlertUndelivered, LakeBusy, PositionConflict, UsageError
from acktrail.lake import Lake, Position
from expectations.hindsight import LakeHindsight
from expectations.messages import Messenger, Told, tell_messengers

APP_ID = "alerts"
_NUMBER = ("fingerprint", "number", "step")
STALE = timedelta(days=7)
"""A receiver that is new, or was away for longer, is not sent what was resolved before."""
_ATTEMPTS = 20
_MEMORY = timedelta(days=2)
"""So long resolved alerts are remembered: a loss that is proven later opens them again."""


class Receiver(Protocol):
    """Where alerts are sent: Alertmanager, a webhook (`expectations/notify`).

    *send* returns once all are taken, and raises AlertUndelivered otherwise. It is called at
    least once for each change, with the same key each time; where *forgets* is set it is called
    again in every run while the alert is open, and for some time after.
    """

    @property
    def name(self) -> str:
        """Names the receiver in the outbox."""

    @property
    def forgets(self) -> bool:
        """Whether an alert must be sent again while it is open."""

    def send(self, alerts: Sequence[Alert], now: datetime) -> None:
        """Send *alerts*, open or resolved."""


@dataclass(frozen=True)
class Delivery:
    """What the receivers took, and what still waits."""

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

    def live(self, since: datetime, also: Collection[str] = ()) -> dict[str, Alert]:
        """As *alerts*, of those that are open, have changed *since*, or are named in *also*.

        What was resolved long ago is most of the table: only its fingerprints are read.
        """
        numbered = self._lake.read(ALERTS, None, [*_NUMBER, "status", "changed_at"])
        listed = numbered.sort_by([(name, "ascending") for name in _NUMBER])
        last = listed.group_by("fingerprint", use_threads=False).aggregate(
            [(name, "last") for name in ("number", "step", "status", "changed_at")]
        )
        named = pc.is_in(last.column("fingerprint"), pa.array(list(also), pa.string()))
        is_open = pc.equal(last.column("status_last"), pa.scalar(OPEN))
        changed = pc.greater_equal(last.column("changed_at_last"), _instant(since))
        wanted = last.filter(pc.or_(pc.or_(is_open, changed), named))
        if not wanted.num_rows:
            return {}
        # Rows of one change are written together; a day is more than enough for two commands.
        first = pc.min(wanted.column("changed_at_last")).as_py() - timedelta(days=1)
        where = (ds.field("changed_at") >= _instant(first)) & ds.field("fingerprint").isin(
            wanted.column("fingerprint").to_pylist()
        )
        found = self._lake.read(ALERTS, where)
        # An alert that goes on has a row for every change of its signs; only the last is made.
        last_of = dict(
            zip(
                wanted.column("fingerprint").to_pylist(),
                zip(
                    wanted.column("number_last").to_pylist(),
                    wanted.column("step_last").to_pylist(),
                    strict=True,
                ),
                strict=True,
            )
        )
        numbers = (found.column(name).to_pylist() for name in _NUMBER)
        lasts = [
            n
            for n, (fingerprint, number, step) in enumerate(zip(*numbers, strict=True))
            if last_of.get(fingerprint) == (number, step)
        ]
        return newest(found.take(pa.array(lasts, pa.int64())).to_pylist())

    def record(
        self,
        findings: Sequence[Finding],
        evaluated: Collection[str],
        now: datetime,
        existing: Collection[str] | None = None,
        since: datetime | None = None,
    ) -> list[Alert]:
        """Write down which alerts open, go on and are resolved; nothing is sent yet.

        *evaluated* are the checks that ran, *existing* all there are, as in `alerts_due`; *since*
        is where the window that they looked at begins.
        """
        # An alert of the same fault that was resolved, however long ago, goes on counting.
        own = {fingerprint_of(identity_of(o), o.starts_at) for o in occurrences(findings)}
        known = LakeHindsight(self._lake, since)
        late = now - _MEMORY
        changes = self._commit(
            lambda: alerts_due(findings, self.live(late, own), evaluated, now, existing, known)
        )
        crash_point("alerts recorded")
        return changes

    def acknowledge(self, name: str, by: str, because: str, now: datetime) -> Alert:
        """Record that *by* has seen the losses of the open alert called *name*.

        *name* is the beginning of a fingerprint, or of the name of a loss incident in it.
        """
        changes = self._commit(
            lambda: [
                acknowledged(self._named(name, now), by, because, now, LakeHindsight(self._lake))
            ]
        )
        return changes[0]

    def _named(self, name: str, now: datetime) -> Alert:
        alerts = [a for a in self.live(now).values() if a.status == OPEN]
        found = [
            alert
            for alert in alerts
            if alert.fingerprint.startswith(name)
            or any(s.incident.startswith(name) for s in alert.symptoms if s.incident)
        ]
        if len(found) != 1:
            how_many = f"{len(found)} open alerts are" if found else "No open alert is"
            raise UsageError(
                f"{how_many} called {name}. `acktrail alerts list` has the fingerprints, "
                "`acktrail losses` the incidents."
            )
        if not found[0].lost:
            raise UsageError(
                f"Alert {found[0].fingerprint} has no loss to acknowledge: it is resolved when "
                "its signs are over."
            )
        return found[0]

    def deliver(
        self, receivers: Sequence[Receiver], now: datetime, interval: timedelta
    ) -> Delivery:
        """Send every receiver what it has not taken, and what it must be sent again."""
        delivered, problems = 0, []
        since = now - max(STALE, 3 * interval)
        for receiver in receivers:
            due = _due(self.live(since), receiver, now, interval)
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
                self._mark(new, receiver.name, now)
            crash_point("alerts marked")
        left = self.live(since) if receivers else {}
        waiting = {
            a.key
            for r in receivers
            for a in _due(left, r, now, interval)
            if r.name not in a.delivered
        }
        return Delivery(delivered, len(waiting), tuple(problems))

    def mark_told(self, told: Mapping[str, Told], messenger: str, now: datetime) -> None:
        """Keep what *messenger* was told last, by fingerprint."""

        def marked() -> list[Alert]:
            before = self.live(now, told)
            return [
                replace(
                    alert,
                    step=alert.step + 1,
                    changed_at=now if alert.status == OPEN else alert.changed_at,
                    messages={**alert.messages, messenger: told[fingerprint].text()},
                )
                for fingerprint, alert in before.items()
                if fingerprint in told
            ]

        self._commit(marked)

    def tell_all(
        self,
        receivers: Sequence[Receiver],
        messengers: Sequence[Messenger],
        now: datetime,
        interval: timedelta,
        digest_every: timedelta,
    ) -> Delivery:
        """As *deliver*; and the messages that are due."""
        delivery = self.deliver(receivers, now, interval)
        taken, problems = tell_messengers(self, messengers, now, digest_every)
        return Delivery(
            delivery.delivered + taken,
            delivery.waiting + len(problems),
            (*delivery.problems, *problems),
        )

    def _mark(self, told: Collection[Alert], receiver: str, now: datetime) -> None:
        keys = {alert.key for alert in told}

        def taken() -> list[Alert]:
            before = self.live(now, {alert.fingerprint for alert in told})
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

    def _commit(self, decide: Callable[[], list[Alert]]) -> list[Alert]:
        """Append what *decide* makes of the newest state; again if another writer was faster."""
        for _ in range(_ATTEMPTS):
            # The position is read first: a commit between the two lines is then a conflict.
            began = self._lake.position(ALERTS, APP_ID)
            changes = decide()
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


def _instant(at: datetime) -> pa.Scalar[Any]:
    return pa.scalar(at, pa.timestamp("us", tz="UTC"))


def _due(
    alerts: Mapping[str, Alert], receiver: Receiver, now: datetime, interval: timedelta
) -> list[Alert]:
    """What *receiver* has not taken; and, if it forgets, what is open or was just resolved."""
    due = []
    for alert in alerts.values():
        taken = receiver.name in alert.delivered
        sent_until = now - (3 * interval if taken else STALE)
        if taken and not receiver.forgets:
            continue
        if alert.status == RESOLVED and alert.changed_at < sent_until:
            continue
        due.append(alert)
    return sorted(due, key=lambda a: (a.status != OPEN, a.starts_at, a.fingerprint))
