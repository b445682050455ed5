"""`acktrail serve`: the lake's tables for Spark Connect clients and notebooks."""

from __future__ import annotations

import click

from acktrail.settings import Loaded
from acktrail.terminal.options import lake_to_ask, master_option, settings_options


@click.command()
@click.option("--port", default=15002, show_default=True, help="On 127.0.0.1; 0 for any free one.")
@master_option
@settings_options
def command(loaded: Loaded, port: int, master: str | None) -> None:
    """Serve the lake's tables to notebooks and to `acktrail sql --connect`, by Spark Connect.

    It listens on 127.0.0.1 only, and asks each client for a random token that is printed once.
    Whoever has the token can run any code as this user: give the store's read-only credentials to
    this process, and see docs/sql.md. ^C or SIGTERM ends it.

    Example:

    \b
        acktrail serve --lake ./lake
        acktrail sql --connect "SELECT count(*) FROM loss_incidents"
    """
    from acktrail.operate.sql_serve import serve

    serve(loaded, lake_to_ask(loaded), master, port)
