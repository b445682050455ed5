"""PagerDuty, Events API v2: one alert for each page, by its fingerprint as the `dedup_key`.

An event with a key that is known changes the alert that is open, so a repeated one doubles nothing.
Tickets are not sent: they wake nobody.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Any

from acktrail.alerts.alert import OPEN, Alert
from expectations.notify.post import Patience, post

_SUMMARY = 1024
"""Characters that a summary may have."""


@dataclass(frozen=True)
class PagerDuty:
    """One service, by its integration key."""

    routing_key: str
    patience: Patience
    url: str = "https://events.pagerduty.com/v2/enqueue"
    name: str = "pagerduty"
    updates: bool = True
    takes_tickets: bool = False

    def tell(self, alert: Alert, _reference: str, _now: datetime) -> str:
        """Trigger, change or resolve the alert of the page."""
        post(self.url, event(alert, self.routing_key), _no_headers, self.patience)
        return alert.fingerprint

    def digest(self, owner: str, tickets: Sequence[Alert], now: datetime) -> None:
        """Nothing: see *takes_tickets*."""


def event(alert: Alert, routing_key: str) -> dict[str, Any]:
    """*alert* as an event."""
    named = {"routing_key": routing_key, "dedup_key": alert.fingerprint}
    if alert.status != OPEN:
        return {**named, "event_action": "resolve"}
    made: dict[str, Any] = {
        **named,
        "event_action": "trigger",
        "client": "acktrail",
        "payload": {
            "summary": alert.summary[:_SUMMARY] or alert.labels["alertname"],
            "source": alert.labels["cluster"],
            "severity": "critical",
            "timestamp": alert.starts_at.isoformat(),
            "component": alert.annotations.get("topics", ""),
            "group": alert.owner,
            "class": alert.labels["alertname"],
            "custom_details": dict(alert.annotations),
        },
    }
    link = alert.annotations.get("runbook_url", "")
    if link.startswith(("http://", "https://")):
        made["links"] = [{"href": link, "text": "Runbook"}]
    return made


def _no_headers(_data: bytes) -> Mapping[str, str]:
    return {}
