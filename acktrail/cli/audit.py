"""`acktrail audit`: which clients are audited."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta

import click

from acktrail.settings import Loaded
from acktrail.terminal.options import format_option, lake_to_ask, settings_options
from acktrail.terminal.output import write_rows
from acktrail.window import instant


@click.group()
def command() -> None:
    """Audited clients: who reports, and who does not.

    Example:

    \b
        acktrail audit status --lake ./lake
    """


@command.command()
@click.option("--as-of", metavar="TIME", help="As it was at TIME; now if left out.")
@click.option("--days", default=7, show_default=True, help="How far back clients are looked for.")
@format_option
@settings_options
def status(loaded: Loaded, as_of: str | None, days: int, output: str) -> None:
    """List audited clients, and those that logs, metrics or groups show without reports.

    `audit` is on, silent (no report for two minutes), ended, or off (it never reported). `mode` is
    ids (acks name their ids), acked_offsets (acks without ids), reads (a member of a group) or
    files (`acktrail ingest`).

    Example:

    \b
        acktrail audit status --lake ./lake
        acktrail audit status --lake ./lake --format csv
    """
    from acktrail.answers.audit_status import COLUMNS, audit_status

    lake = lake_to_ask(loaded)
    at = instant(as_of) if as_of else datetime.now(UTC)
    rows = audit_status(lake, at, timedelta(days=days))
    if rows or output != "text":
        write_rows(rows, COLUMNS, output)
    if not any(row["audit"] != "off" for row in rows):
        click.echo(
            "No client has reported to an audit topic. See docs/audit_your_application.md.",
            err=True,
        )
