"""`acktrail alerts`: what is in the outbox, send what waits, and try the receivers."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta

import click

from acktrail.errors import ConfigError
from acktrail.settings import Loaded
from acktrail.terminal.options import format_option, lake_to_ask, settings_options
from acktrail.terminal.output import write_rows

_COLUMNS = (
    "fingerprint",
    "status",
    "grade",
    "owner",
    "check",
    "cluster",
    "topic",
    "group",
    "state",
    "cause",
    "starts_at",
    "ends_at",
    "delivered",
    "summary",
)


@click.group()
def command() -> None:
    """The alert outbox: list it, send what waits, try the receivers.

    Silences are made in Alertmanager.

    Example:

    \b
        acktrail alerts list --lake ./lake
        acktrail alerts test --set alerts.alertmanager_urls=http://localhost:9093
    """


@command.command("list")
@click.option("--all", "everything", is_flag=True, help="Resolved ones too.")
@format_option
@settings_options
def list_alerts(loaded: Loaded, everything: bool, output: str) -> None:
    """List open alerts, and resolved ones with --all.

    Example:

    \b
        acktrail alerts list --lake ./lake --all --format json
    """
    from acktrail.alerts.lifecycle import OPEN
    from expectations.outbox import Outbox

    alerts = sorted(Outbox(lake_to_ask(loaded)).alerts().values(), key=lambda a: a.starts_at)
    shown = [
        {**a.row(), "delivered": ", ".join(a.delivered), "summary": a.summary}
        for a in alerts
        if everything or a.status == OPEN
    ]
    write_rows(shown, _COLUMNS, output)


@command.command("send")
@settings_options
def send(loaded: Loaded) -> None:
    """Send what waits in the outbox, and open alerts again to those who forget.

    Example:

    \b
        acktrail alerts send --lake ./lake
    """
    from expectations.notify import receivers
    from expectations.outbox import Outbox

    settings = loaded.settings.alerts
    interval = timedelta(seconds=settings.interval_s)
    delivery = Outbox(lake_to_ask(loaded)).deliver(receivers(settings), datetime.now(UTC), interval)
    click.echo(f"{delivery.delivered} change(s) delivered, {delivery.waiting} waiting.", err=True)
    delivery.require()


@command.command("test")
@settings_options
def test(loaded: Loaded) -> None:
    """Send a test alert to every receiver, and its resolution. The outbox is not touched.

    Example:

    \b
        acktrail alerts test --set alerts.webhook_url=http://localhost:8080/hook
    """
    from acktrail.alerts.lifecycle import trial
    from expectations.notify import receivers

    named = receivers(loaded.settings.alerts)
    if not named:
        raise ConfigError(
            "No receiver is set. Set `alerts.alertmanager_urls` or `alerts.webhook_url`."
        )
    now = datetime.now(UTC)
    for receiver in named:
        for alert in trial(now):
            receiver.send([alert], now)
        click.echo(f"{receiver.name}: took a test alert and its resolution.")
