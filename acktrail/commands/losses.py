"""`acktrail losses`: which messages were lost, and why."""

from __future__ import annotations

import click

from acktrail.commands.options import format_option, lake_to_ask, settings_options
from acktrail.output import write_rows
from acktrail.settings import Loaded
from acktrail.window import instant


@click.command()
@click.option("--ranges", is_flag=True, help="Every range of ids, instead of incidents.")
@click.option("--cluster", help="Of one cluster.")
@click.option("--topic", help="Of one topic.")
@click.option("--since", metavar="TIME", help="That ended at or after, e.g. 2026-01-31T07:00Z.")
@format_option
@settings_options
def command(
    loaded: Loaded,
    ranges: bool,
    cluster: str | None,
    topic: str | None,
    since: str | None,
    output: str,
) -> None:
    """List lost messages: one line per incident, newest first.

    Example:

    \b
        acktrail losses --lake ./lake
        acktrail losses --lake ./lake --topic payments --ranges --format json
    """
    from acktrail.answers import books
    from acktrail.contracts.gold import LOSS_EVENTS, LOSS_INCIDENTS

    wanted = books.Wanted(cluster, topic, instant(since) if since else None)
    lake = lake_to_ask(loaded, LOSS_EVENTS if ranges else LOSS_INCIDENTS)
    if ranges:
        write_rows(books.events(lake, wanted), books.EVENT_COLUMNS, output)
    elif output == "text":
        shown = ("incident", "started_at", "topic", "group", "state", "cause", "ids", "because")
        write_rows(books.incidents(lake, wanted), shown, output)
    else:
        write_rows(books.incidents(lake, wanted), books.INCIDENT_COLUMNS, output)
