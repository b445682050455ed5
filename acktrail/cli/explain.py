"""`acktrail explain`: the timeline of one loss."""

from __future__ import annotations

from datetime import timedelta
from typing import Any

import click

from acktrail.settings import Loaded
from acktrail.terminal.options import format_option, lake_to_ask, settings_options
from acktrail.terminal.output import moment, write_line, write_rows


@click.command()
@click.argument("loss")
@click.option(
    "--around",
    "seconds",
    type=click.IntRange(0, 86_400),
    default=60,
    show_default=True,
    help="Seconds before the first and after the last loss to show.",
)
@format_option
@settings_options
def command(loaded: Loaded, loss: str, seconds: int, output: str) -> None:
    """Show how messages were lost: sends, retries, broker events and elections, in order.

    LOSS is the name of an incident (or its beginning), as `acktrail losses` prints it. A star
    marks the rows that prove the cause.

    Example:

    \b
        acktrail explain 3f9c --lake ./lake
    """
    from acktrail.answers.losses import Wanted, events_of, incident_named
    from acktrail.answers.scope import scope_of
    from acktrail.answers.timeline import COLUMNS, timeline
    from acktrail.contracts.gold import LOSS_INCIDENTS

    lake = lake_to_ask(loaded)
    scope_of(lake, Wanted(), LOSS_INCIDENTS)
    incident = incident_named(lake, loss)
    rows = timeline(lake, incident, timedelta(seconds=seconds))
    if output != "text":
        write_rows(rows, COLUMNS, output)
        return
    _write_head(incident, events_of(lake, incident))
    for row in rows:
        _write_line(row)


def _write_head(incident: dict[str, Any], events: list[dict[str, Any]]) -> None:
    write_line("", incident["because"])
    click.echo(
        f"cause {incident['cause']} ({incident['confidence']}), state {incident['state']}, "
        f"{'the application got an error' if incident['told'] else 'the application got no error'}"
    )
    for event in events[:10]:
        click.echo(
            f"  ids {event['first_seq']} to {event['last_seq']} of session {event['session']}"
            f" ({event['count']})"
        )
    if len(events) > 10:
        click.echo(f"  … and {len(events) - 10} more ranges: `acktrail losses --ranges`")
    click.echo("")


def _write_line(row: dict[str, Any]) -> None:
    often = (
        f"  ({row['count']} times until {moment(row['until'])[11:]})" if row["count"] > 1 else ""
    )
    mark = "*" if row["evidence"] else " "
    before = f"{mark} {moment(row['at'])[11:]}  {row['who']:<16} "
    write_line(before, f"{row['what']}{often}")
