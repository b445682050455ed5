"""Microsoft Teams, by a workflow that posts what its webhook receives: an Adaptive Card.

Such a webhook cannot change what it has posted: a page is one card when it opens, and one when it
is resolved or opens again.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Any

from acktrail.alerts.alert import OPEN, Alert
from expectations.notify.post import Patience, post

_MOST = 4000
"""Characters of one text: a card may have 28 KB."""


@dataclass(frozen=True)
class Teams:
    """One channel."""

    url: str
    patience: Patience
    name: str = "teams"
    updates: bool = False
    takes_tickets: bool = True

    def tell(self, alert: Alert, _reference: str, _now: datetime) -> str:
        """Post a card about the page."""
        said = alert.annotations
        facts = {"Owner": alert.owner, "Cluster": alert.labels["cluster"]}
        facts |= {
            "Since": alert.starts_at.isoformat(timespec="seconds"),
            "Alert": alert.fingerprint,
        }
        over = "" if alert.status == OPEN else "Over: "
        body = [
            _text(f"{over}{alert.labels['alertname']}", weight="Bolder", size="Large"),
            _text(alert.summary),
            _text(said.get("description", "")),
            {"type": "FactSet", "facts": [{"title": k, "value": v} for k, v in facts.items()]},
        ]
        post(self.url, card(body, said.get("runbook_url", "")), _no_headers, self.patience)
        return alert.key

    def digest(self, owner: str, tickets: Sequence[Alert], _now: datetime) -> None:
        """One card with the *tickets* of *owner*."""
        title = f"{len(tickets)} ticket{'' if len(tickets) == 1 else 's'} of acktrail for {owner}"
        lines = [f"- {'' if t.status == OPEN else '(over) '}{t.summary}" for t in tickets[:20]]
        body = [_text(title, weight="Bolder"), *(_text(line) for line in lines)]
        post(self.url, card(body, ""), _no_headers, self.patience)


def card(body: Sequence[Mapping[str, Any]], link: str) -> dict[str, Any]:
    """The message that the workflow expects, with one Adaptive Card."""
    content: dict[str, Any] = {
        "$schema": "http://adaptivecards.io/schemas/adaptive-card.json",
        "type": "AdaptiveCard",
        "version": "1.4",
        "body": list(body),
    }
    if link.startswith(("http://", "https://")):
        content["actions"] = [{"type": "Action.OpenUrl", "title": "Runbook", "url": link}]
    return {
        "type": "message",
        "attachments": [
            {
                "contentType": "application/vnd.microsoft.card.adaptive",
                "contentUrl": None,
                "content": content,
            }
        ],
    }


def _text(text: str, **style: str) -> dict[str, Any]:
    return {"type": "TextBlock", "text": text[:_MOST] or " ", "wrap": True, **style}


def _no_headers(_data: bytes) -> Mapping[str, str]:
    return {}
