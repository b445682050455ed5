"""Messages about single pages: posted once, changed in place, and marked in the outbox one by one.

Tickets wait for a digest: one message for each owner, at most every so often.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Protocol

from acktrail.alerts.alert import OPEN, TICKET, Alert
from acktrail.errors import AlertUndelivered

PAUSE = timedelta(seconds=30)
"""A message is changed at most so often while its page is open."""
LATE = timedelta(hours=1)
"""A page that was resolved longer ago, and never told, is not told any more."""


class Messenger(Protocol):
    """Where pages are messages of their own: Slack, Teams, PagerDuty (`expectations/notify`)."""

    @property
    def name(self) -> str:
        """Names it in the outbox."""

    @property
    def updates(self) -> bool:
        """Whether it can change what it has posted."""

    @property
    def takes_tickets(self) -> bool:
        """Whether it is sent digests of tickets."""

    def tell(self, alert: Alert, reference: str, now: datetime) -> str:
        """Post *alert*, or change the message *reference* (empty: none so far); its reference."""

    def digest(self, owner: str, tickets: Sequence[Alert], now: datetime) -> None:
        """Post the *tickets* of *owner*."""


@dataclass(frozen=True)
class Told:
    """What the outbox keeps of one message."""

    number: int
    gist: str
    at: datetime
    reference: str = ""

    def text(self) -> str:
        """As it is kept."""
        return json.dumps([self.number, self.gist, self.at.isoformat(), self.reference])

    @staticmethod
    def of(alert: Alert, messenger: str) -> Told | None:
        """What *messenger* was told of *alert*; None: nothing."""
        kept = alert.messages.get(messenger)
        if kept is None:
            return None
        number, gist, at, reference = json.loads(kept)
        return Told(number, gist, datetime.fromisoformat(at), reference)


def gist_of(alert: Alert) -> str:
    """What a message is sent again for: another sign, topic, broker, loss or acknowledgement."""
    alive = sorted({(s.state, s.topic, *s.brokers) for s in alert.symptoms if not s.over})
    text = json.dumps([alert.status, alive, alert.lost, alert.acknowledged_by])
    return hashlib.sha256(text.encode()).hexdigest()[:12]


def pages_due(alerts: Sequence[Alert], messenger: Messenger, now: datetime) -> list[Alert]:
    """The pages that *messenger* must be told now."""
    return [
        alert
        for alert in sorted(alerts, key=lambda a: (a.starts_at, a.fingerprint))
        if alert.severity != TICKET and _is_due(alert, messenger, now)
    ]


def _is_due(alert: Alert, messenger: Messenger, now: datetime) -> bool:
    told = Told.of(alert, messenger.name)
    if told is None:
        return alert.status == OPEN or alert.changed_at >= now - LATE
    if told.number != alert.number:
        return True
    changed = messenger.updates and told.gist != gist_of(alert)
    return changed and alert.status == OPEN and told.at <= now - PAUSE


def _message_of(alert: Alert, messenger: Messenger) -> str:
    """The message to change; none where the page opened again: a change rings for nobody."""
    told = Told.of(alert, messenger.name)
    again = told is not None and told.number != alert.number and alert.status == OPEN
    return "" if told is None or again else told.reference


def digest_due(
    alerts: Sequence[Alert], messenger: Messenger, now: datetime, every: timedelta
) -> dict[str, list[Alert]]:
    """The tickets that *messenger* must be told now, by owner."""
    if not messenger.takes_tickets:
        return {}
    tickets = [alert for alert in alerts if alert.severity == TICKET]
    before = [told.at for t in tickets if (told := Told.of(t, messenger.name)) is not None]
    if before and max(before) > now - every:
        return {}
    found: dict[str, list[Alert]] = {}
    for ticket in sorted(tickets, key=lambda t: (t.starts_at, t.fingerprint)):
        told = Told.of(ticket, messenger.name)
        never = told is None and ticket.status == OPEN
        if never or (told is not None and told.number != ticket.number):
            found.setdefault(ticket.owner, []).append(ticket)
    return found


class Messages(Protocol):
    """The outbox, as far as messages need it."""

    def live(self, since: datetime) -> dict[str, Alert]:
        """Alerts that are open, or have changed since."""

    def mark_told(self, told: dict[str, Told], messenger: str, now: datetime) -> None:
        """Keep what *messenger* was told, by fingerprint."""


def tell_messengers(
    outbox: Messages, messengers: Sequence[Messenger], now: datetime, digest_every: timedelta
) -> tuple[int, list[str]]:
    """Tell each what is due; how many messages were taken, and what went wrong."""
    taken, problems = 0, []
    for messenger in messengers:
        alerts = list(outbox.live(now - timedelta(days=7)).values())
        try:
            for alert in pages_due(alerts, messenger, now):
                reference = messenger.tell(alert, _message_of(alert, messenger), now)
                # A crash before this line posts once more where the receiver knows no key.
                made = Told(alert.number, gist_of(alert), now, reference)
                outbox.mark_told({alert.fingerprint: made}, messenger.name, now)
                taken += 1
            for owner, tickets in digest_due(alerts, messenger, now, digest_every).items():
                messenger.digest(owner, tickets, now)
                marks = {t.fingerprint: Told(t.number, gist_of(t), now) for t in tickets}
                outbox.mark_told(marks, messenger.name, now)
                taken += 1
        except AlertUndelivered as problem:  # what is left is due again next time
            problems.append(f"{messenger.name}: {problem}")
    return taken, problems
