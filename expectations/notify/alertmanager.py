"""Alertmanager, API v2: sent again while open with an end ahead, resolved with an end now.

An alert is one label set there. Labels never change while an alert is open, so each open incident
is exactly one active alert, and it ends by itself when it is not sent again for three intervals.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Any

from acktrail.alerts.alert import OPEN, Alert
from acktrail.errors import AlertUndelivered
from expectations.notify.post import Patience, post

_PATH = "/api/v2/alerts"
_BATCH = 500


@dataclass(frozen=True)
class Alertmanager:
    """All instances of one Alertmanager cluster: they do not share alerts, so each is sent all."""

    urls: tuple[str, ...]
    interval: timedelta
    patience: Patience
    token: str | None = None
    name: str = "alertmanager"
    forgets: bool = True

    def send(self, alerts: Sequence[Alert], now: datetime) -> None:
        """Tell every instance; it is delivered once one of them has taken all.

        One that missed an opening hears of it in the next run; one that missed a resolution ends
        the alert by itself.
        """
        bodies = [payload(alert, now, self.interval) for alert in alerts]
        problems = []
        for url in self.urls:
            try:
                for first in range(0, len(bodies), _BATCH):
                    post(
                        url.rstrip("/") + _PATH,
                        bodies[first : first + _BATCH],
                        self._headers,
                        self.patience,
                    )
            except AlertUndelivered as problem:
                problems.append(str(problem))
        if len(problems) == len(self.urls):
            raise AlertUndelivered("; ".join(problems))

    def _headers(self, _data: bytes) -> Mapping[str, str]:
        return {"Authorization": f"Bearer {self.token}"} if self.token else {}


def payload(alert: Alert, now: datetime, interval: timedelta) -> dict[str, Any]:
    """*alert* as Alertmanager's postableAlert."""
    ends_at = now + 3 * interval if alert.status == OPEN else (alert.ends_at or now)
    starts_at = min(alert.starts_at, ends_at - timedelta(milliseconds=1))
    return {
        "labels": dict(alert.labels),
        "annotations": dict(alert.annotations),
        "startsAt": starts_at.isoformat(),
        "endsAt": ends_at.isoformat(),
    }
