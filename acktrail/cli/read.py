"""`acktrail read`: the events in a log, at once, without lake or Spark."""

from __future__ import annotations

import gzip
import io
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from itertools import chain
from pathlib import Path
from typing import IO, TYPE_CHECKING, Any

import click

from acktrail.errors import UsageError
from acktrail.terminal.options import format_option
from acktrail.terminal.output import write_rows

if TYPE_CHECKING:
    from acktrail.logs.event import Event
    from acktrail.logs.records import Record

_MAIN = (
    "file", "line", "kind", "level", "ts", "client_id", "topic", "partition", "correlation_id",
    "attempts_left", "error", "records", "elapsed_ms",
)  # fmt: skip
_REST = (
    "detail", "side", "retriable", "category", "message", "transactional_id", "group", "node",
    "broker", "topic_id", "offset", "high_watermark", "leader", "leader_epoch", "isr_before",
    "isr_after", "client_version", "logger", "thread", "settings",
)  # fmt: skip
_TABLE = (
    "line", "ts", "level", "kind", "client_id", "topic", "partition", "attempts_left", "error",
    "records", "elapsed_ms",
)  # fmt: skip
_PIECE = 1 << 20
_LOOKED_AT = 512
_FEWEST = 8
"""Characters that tell UTF-16 without a mark."""


@click.command()
@click.argument("files", nargs=-1, required=True, metavar="FILE... | -")
@click.option("--all", "everything", is_flag=True, help="Also consumers, ISR growth, versions ...")
@click.option("--unread", is_flag=True, help="Only what looks like evidence and cannot be read.")
@format_option
def command(files: tuple[str, ...], everything: bool, unread: bool, output: str) -> None:
    """Show the events in a log: retries, expiries, failures, elections, settings.

    Reads any layout, gzip too; `-` is standard input. Prints one line per event: a table of the
    columns that have values, or with --format json an object with every field that was found.

    Example:

    \b
        acktrail read app.log server.log.gz
        kubectl logs orders-0 | acktrail read - --format json
    """
    columns: tuple[str, ...] = _TABLE if output == "text" else (*_MAIN, *_REST)
    if output == "text" and len(files) > 1:
        columns = ("file", *columns)
    refused: list[UsageError] = []
    rows: Iterator[dict[str, Any]] = _read_files(files, everything, unread, refused)
    if unread:
        columns = ("file", "line", "reason", "text")
    first = next(rows, None)
    if first is not None:
        rows = chain([first], rows)
    elif output == "text" and not refused:
        click.echo(f"No event was found in {', '.join(files)}.", err=True)
    if output == "text":
        listed = list(rows)
        columns = tuple(c for c in columns if any(row.get(c) not in (None, "") for row in listed))
        rows = iter(listed)
    try:
        if first is not None or output != "text":
            write_rows(rows, columns, output)
        sys.stdout.flush()
    except BrokenPipeError:
        sys.stderr.close()
        sys.exit(0)
    if refused:
        raise UsageError("\n".join(str(error) for error in refused))


def _read_files(
    files: tuple[str, ...], everything: bool, unread: bool, refused: list[UsageError]
) -> Iterator[dict[str, Any]]:
    """The events of all files that can be read; the others are named at the end."""
    for file in files:
        try:
            yield from _read_file(file, everything, unread)
        except UsageError as error:
            refused.append(error)


def _read_file(file: str, everything: bool, unread: bool) -> Iterator[dict[str, Any]]:
    from acktrail.logs.event import BACKGROUND, Event, UnreadRecord
    from acktrail.logs.pairing import RetryLines, mark_unpaired
    from acktrail.logs.prefilter import may_be_evidence
    from acktrail.logs.reader import read_record
    from acktrail.logs.records import join_records

    version: str | None = None
    retries = RetryLines()
    with _open(file) as stream:
        for record in join_records(_lines(stream, file)):
            if not may_be_evidence(record.text):
                continue
            event = read_record(record.text.decode("utf-8", "replace"))
            if isinstance(event, UnreadRecord) and unread:
                yield _unread_row(file, record, event.reason)
            elif isinstance(event, Event) and not unread:
                version = event.version or version
                if everything or event.kind not in BACKGROUND:
                    yield _row(file, record, mark_unpaired(event, retries), version)


def _row(file: str, record: Record, event: Event, version: str | None) -> dict[str, Any]:
    from acktrail.logs.kafka_errors import category, retriable

    return {
        "file": file,
        "line": record.line,
        **event.as_dict(),
        "side": event.side,
        "retriable": retriable(event.error, version),
        "category": category(event.error),
        "client_version": event.version or version,
    }


def _unread_row(file: str, record: Record, reason: str) -> dict[str, Any]:
    text = record.text[:400].decode("utf-8", "replace")
    return {"file": file, "line": record.line, "reason": reason, "text": text}


@contextmanager
def _open(file: str) -> Iterator[IO[bytes]]:
    if file == "-":
        if sys.stdin is None:
            raise UsageError("Standard input is closed. Give files, or a pipe behind `-`.")
        yield _decoded(sys.stdin.buffer, file)
        return
    path = Path(file)
    if path.is_dir():
        raise UsageError(f"{file} is a directory. Give files, e.g. {file}/*.log.")
    try:
        raw = path.open("rb")
    except OSError as error:
        raise UsageError(f"{file} cannot be read: {error.strerror}.") from error
    with raw:
        yield _decoded(raw, file)


def _decoded(raw: IO[bytes], file: str) -> IO[bytes]:
    """The bytes of a log: gunzipped, and as UTF-8 where it is UTF-16, with its mark or without."""
    stream = raw if isinstance(raw, io.BufferedReader) else io.BufferedReader(raw)  # type: ignore[type-var]
    start = stream.peek(2)[:2]
    if start == b"\x1f\x8b":
        return io.BufferedReader(gzip.GzipFile(filename=file, fileobj=stream))
    wide = _wide(stream.peek(_LOOKED_AT)[:_LOOKED_AT])
    if wide is not None:
        return io.BytesIO(stream.read().decode(wide, "replace").encode("utf-8", "replace"))
    return stream


def _wide(start: bytes) -> str | None:
    """UTF-16's name, if a mark says so, or if every other byte of plain text is zero."""
    if start[:2] in (b"\xff\xfe", b"\xfe\xff"):
        return "utf-16"
    half = len(start) // 2
    if half < _FEWEST or b"\x00" not in start:
        return None
    for name, zeros, others in (
        ("utf-16-le", start[1::2], start[0::2]),
        ("utf-16-be", start[0::2], start[1::2]),
    ):
        if zeros.count(0) > 0.9 * half and others.count(0) < 0.1 * half:
            return name
    return None


def _lines(stream: IO[bytes], file: str) -> Iterator[bytes]:
    """Lines with their ends; one longer than a megabyte comes in its first piece only."""
    while True:
        try:
            line = stream.readline(_PIECE)
        except (OSError, EOFError) as error:
            raise UsageError(f"{file} cannot be read to its end: {error}.") from error
        if not line:
            return
        yield line
        while len(line) == _PIECE and not line.endswith(b"\n"):
            line = stream.readline(_PIECE)
