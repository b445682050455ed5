"""`acktrail sql`: ad hoc questions, read-only."""

from __future__ import annotations

import re
import sys
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING

import click

from acktrail.errors import UsageError
from acktrail.settings import Loaded
from acktrail.terminal.options import above_zero, lake_to_ask, master_option, settings_options
from acktrail.terminal.output import write_line
from acktrail.terminal.results import FORMATS, format_of, write_lines, write_results

if TYPE_CHECKING:
    from pipelines.adhoc.ask import SqlAnswer
    from pipelines.adhoc.saved import SavedQuestion

OWN_QUERIES = Path("~/.config/acktrail/queries")
"""Saved questions of the user, where this directory exists."""


@click.command()
@click.argument("query", required=False)
@click.option("-f", "--file", metavar="FILE", help="Read the query from FILE.")
@click.option("-o", "--output-file", metavar="FILE", help="Write the rows to FILE, whole.")
@click.option(
    "--format",
    "chosen",
    type=click.Choice(FORMATS),
    help="Default: by the name of -o FILE, else text.",
)
@click.option("--limit", default=1000, show_default=True, help="Most rows; 0 for all.")
@click.option(
    "--timeout",
    "timeout_s",
    default=600.0,
    show_default=True,
    callback=above_zero,
    help="Seconds after which a query is stopped.",
)
@click.option("--list", "listed", is_flag=True, help="List the saved questions.")
@click.option("--param", "params", multiple=True, metavar="NAME=VALUE", help="Value of :NAME.")
@click.option("--queries", multiple=True, metavar="DIR", help="A directory of saved questions.")
@click.option("--connect", is_flag=True, help="Ask a running `acktrail serve`; no JVM starts.")
@master_option
@settings_options
def command(
    loaded: Loaded,
    query: str | None,
    file: str | None,
    output_file: str | None,
    chosen: str | None,
    limit: int,
    timeout_s: float,
    listed: bool,
    params: tuple[str, ...],
    queries: tuple[str, ...],
    connect: bool,
    master: str | None,
) -> None:
    """Query the lake with Spark SQL. A query can read the lake's tables and nothing else.

    QUERY is SQL, the name of a saved question, or - to read SQL from standard input. Without QUERY
    a prompt opens, in which answers come in about a second. ^C stops a query.

    Example:

    \b
        acktrail sql --lake ./lake                    # a prompt; \\? shows its commands
        acktrail sql --lake ./lake "SELECT error, count(*) FROM producer_events GROUP BY error"
        acktrail sql --list
        acktrail sql --lake ./lake lost-by-cause --param topic=orders
        acktrail sql --lake ./lake -f question.sql -o answer.parquet
        acktrail sql --lake ./lake "SELECT * FROM loss_incidents TIMESTAMP AS OF '2026-01-31'"
    """
    from acktrail.operate.sql_sources import question_source
    from pipelines.adhoc import saved

    own = OWN_QUERIES.expanduser()
    directories = [*([own] if own.is_dir() else []), *(Path(name) for name in queries)]
    known = saved.questions(directories)
    if listed:
        _list(known)
        return
    parameters = _given(params)
    text = _text(query, file)
    question = _saved(text, known) if text and query and not file else None
    output = format_of(chosen, output_file)
    if text is None and (output_file or chosen or params):
        raise UsageError("Give the query: acktrail sql … QUERY, or -f FILE.")
    lake = None if connect else lake_to_ask(loaded)
    with question_source(loaded, lake, master, connect=connect) as source:
        if text is None:
            from acktrail.operate.sql_prompt import Prompt

            Prompt(source, known, limit=limit, timeout_s=timeout_s).run()
            return
        values: Mapping[str, str] = question.values(parameters) if question else parameters
        text = question.text if question else text
        answer = source.ask(text, limit=limit, timeout_s=timeout_s, parameters=values)
    show(answer, output, output_file, limit)


def show(answer: SqlAnswer, output: str, file: str | None, limit: int) -> None:
    """Write *answer* where the user wants it."""
    if answer.plain_text and output == "text" and file is None:
        write_lines(answer.rows)
    else:
        write_results(answer.rows, output, file)
    if answer.more:
        click.echo(f"Only the first {limit} rows are shown; --limit 0 shows all.", err=True)


def _list(known: Mapping[str, SavedQuestion]) -> None:
    widest = max(len(name) for name in known)
    for name, question in known.items():
        write_line(f"{name:<{widest}}  ", question.question)
        for parameter in question.parameters:
            default = "" if parameter.default is None else f" (default {parameter.default})"
            write_line(f"{'':<{widest}}    ", f":{parameter.name} {parameter.meaning}{default}")


def _given(given: Sequence[str]) -> dict[str, str]:
    values = {}
    for each in given:
        name, equals, value = each.partition("=")
        if not equals or not re.fullmatch(r"\w+", name):
            raise UsageError(f"--param {each!r}: write --param NAME=VALUE.")
        values[name] = value
    return values


def _text(query: str | None, file: str | None) -> str | None:
    """The query; None where a person at a terminal gave none."""
    if query and file:
        raise UsageError("Give either QUERY or -f FILE.")
    if file:
        try:
            return Path(file).read_text(encoding="utf-8")
        except (OSError, UnicodeDecodeError) as error:
            reason = getattr(error, "strerror", None) or "it is not a text in UTF-8"
            raise UsageError(f"{file} cannot be read: {reason}.") from error
    if query == "-" or (query is None and not sys.stdin.isatty()):
        return sys.stdin.read()
    return query


def _saved(text: str, known: Mapping[str, SavedQuestion]) -> SavedQuestion | None:
    """The saved question that *text* names; None for a query."""
    from pipelines.adhoc.saved import question_named

    is_name = re.fullmatch(r"[A-Za-z][\w-]*", text.strip()) is not None
    return question_named(text.strip(), known) if is_name else None
