"""`acktrail report`: everything about a window of time, in one file to look at."""

from __future__ import annotations

import os
import tempfile
from datetime import datetime, timedelta
from pathlib import Path

import click

from acktrail.settings import Loaded
from acktrail.terminal.options import as_of_option, lake_to_ask, settings_options
from acktrail.window import instant

DEFAULT = timedelta(hours=24)


@click.command()
@click.option("--html", metavar="FILE", required=True, help="Where to write the page; - is stdout.")
@click.option(
    "--since", metavar="TIME", help="Beginning of the window; else 24 hours before its end."
)
@click.option("--until", metavar="TIME", help="End of the window; else the moment asked about.")
@click.option("--incident", metavar="ID", help="Only this incident, with the time around it.")
@click.option("--policy", metavar="FILE", help="Thresholds; else the file `alerts.policy` names.")
@as_of_option
@settings_options
def command(
    loaded: Loaded,
    html: str,
    since: str | None,
    until: str | None,
    incident: str | None,
    policy: str | None,
    as_of: datetime,
) -> None:
    """Write a page that shows what was lost, why, what to do, and which evidence is missing.

    The page is one file of at most 2 MB. It needs no network and no script, prints, and works
    with a keyboard and a screen reader. Every incident, client and topic has a link of its own;
    alerts carry it where `report.url` is set. No JVM is started.

    Example:

    \b
        acktrail report --html report.html --lake ./lake
        acktrail report --html report.html --lake ./lake --since 2026-01-31T07:00Z \\
            --until 2026-01-31T09:00Z
        acktrail report --html incident.html --lake ./lake --incident 818655c654b6ad69
    """
    from acktrail.answers.inquiry import Inquiry
    from acktrail.answers.losses import incident_named
    from acktrail.pages.delivery_report import report
    from acktrail.policy import read_policy

    lake = lake_to_ask(loaded)
    named = policy or loaded.settings.alerts.policy
    one = incident_named(lake, incident) if incident else None
    start, end = window(since, until, as_of, one)
    asked = Inquiry(start, end, as_of)
    text = report(
        lake,
        asked,
        read_policy(Path(named) if named else None),
        str(one["incident"]) if one else None,
    )
    if html == "-":
        click.echo(text, nl=False)
        return
    write_whole(Path(html), text)
    click.echo(f"Wrote {html} ({len(text.encode()) / 1000:,.0f} kB).", err=True)


def window(
    since: str | None, until: str | None, as_of: datetime, incident: dict[str, object] | None
) -> tuple[datetime, datetime]:
    """The window that is meant; that of an incident goes a little beyond it."""
    from acktrail.errors import UsageError

    end = instant(until) if until else as_of
    start = instant(since) if since else end - DEFAULT
    if incident is not None and isinstance(incident["started_at"], datetime):
        ended = incident["ended_at"]
        last = ended if isinstance(ended, datetime) else incident["started_at"]
        around = timedelta(minutes=10)
        start = start if since else incident["started_at"] - around
        end = end if until else min(as_of, last + around)
    if start >= end:
        raise UsageError(f"The window ends at {end:%Y-%m-%dT%H:%M:%SZ}, before it begins.")
    return start, end


def write_whole(path: Path, text: str) -> None:
    """Write *text* to *path* so that nobody ever sees a part of it."""
    from acktrail.errors import UsageError

    try:
        handle, written = tempfile.mkstemp(dir=path.parent, prefix=f".{path.name}.")
        with os.fdopen(handle, "w", encoding="utf-8") as file:
            file.write(text)
        Path(written).chmod(0o644)
        Path(written).replace(path)
    except OSError as error:
        raise UsageError(f"{path} cannot be written: {error.strerror}.") from None
