"""`acktrail alerts`: what is in the outbox, send what waits, and try the receivers."""

from __future__ import annotations

from datetime import UTC, datetime

import click

from acktrail.errors import ConfigError
from acktrail.settings import Loaded
from acktrail.terminal.options import format_option, lake_to_ask, settings_options
from acktrail.terminal.output import write_rows

_COLUMNS = (
    *("fingerprint", "status", "severity", "owner", "cluster", "fault", "topics", "state", "cause"),
    *("starts_at", "ends_at", "delivered", "acknowledged_by", "summary"),
)
_TEXT = ("fingerprint", "status", "severity", "owner", "starts_at", "summary")


@click.group()
def command() -> None:
    """List, acknowledge and send alerts; test the receivers.

    Silences are made in Alertmanager.

    Example:

    \b
        acktrail alerts list --lake ./lake
        acktrail alerts ack 3f9c --by maria --because "sent again" --lake ./lake
        acktrail alerts test --set alerts.alertmanager_urls=http://localhost:9093
    """


@command.command("list")
@click.option("--all", "everything", is_flag=True, help="Resolved ones too.")
@format_option
@settings_options
def list_alerts(loaded: Loaded, everything: bool, output: str) -> None:
    """List open alerts, and resolved ones with --all.

    `--format json` and `csv` have all that is known of each: topics, states, causes, receivers.

    Example:

    \b
        acktrail alerts list --lake ./lake --all --format json
    """
    from acktrail.alerts.alert import OPEN
    from expectations.outbox import Outbox

    alerts = sorted(Outbox(lake_to_ask(loaded)).alerts().values(), key=lambda a: a.starts_at)
    shown = [
        {
            **a.row(),
            "severity": a.severity,
            "topics": ", ".join(sorted(a.topics)),
            "state": a.annotations.get("state", a.state),
            "cause": a.annotations.get("cause", a.cause),
            "delivered": ", ".join(a.delivered),
            "summary": a.summary,
        }
        for a in alerts
        if everything or a.status == OPEN
    ]
    several = len({row["cluster"] for row in shown}) > 1
    brief = ("cluster", *_TEXT) if several else _TEXT
    if output == "text" and not shown:
        click.echo("No alert is open." if not everything else "There are no alerts.")
    else:
        write_rows(shown, brief if output == "text" else _COLUMNS, output)


@command.command("ack")
@click.argument("incident")
@click.option("--by", required=True, help="Who acknowledges it.")
@click.option("--because", required=True, help="What was done, or why nothing is to be done.")
@settings_options
def acknowledge(loaded: Loaded, incident: str, by: str, because: str) -> None:
    """Acknowledge the losses of an open alert, which stays open until then.

    INCIDENT is the alert's fingerprint, or the name of a loss incident as `acktrail losses` prints
    it; the first characters of either are enough. The alert is then resolved, unless another of its
    signs goes on. It opens again if more messages are found to be lost. The next `acktrail alerts
    send`, `check` or round of `watch` informs the receivers.

    Example:

    \b
        acktrail alerts ack 3f9c --by maria --because "orders were sent again" --lake ./lake
    """
    from expectations.outbox import Outbox

    outbox = Outbox(lake_to_ask(loaded))
    alert = outbox.acknowledge(incident, by, because, datetime.now(UTC))
    click.echo(f"{alert.fingerprint}  {alert.status}  {alert.summary}")


@command.command("send")
@settings_options
def send(loaded: Loaded) -> None:
    """Send what waits in the outbox, and open alerts again to receivers that forget them.

    Example:

    \b
        acktrail alerts send --lake ./lake
    """
    from expectations.paging import deliver_alerts

    settings = loaded.settings
    delivery = deliver_alerts(
        lake_to_ask(loaded), settings.alerts, datetime.now(UTC), settings.report.url
    )
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
    from acktrail.alerts.alert import trial
    from expectations.notify import messengers, receivers

    named, others = receivers(loaded.settings.alerts), messengers(loaded.settings.alerts)
    if not named and not others:
        raise ConfigError(
            "No receiver is set. Set `alerts.alertmanager_urls`, `alerts.webhook_url`, "
            "`alerts.slack_token`, `alerts.teams_url` or `alerts.pagerduty_key`."
        )
    now = datetime.now(UTC)
    for messenger in others:
        reference = ""
        for alert in trial(now):
            reference = messenger.tell(alert, reference, now)
        click.echo(f"{messenger.name}: took a test alert and its resolution.")
    for receiver in named:
        for alert in trial(now):
            receiver.send([alert], now)
        click.echo(f"{receiver.name}: took a test alert and its resolution.")
