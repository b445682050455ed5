"""`acktrail ledger`: every message accounted for."""

from __future__ import annotations

from datetime import UTC, datetime

import click

from acktrail.settings import Loaded
from acktrail.terminal.options import format_option, lake_to_ask, settings_options
from acktrail.terminal.output import write_rows
from acktrail.window import instant


@click.command()
@click.option("--blocks", is_flag=True, help="One line per session and block of 32,768 ids.")
@click.option("--cluster", help="Only accounts of this cluster.")
@click.option("--topic", help="Only accounts of this topic.")
@click.option(
    "--since",
    metavar="TIME",
    help="Only accounts with events at or after TIME, e.g. 2026-01-31T07:00Z.",
)
@format_option
@settings_options
def command(
    loaded: Loaded,
    blocks: bool,
    cluster: str | None,
    topic: str | None,
    since: str | None,
    output: str,
) -> None:
    """Show the accounts: what was sent, and what became of it.

    One line per topic, group and client. In lines without a group, `delivered` means stored in the
    log. A state has a column if any line has messages in it, so the states of a line add up to
    `sent`; `residual` appears only if they do not.

    The exit code is 0 only where the question could be answered, as for `acktrail losses`.

    Example:

    \b
        acktrail ledger --lake ./lake
        acktrail ledger --lake ./lake --topic payments --blocks --format csv
    """
    from acktrail.answers import losses
    from acktrail.answers.scope import scope_of
    from acktrail.contracts.gold import DELIVERY_LEDGER

    lake = lake_to_ask(loaded)
    wanted = losses.Wanted(cluster, topic, instant(since) if since else None)
    scope = scope_of(lake, wanted, DELIVERY_LEDGER)
    by = ("cluster", "topic", "group", "client_id", *(("session", "block") if blocks else ()))
    rows = losses.accounts(lake, wanted, by)
    if output != "text":
        write_rows(rows, losses.BLOCK_COLUMNS if blocks else losses.LEDGER_COLUMNS, output)
    elif rows:
        write_rows(rows, losses.shown_columns(rows, blocks), output)
    for line in scope.caveats(datetime.now(UTC)):
        click.echo(line, err=True)
