"""Slack, by its Web API: one message for each page, changed in place until it is resolved.

An incoming webhook cannot change what it has posted, so a bot token with the scope `chat:write` is
needed. Slack answers 200 to what it refuses; the body says whether it was taken.
"""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime
from typing import Any

from acktrail.alerts.alert import OPEN, Alert
from acktrail.errors import AlertUndelivered
from expectations.notify.post import Patience, post, shown

_HEADER, _SECTION = 150, 2900
"""Characters that a header and a section may have, with some to spare."""
_GONE = ("message_not_found", "cant_update_message", "edit_window_closed")


@dataclass(frozen=True)
class Slack:
    """One workspace; *channels* are those of single owners, all others go to *channel*."""

    token: str
    channel: str
    patience: Patience
    channels: Mapping[str, str] = field(default_factory=dict)
    url: str = "https://slack.com/api"
    name: str = "slack"
    updates: bool = True
    takes_tickets: bool = True

    def tell(self, alert: Alert, reference: str, _now: datetime) -> str:
        """Post the page, or change its message; the reference is channel and time stamp."""
        body = {"text": _title(alert), "blocks": blocks(alert)}
        channel, _, stamp = reference.partition("/")
        if stamp:
            said = self._call("chat.update", {"channel": channel, "ts": stamp, **body})
            if said.get("ok"):
                return reference
            if said.get("error") not in _GONE:
                raise self._refused(said)
        said = self._call("chat.postMessage", {"channel": self._channel(alert.owner), **body})
        if not said.get("ok"):
            raise self._refused(said)
        return f"{said['channel']}/{said['ts']}"

    def digest(self, owner: str, tickets: Sequence[Alert], _now: datetime) -> None:
        """One message with the *tickets* of *owner*."""
        lines = [f"• {'' if t.status == OPEN else '(over) '}{_escaped(t.summary)}" for t in tickets]
        title = f"{len(tickets)} ticket{'' if len(tickets) == 1 else 's'} of acktrail for {owner}"
        body = {
            "channel": self._channel(owner),
            "text": title,
            "blocks": [_header(title), *(_section(line) for line in lines[:20])],
        }
        said = self._call("chat.postMessage", body)
        if not said.get("ok"):
            raise self._refused(said)

    def _channel(self, owner: str) -> str:
        return self.channels.get(owner, self.channel)

    def _call(self, method: str, body: Mapping[str, Any]) -> dict[str, Any]:
        answer = post(f"{self.url.rstrip('/')}/{method}", body, self._headers, self.patience)
        try:
            read: Any = json.loads(answer)
        except ValueError:
            read = None
        if not isinstance(read, dict):
            raise AlertUndelivered(f"{shown(self.url)} answered no JSON object")
        return read

    def _refused(self, said: Mapping[str, Any]) -> AlertUndelivered:
        return AlertUndelivered(
            f"{shown(self.url)} refused: {said.get('error', 'no reason given')}"
        )

    def _headers(self, _data: bytes) -> Mapping[str, str]:
        return {
            "Authorization": f"Bearer {self.token}",
            "Content-Type": "application/json; charset=utf-8",
        }


def blocks(alert: Alert) -> list[dict[str, Any]]:
    """*alert* as Block Kit blocks."""
    said = alert.annotations
    made = [_header(_title(alert)), _section(f"*{_escaped(alert.summary)}*")]
    if said.get("description"):
        made.append(_section(_escaped(said["description"])))
    foot = [f"owner {alert.owner}", f"alert {alert.fingerprint}", said.get("runbook_url", "")]
    text = "  ·  ".join(_escaped(part) for part in foot if part)
    return [*made, {"type": "context", "elements": [{"type": "mrkdwn", "text": text}]}]


def _title(alert: Alert) -> str:
    mark = "🔴" if alert.status == OPEN else "🟢 over:"
    return f"{mark} {alert.labels['alertname']} in {alert.labels['cluster']}"


def _header(text: str) -> dict[str, Any]:
    return {"type": "header", "text": {"type": "plain_text", "text": text[:_HEADER]}}


def _section(text: str) -> dict[str, Any]:
    return {"type": "section", "text": {"type": "mrkdwn", "text": text[:_SECTION]}}


def _escaped(text: str) -> str:
    return text.replace("&", "&amp;").replace("<", "&lt;").replace(">", "&gt;")
