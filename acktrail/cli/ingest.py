"""`acktrail ingest`: evidence that lies in files, into the lake at once."""

from __future__ import annotations

from datetime import UTC, datetime
from pathlib import Path

import click

from acktrail.settings import Loaded
from acktrail.terminal.options import format_option, open_lake, settings_options
from acktrail.terminal.output import write_rows

_FILE = click.Path(exists=True, dir_okay=False, path_type=Path)
_DIRECTORY = click.Path(exists=True, file_okay=False, path_type=Path)


@click.group()
def command() -> None:
    """Read finished files into the lake, each piece exactly once.

    For files and topics that keep growing, use `acktrail agent`.

    Example:

    \b
        acktrail ingest audits orders-2026-01-31.parquet --lake ./lake
        acktrail ingest lab runs/acks-1-leader-crash --lake ./lake
    """


@command.command()
@click.argument("files", nargs=-1, required=True, type=_FILE)
@format_option
@settings_options
def audits(loaded: Loaded, files: tuple[Path, ...], output: str) -> None:
    """Read audits: one row per message, as Parquet or JSON lines.

    A row is one message seen at one place: session, topic, seq, tier (sent, acked, failed,
    indeterminate, in_log, delivered ...) and time; with group, partition, offset, leader_epoch and
    error where they apply. A row of tier consumed is a range that a group has read: group,
    partition, first_offset and last_offset; member and assignment where known. Times are
    milliseconds, or text with a zone. docs/wire.md lists all columns.

    Give finished files: a file is known by its whole content, and reading one again writes
    nothing. A file with a wrong row is refused whole.

    Example:

    \b
        acktrail ingest audits sent.parquet received.jsonl --lake ./lake
    """
    from ingest.agent.lean import without_pandas
    from ingest.messages.message_files import ingest_files

    without_pandas()
    lake = open_lake(loaded)
    done = ingest_files(files, lake, loaded.settings.cluster, datetime.now(UTC))
    write_rows(done, ("file", "rows", "new", "reports"), output)


@command.command()
@click.argument("directory", type=_DIRECTORY)
@click.option("--cluster", help="Cluster in the rows; default: `cluster` in the settings.")
@format_option
@settings_options
def lab(loaded: Loaded, directory: Path, cluster: str | None, output: str) -> None:
    """Read the recorded evidence of a lab run: logs, metrics, cluster states, audits.

    Example:

    \b
        acktrail ingest lab runs/acks-1-leader-crash --lake ./lake
    """
    from ingest.agent.lean import without_pandas
    from ingest.replay import replay

    without_pandas()
    counts = replay(directory, open_lake(loaded), cluster or loaded.settings.cluster)
    written = [{"table": table, "rows": count} for table, count in counts.items()]
    write_rows(written, ("table", "rows"), output)
