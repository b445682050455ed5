"""Which lines of a log are one record, on bytes.

Shared by the agents, which keep records, and by the reading, which understands them. A record is
one event with its continuation lines: a stack trace, an exception printed without `at` lines
(Kafka's own exceptions have no frames), a `ProducerConfig values:` block, the second line of an
acks=0 close.

A line that carries a header (a time, a level, a librdkafka `%3|`, a JSON object) opens a record. A
line without one belongs to the record before it, if that record has a header; without any header in
sight only indented lines, exceptions, blank lines and lines on which a pattern's sentence goes on
continue a record, so that a program which prints bare sentences gives one record per sentence.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator
from dataclasses import dataclass

from acktrail.logs.patterns import PATTERNS
from acktrail.logs.wrapping import has_header, unwrap

MAX_LINE_BYTES = 64 * 1024
"""A longer line is read only this far."""
MAX_RECORD_BYTES = 256 * 1024
MAX_RECORD_LINES = 1_000
"""A record is closed at either limit, so that no text can grow a record without bound."""


def _any_of(expressions: Iterable[str]) -> re.Pattern[bytes]:
    return re.compile("|".join(dict.fromkeys(expressions)).encode("ascii"))


_CONTINUES = _any_of(
    (
        r"\s",  # indented, or blank
        r"\Z",
        "Caused by:",
        "Suppressed:",
        "Wrapped by:",
        r"(?:at|\.\.\.) ",
        r"\}",
        *(expression for p in PATTERNS for expression in p.continues),
    )
)
_OPENS_BARE = _any_of(expression for p in PATTERNS for expression in p.opens)
_ALONE = _any_of(re.escape(p.alone) for p in PATTERNS if p.alone)
_EXCEPTION = re.compile(
    rb"(?:[a-z_][\w$]{0,63}\.){1,12}[A-Z][\w$]{0,127}(?:Exception|Error|Throwable)\b"
)
# java.util.logging: a line of time, class and method, then "WARNING: message".
_JUL_FIRST = re.compile(rb"[A-Z][a-z]{2} \d\d?, \d{4} .{0,20}[AP]M \S{1,200} \S{1,100}\Z")
_JUL_SECOND = re.compile(rb"(?:SEVERE|WARNING|INFO|CONFIG|FINE|FINER|FINEST): ")
_BROKEN_OFF = re.compile(rb"Exception:\s{0,8}\Z")
_NAME_ALONE = re.compile(rb"\A(?:[\w.]{0,60}\.)?[A-Z]\w{4,50}Exception\s{0,8}\Z")
# A line that ends with the client's name: its words come on the next one.
_SPEAKER_ALONE = re.compile(rb"\[Producer clientId=[^\]]{1,60}\]\s{0,4}\Z")
# The last line of a Python traceback: kafka.errors.NoBrokersAvailable: NoBrokersAvailable
_RAISED = re.compile(rb"(?:[a-z_]\w{0,60}\.){0,8}[A-Z]\w{2,60}(?::\s|\Z)")
_MID_SENTENCE = re.compile(rb"[a-z\d),][a-z)]\s{0,4}\Z")


@dataclass(frozen=True, slots=True)
class Record:
    """One event's lines as they stood in the file."""

    line: int
    """Number of its first line, from 1."""
    position: int
    """Byte offset of its first line."""
    text: bytes
    """Its lines, joined with a newline, without the last one's line end."""


class Joiner:
    """Says of one line after the other whether it opens a record."""

    def __init__(self) -> None:
        self._in_record = False
        self._headed = False
        self._exception_first = False
        self._has_exception = False
        self._jul_first = False
        self._first = b""
        self._last = b""
        self._lines = 0
        self._bytes = 0

    def opens(self, line: bytes) -> bool:
        """Whether *line* (without its line end) opens a record; else it continues the open one."""
        size = len(line) + 1
        shown = unwrap(line[:MAX_LINE_BYTES])
        headed = has_header(shown)
        opens = (
            not self._in_record
            or (headed and not (self._jul_first and _JUL_SECOND.match(shown)))
            or self._lines >= MAX_RECORD_LINES
            or self._bytes + size > MAX_RECORD_BYTES
            or not (headed or self._continues(shown))
        )
        if opens:
            self._in_record = True
            self._headed = headed
            self._exception_first = _EXCEPTION.match(shown) is not None
            self._has_exception = self._exception_first
            self._first = shown
            self._jul_first = headed and _JUL_FIRST.match(shown) is not None
            self._lines, self._bytes = 1, size
        else:
            self._jul_first = False
            self._has_exception |= _EXCEPTION.match(shown) is not None
            self._lines += 1
            self._bytes += size
        self._last = shown[-96:]
        return opens

    def _continues(self, line: bytes) -> bool:
        if _CONTINUES.match(line) is not None or self._goes_on(line):
            return True
        if _OPENS_BARE.search(line) is not None:
            return False
        if _EXCEPTION.match(line) is not None:
            return not self._has_exception and _ALONE.search(self._first) is None
        return self._headed

    def _goes_on(self, line: bytes) -> bool:
        """Whether an exception's sentence was broken at this line's beginning."""
        if _BROKEN_OFF.search(self._last) is not None:
            return True
        if _SPEAKER_ALONE.search(self._last) is not None:
            return True
        if self._first.startswith(b"Traceback (") and _RAISED.match(line) is not None:
            return True
        begins = _EXCEPTION.match(line) is not None or _OPENS_BARE.search(line) is not None
        if not begins and _NAME_ALONE.match(self._last) is not None:
            return True
        return (
            self._exception_first
            and not self._headed
            and _MID_SENTENCE.search(self._last) is not None
            and line[:1].islower()
            and not begins
        )


def join_records(lines: Iterable[bytes], *, line: int = 1, position: int = 0) -> Iterator[Record]:
    """The records of a log, from its lines with their line ends."""
    joiner = Joiner()
    parts: list[bytes] = []
    first, start = line, position
    for raw in lines:
        text = raw.rstrip(b"\r\n")
        if joiner.opens(text):
            if parts:
                yield Record(first, start, b"\n".join(parts))
            parts, first, start = [], line, position
        parts.append(text[:MAX_LINE_BYTES])
        line += 1
        position += len(raw)
    if parts:
        yield Record(first, start, b"\n".join(parts))
