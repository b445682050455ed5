"""`acktrail resend-list`: what a topic owner needs to send again after a loss."""

from __future__ import annotations

from collections.abc import Mapping
from datetime import UTC, datetime
from typing import Any

import click

from acktrail.settings import Loaded
from acktrail.terminal.options import format_option, lake_to_ask, settings_options
from acktrail.terminal.output import moment, write_line, write_rows


@click.command()
@click.argument("incident")
@format_option
@settings_options
def command(loaded: Loaded, incident: str, output: str) -> None:
    """List the lost messages of an incident, so that they can be sent again.

    INCIDENT is its name (or the beginning of it), as `acktrail losses` prints it. Each line is a
    range of ids of one producer session, with partition, offsets and times. It ends with what is
    not known. If a consumer group missed messages that are still in the log, the list says so: let
    the group read them again, do not send them.

    Example:

    \b
        acktrail resend-list 3f9c --lake ./lake
        acktrail resend-list 3f9c --lake ./lake --format csv > resend.csv
    """
    from acktrail.answers.losses import Wanted, incident_named
    from acktrail.answers.resend_list import COLUMNS, resend_list
    from acktrail.answers.scope import scope_of
    from acktrail.contracts.gold import LOSS_EVENTS

    lake = lake_to_ask(loaded)
    scope = scope_of(lake, Wanted(), LOSS_EVENTS)
    found = incident_named(lake, incident)
    rows = resend_list(lake, found)
    if output == "text":
        _write_text(found, rows)
    elif output == "csv":
        write_rows([{**row, "unknown": "; ".join(row["unknown"])} for row in rows], COLUMNS, output)
    else:
        write_rows(rows, COLUMNS, output)
    for line in scope.caveats(datetime.now(UTC)):
        click.echo(line, err=True)


def _write_text(incident: Mapping[str, Any], rows: list[dict[str, Any]]) -> None:
    from acktrail.answers.resend_list import advice, text_columns, unknown_of

    write_line("", incident["because"])
    write_line("", advice(incident))
    click.echo("")
    days = {moment(r[name])[:10] for r in rows for name in ("first_at", "last_at") if r[name]}
    for name in ("client_id", "host"):
        values = {row[name] for row in rows}
        if len(values) == 1:
            click.echo(f"{name}: {values.pop() or '(not reported)'}")
    if len(days) == 1:
        click.echo(f"day: {days.pop()} (UTC)")
        rows = [{**row, **_without_day(row)} for row in rows]
    write_rows(rows, text_columns(rows))
    click.echo("\nNot known:")
    for what in unknown_of(rows):
        write_line("- ", what)


def _without_day(row: Mapping[str, Any]) -> dict[str, str | None]:
    return {n: moment(row[n])[11:] if row[n] else None for n in ("first_at", "last_at")}
