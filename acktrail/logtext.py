"""What a log is made of, on bytes: which lines may be evidence, and which lines are one record.

Shared by the agents, which keep records, and by the reading, which understands them. A record is
one event with its continuation lines: a stack trace, an exception printed without `at` lines
(Kafka's own exceptions have no frames), a `ProducerConfig values:` block, the second line of an
acks=0 close.

A line that carries a header (a time, a level, a librdkafka `%3|`, a JSON object) opens a record. A
line without one belongs to the record before it, if that record has a header; without any header in
sight only indented lines, exceptions and blank lines continue a record, so that a program which
prints bare sentences gives one record per sentence.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator
from dataclasses import dataclass

from acktrail.evidence import EVIDENCE

MAX_LINE_BYTES = 64 * 1024
"""A longer line is read only this far."""
MAX_RECORD_BYTES = 256 * 1024
MAX_RECORD_LINES = 1_000
"""A record is closed at either limit, so that no text can grow a record without bound."""

_LEVEL = (
    rb"(?:TRACE|DEBUG|INFO|NOTICE|WARN|WARNING|ERROR|ERR|FATAL|SEVERE|CRITICAL|CRIT|EMERG|ALERT"
    rb"|trace|debug|info|warn|warning|error|fatal)"
)
_MONTH = rb"(?:Jan|Feb|Mar|Apr|May|Jun|Jul|Aug|Sep|Oct|Nov|Dec)[a-z]{0,6}\.?"
_HEADER = re.compile(
    rb"""[>\s]{0,16}(?:(?://|\#|\*|--)\s{0,4})?
    (?: [\[("'<]{0,3}
        (?: \d{4}[-/.]\d\d[-/.]\d\d(?:[T\s,:_]|\Z|\])     # 2024-05-01 10:00:00,123
          | \d\d?[-/.]\d\d?[-/.]\d{2,4}[\sT,]+\d\d?:\d\d  # 01/05/2024 10:00
          | \d\d?[-/\s]%(month)s[-/\s,]                   # 01 May 2024, 01-May-2024
          | (?:(?:Mon|Tue|Wed|Thu|Fri|Sat|Sun),?\s)?%(month)s\s{1,2}\d\d?,?\s   # May  1 10:00:00
          | \d\d:\d\d:\d\d(?:[.,\s\]|]|\Z)                # 10:00:00.123
          | \d{8}[\sT-]?\d\d:?\d\d                        # 20240501 10:00
          | 1\d{9}(?:\.\d{1,9}|\d{3})?[\s|\]]             # seconds or milliseconds since 1970
          | %(level)s[\]\s:|,!)-]                         # WARN [Producer ...
        )
      | [IWEF]\d{4}\s\d\d:\d\d:\d\d                       # klog
      | \[\s?%(level)s\s{0,2}\]                           # [WARN ]
      | %%[0-7]\|                                         # librdkafka
      | %%\s[A-Z]                                         # kcat
      | \{\s{0,2}"                                        # a JSON object
      | (?:time|ts|level|timestamp|lvl|msg)=              # logfmt
    )"""
    % {b"level": _LEVEL, b"month": _MONTH},
    re.VERBOSE,
)
_CONTINUES = re.compile(
    rb"""\s                                               # indented, or blank
    | \Z
    | Caused\ by:
    | Suppressed:
    | (?:at|\.\.\.)\ 
    | Wrapped\ by:
    | (?:Error:|Error\ Message:|topic-partition|splitting\ and|Going\ to\ request)\s
    | retrying\ \(\d
    | (?:could\ not\ be\ established|Broker\ may\ not|Node\ may\ not)[\s.]
    | (?:record\(s\)|(?:\d{1,12}\ )?ms\ has|passed\ since|on\ topic-partition|with\ correlation
        |due\ to)\s
    | Topic\ and\ partition\ to\ exceptions:              # acks=0 close, second line
    | [Cc]urrent\ leader\b                                # a truncation refused, wrapped
    | \}
    """,
    re.VERBOSE,
)
_EXCEPTION = re.compile(
    rb"(?:[a-z_][\w$]{0,63}\.){1,12}[A-Z][\w$]{0,127}(?:Exception|Error|Throwable)\b"
)
# java.util.logging: a line of time, class and method, then "WARNING: message".
_JUL_FIRST = re.compile(rb"[A-Z][a-z]{2} \d\d?, \d{4} .{0,20}[AP]M \S{1,200} \S{1,100}\Z")
_JUL_SECOND = re.compile(rb"(?:SEVERE|WARNING|INFO|CONFIG|FINE|FINER|FINEST): ")
# Sentences that never have an exception of their own: one that follows was printed by another.
_WHOLE = re.compile(
    rb"Got error produce response|Received (?:invalid metadata|unknown topic)"
    rb"|could not be established|disconnected"
)
_OPENS_BARE = re.compile(
    rb"Got error produce response|elivery failed|ailed to deliver|state change to \[retrying"
    rb"|Retrying batch|Failed to produce message|^KafkaTimeoutError|^KafkaJS|^% "
)

# A comment's marker, and how far its text is indented.
_COMMENT = re.compile(rb"[\ \t]{0,40}(\#|//|\*|--)([\ \t]{0,40})")
_BROKEN_OFF = re.compile(rb"Exception:\s{0,8}\Z")
_NAME_ALONE = re.compile(rb"\A(?:[\w.]{0,60}\.)?[A-Z]\w{4,50}Exception\s{0,8}\Z")
# A line that ends with who speaks: the words come on the next one.
_SPEAKER_ALONE = re.compile(rb"\[Producer clientId=[^\]]{1,60}\]\s{0,4}\Z")
# The last line of a Python traceback: kafka.errors.NoBrokersAvailable: NoBrokersAvailable
_RAISED = re.compile(rb"(?:[a-z_]\w{0,60}\.){0,8}[A-Z]\w{2,60}(?::\s|\Z)")
_MID_SENTENCE = re.compile(rb"[a-z\d),][a-z)]\s{0,4}\Z")

_ANSI = re.compile(rb"\x1b\[[0-9;]{0,16}[A-Za-z]")
_WRAPPERS = re.compile(
    rb"""
      (?P<cri>\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{1,9}(?:Z|[+-]\d\d:\d\d)\ (?:stdout|stderr)\ [FP]\ )
    | (?P<syslog>(?:<\d{1,3}>)?
        (?:%(month)s\s{1,2}\d\d?\ \d\d:\d\d:\d\d|\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d[^\ ]{0,16})
        \ (?!%(level)s\ )[\w.-]{1,64}\ [\w./@-]{1,64}(?:\[\d{1,8}\])?:\ )
    | (?P<desktop>\d{4}-\d\d-\d\d\ \d\d:\d\d:\d\d\ 
        (?=\[\d{4}-\d\d-\d\d[\ T]|[\ \t]{1,16}[a-z][\w.]{1,80}\ =|\ \([a-z]))
    | (?P<kubectl>\[pod/[^\]\s]{1,200}\]\ )
    | (?P<compose>(?!%(level)s\ )[A-Za-z][\w.-]{0,63}\ {1,40}\|\ {1,2})
    """
    % {b"month": _MONTH, b"level": _LEVEL},
    re.VERBOSE,
)
_DOCKER = re.compile(rb'\{"log":\s?"((?:[^"\\]|\\.)*)"')


@dataclass(frozen=True, slots=True)
class Record:
    """One event's lines as they stood in the file."""

    line: int
    """Number of its first line, from 1."""
    position: int
    """Byte offset of its first line."""
    text: bytes
    """Its lines, joined with a newline, without the last one's line end."""


def may_be_evidence(text: bytes) -> bool:
    """Whether the reading should see this text at all."""
    return any(literal in text for literal in EVIDENCE)


def unwrap(line: bytes) -> bytes:
    """The line as printed, without what Docker, CRI, syslog or a terminal put around it."""
    if line.startswith(b'{"log":'):
        inside = _DOCKER.match(line)
        if inside is None:
            return line
        return _unescape(inside.group(1)).rstrip(b"\r\n")
    wrapper = _WRAPPERS.match(line)
    if wrapper is not None:
        line = line[wrapper.end() :]
    if b"\x1b[" in line:
        line = _ANSI.sub(b"", line)
    return line


def has_header(line: bytes) -> bool:
    """Whether this unwrapped line has a time, a level or another mark of a first line."""
    return _HEADER.match(line) is not None


def is_continuation(line: bytes) -> bool:
    """Whether this line surely belongs to the one before it, whatever that is."""
    line = unwrap(line)
    return _CONTINUES.match(line) is not None and not has_header(line)


class Joiner:
    """Says of one line after the other whether it opens a record."""

    def __init__(self) -> None:
        self._in_record = False
        self._headed = False
        self._exception_first = False
        self._jul_first = False
        self._first = b""
        self._comment: re.Match[bytes] | None = None
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
            self._comment = _COMMENT.match(shown)
            said = shown if self._comment is None else shown[self._comment.end() :]
            self._exception_first = _EXCEPTION.match(said) is not None
            self._first = shown
            self._jul_first = headed and _JUL_FIRST.match(shown) is not None
            self._lines, self._bytes = 1, size
        else:
            self._jul_first = False
            self._lines += 1
            self._bytes += size
        self._last = shown[-96:]
        return opens

    def _continues(self, line: bytes) -> bool:
        if _CONTINUES.match(line) is not None or self._goes_on(line):
            return True
        if _OPENS_BARE.search(line) is not None:
            return False
        comment = _COMMENT.match(line) if self._comment is not None else None
        if comment is not None:
            line = line[comment.end() :]
        if _EXCEPTION.match(line) is not None:
            return not self._exception_first and _WHOLE.search(self._first) is None
        # What follows a comment is no part of it, unless it is one too.
        return self._headed and (self._comment is None or comment is not None)

    def _goes_on(self, line: bytes) -> bool:
        """Whether a quoted exception or comment was broken at this line's beginning."""
        if _BROKEN_OFF.search(self._last) is not None:
            return True
        if _SPEAKER_ALONE.search(self._last) is not None:
            return True
        if self._first.startswith(b"Traceback (") and _RAISED.match(line) is not None:
            return True
        speaks = _EXCEPTION.match(line) is not None or _OPENS_BARE.search(line) is not None
        if not speaks and _NAME_ALONE.match(self._last) is not None:
            return True
        comment = _COMMENT.match(line)
        if comment is not None:
            first = self._comment
            return (
                first is not None
                and first.group(1) == comment.group(1)
                and len(comment.group(2).expandtabs()) > len(first.group(2).expandtabs())
            )
        return (
            self._exception_first
            and not self._headed
            and _MID_SENTENCE.search(self._last) is not None
            and line[:1].islower()
            and not speaks
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


_ESCAPES = {
    b'"': b'"',
    b"\\": b"\\",
    b"/": b"/",
    b"b": b"\b",
    b"f": b"\f",
    b"n": b"\n",
    b"r": b"\r",
    b"t": b"\t",
}
_ESCAPE = re.compile(rb'\\(?:u([0-9a-fA-F]{4})|(["\\/bfnrt]))')


def _unescape(text: bytes) -> bytes:
    if b"\\" not in text:
        return text

    def plain(match: re.Match[bytes]) -> bytes:
        if match.group(1) is not None:
            return chr(int(match.group(1), 16)).encode("utf-8", "replace")
        return _ESCAPES[match.group(2)]

    return _ESCAPE.sub(plain, text)
