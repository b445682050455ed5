"""`acktrail sql`: ad hoc questions, read-only."""

from __future__ import annotations

import sys

import click

from acktrail.cli.run import SparkOnDemand
from acktrail.settings import Loaded
from acktrail.terminal.options import format_option, lake_to_ask, master_option, settings_options
from acktrail.terminal.output import write_rows


@click.command()
@click.argument("query")
@click.option("--limit", default=1000, show_default=True, help="Most rows shown; 0 for all.")
@master_option
@format_option
@settings_options
def command(loaded: Loaded, query: str, limit: int, master: str | None, output: str) -> None:
    """Ask the lake in Spark SQL; it can read its tables and nothing else.

    QUERY is the text, or - to read it from standard input. `acktrail lake tables` lists the tables.
    A query that fails says why in a line or two; with ACKTRAIL_STACK_TRACE=1 in the environment the
    stack traces of Python and Java follow.

    Example:

    \b
        acktrail sql --lake ./lake "SELECT error, count(*) FROM producer_events GROUP BY error"
        acktrail sql --lake ./lake --format csv - < question.sql
    """
    from pipelines import adhoc

    text = sys.stdin.read() if query == "-" else query
    lake = lake_to_ask(loaded)
    with SparkOnDemand(loaded, master) as spark:
        frame = adhoc.query(spark(), lake, text)
        wanted = frame.limit(limit + 1) if limit else frame
        found = list(adhoc.rows(spark(), wanted))
        write_rows(found[:limit] if limit else found, frame.columns, output)
        if limit and len(found) > limit:
            click.echo(
                f"More than {limit} rows: shown are the first; --limit 0 shows all.", err=True
            )
