"""A signed generic webhook: one request per owner, at least once, the same key each time.

The header `Acktrail-Signature: t=<unix seconds>,v1=<hex>` holds the HMAC-SHA256, under the shared
secret, of the time, a dot and the body. A receiver recomputes it, refuses an old time, and drops
alerts whose `key` it has seen.
"""

from __future__ import annotations

import hashlib
import hmac
import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Any

from acktrail.alerts.alert import Alert
from expectations.notify.post import Patience, post


@dataclass(frozen=True)
class Webhook:
    """One address that takes alerts as JSON."""

    url: str
    patience: Patience
    secret: str | None = None
    name: str = "webhook"
    forgets: bool = False

    def send(self, alerts: Sequence[Alert], now: datetime) -> None:
        """One request for each owner."""
        for owner in sorted({a.owner for a in alerts}):
            body = {
                "version": 1,
                "owner": owner,
                "sent_at": now.isoformat(),
                "alerts": [payload(a) for a in alerts if a.owner == owner],
            }
            post(self.url, body, self._headers, self.patience)

    def _headers(self, data: bytes) -> Mapping[str, str]:
        if self.secret is None:
            return {}
        return {"Acktrail-Signature": signature(data, self.secret, int(time.time()))}


def signature(data: bytes, secret: str, at: int) -> str:
    """The value of the header for *data* signed at unix time *at*."""
    signed = hmac.new(secret.encode(), f"{at}.".encode() + data, hashlib.sha256)
    return f"t={at},v1={signed.hexdigest()}"


def payload(alert: Alert) -> dict[str, Any]:
    """*alert* as the webhook sends it."""
    return {
        "key": alert.key,
        "fingerprint": alert.fingerprint,
        "status": alert.status,
        "check": alert.check,
        "grade": alert.grade.value,
        "starts_at": alert.starts_at.isoformat(),
        "ends_at": None if alert.ends_at is None else alert.ends_at.isoformat(),
        "labels": dict(alert.labels),
        "annotations": dict(alert.annotations),
    }
