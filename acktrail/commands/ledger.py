"""`acktrail ledger`: every message accounted for."""

from __future__ import annotations

import click

from acktrail.commands.options import format_option, lake_to_ask, settings_options
from acktrail.output import write_rows
from acktrail.settings import Loaded
from acktrail.window import instant

_SHOWN = (
    *("topic", "group", "client_id", "sent", "delivered", "lost", "rejected"),
    *("skipped_by_consumer", "pending", "inconclusive", "duplicates", "out_of_order"),
    *("ghosts", "residual"),
)


@click.command()
@click.option("--blocks", is_flag=True, help="One line per session and block of 32,768 ids.")
@click.option("--cluster", help="Of one cluster.")
@click.option("--topic", help="Of one topic.")
@click.option("--since", metavar="TIME", help="With events at or after, e.g. 2026-01-31T07:00Z.")
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

    One line per topic, audience and client. The audience without a name is the log itself: what
    is stored is delivered to it. `sent` is always the sum of the states; `residual` says if not.

    Example:

    \b
        acktrail ledger --lake ./lake
        acktrail ledger --lake ./lake --topic payments --blocks --format csv
    """
    from acktrail.answers import books
    from acktrail.contracts.gold import DELIVERY_LEDGER

    wanted = books.Wanted(cluster, topic, instant(since) if since else None)
    by = ("cluster", "topic", "group", "client_id", *(("session", "block") if blocks else ()))
    rows = books.accounts(lake_to_ask(loaded, DELIVERY_LEDGER), wanted, by)
    full = books.BLOCK_COLUMNS if blocks else books.LEDGER_COLUMNS
    brief = (*(("session", "block") if blocks else ()), *_SHOWN)
    write_rows(rows, brief if output == "text" else full, output)
