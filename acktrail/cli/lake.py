"""`acktrail lake`: what the lake holds, and its housekeeping."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import asdict
from datetime import datetime
from typing import Any

import click

from acktrail.contracts import TABLES, Table, table_named
from acktrail.errors import UsageError
from acktrail.settings import Loaded
from acktrail.terminal.options import as_of_option, format_option, lake_to_keep, settings_options
from acktrail.terminal.output import write_rows


@click.group()
def command() -> None:
    """List and maintain the lake's tables.

    Example:

    \b
        acktrail lake tables --lake ./lake
        acktrail lake optimize --lake ./lake
        acktrail lake expire --lake ./lake && acktrail lake vacuum --lake ./lake
    """


@command.command()
@format_option
@settings_options
def tables(loaded: Loaded, output: str) -> None:
    """List every table with its version, rows, files and bytes.

    Example:

    \b
        acktrail lake tables --lake ./lake --format json
    """
    from acktrail.lake import housekeeping

    found = [asdict(size) for size in housekeeping.sizes(lake_to_keep(loaded))]
    write_rows(found, ("table", "layer", "version", "rows", "files", "bytes"), output)


@command.command()
@click.argument("names", nargs=-1)
@format_option
@settings_options
def optimize(loaded: Loaded, names: tuple[str, ...], output: str) -> None:
    """Compact small files and shorten long logs; readers and jobs see the same rows.

    Files that a job has not read yet are left for the next time. A log keeps its newest 2,000
    versions, and all that a job has still to read.

    Example:

    \b
        acktrail lake optimize log_records --lake ./lake
    """
    from pipelines import upkeep
    from pipelines.registry import JOBS

    lake = lake_to_keep(loaded)
    _each(names, lambda table: upkeep.optimize(lake, table, JOBS), output)


@command.command()
@click.argument("names", nargs=-1)
@as_of_option
@format_option
@settings_options
def expire(loaded: Loaded, names: tuple[str, ...], as_of: datetime, output: str) -> None:
    """Delete rows past each table's retention.

    Example:

    \b
        acktrail lake expire --lake ./lake --as-of 2026-01-31T00:00Z
    """
    from acktrail.lake import housekeeping

    lake = lake_to_keep(loaded)

    def one(table: Table) -> dict[str, int]:
        limit = housekeeping.first_kept(table, as_of)
        return {"rows_deleted": 0} if limit is None else housekeeping.expire(lake, table, limit)

    _each(names, one, output)


@command.command()
@click.argument("names", nargs=-1)
@format_option
@settings_options
def vacuum(loaded: Loaded, names: tuple[str, ...], output: str) -> None:
    """Remove files that no version of the last seven days uses.

    Example:

    \b
        acktrail lake vacuum --lake ./lake
    """
    from acktrail.lake import housekeeping

    lake = lake_to_keep(loaded)
    _each(names, lambda table: housekeeping.vacuum(lake, table), output)


def _each(names: tuple[str, ...], one: Callable[[Table], dict[str, int]], output: str) -> None:
    chosen = TABLES
    if names:
        try:
            chosen = tuple(table_named(name) for name in names)
        except KeyError as error:
            known = ", ".join(table.name for table in TABLES)
            raise UsageError(f"There is no table {error.args[0]}. There are: {known}.") from None
    rows: list[dict[str, Any]] = [{"table": table.name, **one(table)} for table in chosen]
    counted = sorted({key for row in rows for key in row} - {"table"})
    write_rows(rows, ("table", *counted), output)
