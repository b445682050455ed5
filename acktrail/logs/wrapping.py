"""What stands around a line of a log, on bytes: container runtimes, syslog, terminals; and whether
a line has a header of its own."""

from __future__ import annotations

import re

_LEVEL = (
    rb"(?:TRACE|DEBUG|INFO|NOTICE|WARN|WARNING|ERROR|ERR|FATAL|SEVERE|CRITICAL|CRIT|EMERG|ALERT"
    rb"|trace|debug|info|warn|warning|error|fatal)"
)
_MONTH = rb"(?:Jan|Feb|Mar|Apr|May|Jun|Jul|Aug|Sep|Oct|Nov|Dec)[a-z]{0,6}\.?"
_HEADER = re.compile(
    rb"""[>\s]{0,16}
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
