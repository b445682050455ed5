"""`acktrail losses`: which messages were lost, and why."""

from __future__ import annotations

from datetime import UTC, datetime

import click

from acktrail.settings import Loaded
from acktrail.terminal.options import format_option, lake_to_ask, settings_options
from acktrail.terminal.output import write_rows
from acktrail.window import instant


@click.command()
@click.option("--ranges", is_flag=True, help="Every range of ids, instead of incidents.")
@click.option("--cluster", help="Only losses on this cluster.")
@click.option("--topic", help="Only losses on this topic.")
@click.option(
    "--since",
    metavar="TIME",
    help="Only losses that ended at or after TIME, e.g. 2026-01-31T07:00Z.",
)
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

    The exit code is 0 only where the question could be answered: 2 where the topic or cluster is
    unknown or not audited, or where `acktrail run` has not read its audits yet. What the answer
    does not cover is on stderr.

    Example:

    \b
        acktrail losses --lake ./lake
        acktrail losses --lake ./lake --topic payments --ranges --format json
    """
    from acktrail.answers import losses
    from acktrail.answers.scope import require_listed, scope_of
    from acktrail.contracts.gold import LOSS_EVENTS, LOSS_INCIDENTS

    lake = lake_to_ask(loaded)
    wanted = losses.Wanted(cluster, topic, instant(since) if since else None)
    table = LOSS_EVENTS if ranges else LOSS_INCIDENTS
    scope = scope_of(lake, wanted, table)
    require_listed(lake, scope, table)
    found = losses.events(lake, wanted) if ranges else losses.incidents(lake, wanted)
    columns = losses.EVENT_COLUMNS if ranges else losses.INCIDENT_COLUMNS
    all_clear = output == "text" and not found and scope.topics > 0
    if all_clear:
        click.echo(scope.all_clear())
    elif found or output != "text":
        brief = output == "text" and not ranges
        shown = losses.incident_columns(found) if brief else columns
        write_rows(found, shown, output)
    for line in scope.caveats(datetime.now(UTC), all_clear):
        click.echo(line, err=True)
