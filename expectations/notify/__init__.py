"""Receivers of alerts, built from the settings. A further one is one small file and one line."""

from __future__ import annotations

from datetime import timedelta

from acktrail.settings.alerts import AlertSettings
from expectations.messages import Messenger
from expectations.notify.alertmanager import Alertmanager
from expectations.notify.pagerduty import PagerDuty
from expectations.notify.post import Patience
from expectations.notify.slack import Slack
from expectations.notify.teams import Teams
from expectations.notify.webhook import Webhook
from expectations.outbox import Receiver


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


def messengers(settings: AlertSettings) -> list[Messenger]:
    """Every receiver of single messages that *settings* name."""
    patience = Patience(settings.timeout_s, settings.give_up_s)
    named: list[Messenger] = []
    if settings.slack_token and settings.slack_channel:
        token, channel = settings.slack_token.get_secret_value(), settings.slack_channel
        named.append(Slack(token, channel, patience, settings.slack_by_owner, settings.slack_url))
    if settings.teams_url:
        named.append(Teams(settings.teams_url.get_secret_value(), patience))
    if settings.pagerduty_key:
        key = settings.pagerduty_key.get_secret_value()
        named.append(PagerDuty(key, patience, settings.pagerduty_url))
    return named
