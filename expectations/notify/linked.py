"""A link to the report in every alert, where `report.url` says where the report is served."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from datetime import datetime

from acktrail.alerts.alert import Alert
from acktrail.alerts.text import report_link
from expectations.messages import Messenger
from expectations.outbox import Receiver


def linked(alert: Alert, url: str) -> Alert:
    """*alert* with the link to what it is about, as an annotation and below its description."""
    link = report_link(url, alert.symptoms)
    said = dict(alert.annotations)
    description = said.get("description", "")
    said["description"] = f"{description}\nReport: {link}".lstrip()
    return replace(alert, annotations={**said, "report_url": link})


@dataclass(frozen=True)
class LinkedReceiver:
    """A receiver that is sent alerts with their links."""

    receiver: Receiver
    url: str

    @property
    def name(self) -> str:
        """Names it in the outbox."""
        return self.receiver.name

    @property
    def forgets(self) -> bool:
        """Whether it must be told again and again while an alert is open."""
        return self.receiver.forgets

    def send(self, alerts: Sequence[Alert], now: datetime) -> None:
        """Deliver *alerts*."""
        self.receiver.send([linked(alert, self.url) for alert in alerts], now)


@dataclass(frozen=True)
class LinkedMessenger:
    """A messenger whose messages have links."""

    messenger: Messenger
    url: str

    @property
    def name(self) -> str:
        """Names it in the outbox."""
        return self.messenger.name

    @property
    def updates(self) -> bool:
        """Whether it can change what it has posted."""
        return self.messenger.updates

    @property
    def takes_tickets(self) -> bool:
        """Whether it is sent digests of tickets."""
        return self.messenger.takes_tickets

    def tell(self, alert: Alert, reference: str, now: datetime) -> str:
        """Post *alert* with its link, or change the message *reference*; its reference."""
        return self.messenger.tell(linked(alert, self.url), reference, now)

    def digest(self, owner: str, tickets: Sequence[Alert], now: datetime) -> None:
        """Post the *tickets* of *owner*."""
        self.messenger.digest(owner, tickets, now)
