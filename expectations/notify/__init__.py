"""Receivers of alerts, built from the settings. A further one is one small file and one line."""

from __future__ import annotations

from datetime import timedelta

from acktrail.settings.alerts import AlertSettings
from expectations.notify.alertmanager import Alertmanager
from expectations.notify.post import Patience
from expectations.notify.receiver import Receiver
from expectations.notify.webhook import Webhook


def receivers(settings: AlertSettings) -> list[Receiver]:
    """Every receiver that *settings* name."""
    patience = Patience(settings.timeout_s, settings.give_up_s)
    named: list[Receiver] = []
    if settings.alertmanager_urls:
        token = settings.alertmanager_token
        named.append(
            Alertmanager(
                settings.alertmanager_urls,
                timedelta(seconds=settings.interval_s),
                patience,
                token.get_secret_value() if token else None,
            )
        )
    if settings.webhook_url:
        secret = settings.webhook_secret
        named.append(
            Webhook(settings.webhook_url, patience, secret.get_secret_value() if secret else None)
        )
    return named
