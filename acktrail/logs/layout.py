"""What stands around a message: level, time, logger, thread, and who printed it.

The message decides what an event is; the layout only adds what it can. A head is the text of a
record's first line up to the message.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any

from acktrail.logs import wrapping
from acktrail.logs.times import from_epoch, read_timestamp

MAX_TEXT = 64 * 1024
"""A record is read only this far."""
_HEAD = 320

_LEVEL = re.compile(
    r"(?<![A-Za-z_])(TRACE|DEBUG|INFO|NOTICE|WARN|WARNING|ERROR|FATAL|SEVERE|CRITICAL|CRIT|EMERG|ALERT)\b"
    r"|[\[<] {0,3}((?i:trace|debug|info|notice|warn|warning|error|fatal|critical)) {0,3}[\]>]"
    r"|\b(VRB|DBG|INF|WRN|ERR|FTL|DEBU|ERRO|FATA|PANI)\b"
    r"|\s([DIWE])! "
    r"|\d\dZ?\s{1,4}(trace|debug|info|warn|warning|error|fatal|critical)\s"
    r"|\b(?:level|lvl|severity)=\"?([A-Za-z]{4,8})\b"
    r"|^\s*(trace|debug|info|warn|warning|error|fatal|critical|fail|crit):\s"
)
# klog, CockroachDB, Tornado: W0131 07:00:00.5, W260131 07:00:00.5, [W 260131 07:00:00
_KLOG = re.compile(r"[\s>\[]{0,8}([DIWEF])(?:\d{4}| ?\d{6}) \d\d:\d\d:\d\d")
_SHORT_LEVELS = {"FAIL": "ERROR", "CRIT": "CRITICAL"}
_SHORT_LEVELS |= {"VRB": "TRACE", "DBG": "DEBUG", "INF": "INFO", "WRN": "WARN", "ERR": "ERROR"}
_SHORT_LEVELS |= {
    "FTL": "FATAL",
    "DEBU": "DEBUG",
    "ERRO": "ERROR",
    "FATA": "FATAL",
    "PANI": "FATAL",
}
_SHORT_LEVELS |= {"D": "DEBUG", "I": "INFO", "W": "WARN", "E": "ERROR"}
"""As loggers of .NET and Go shorten them; one letter and a mark: Telegraf."""
_KLOG_LEVELS = {"D": "DEBUG", "I": "INFO", "W": "WARN", "E": "ERROR", "F": "FATAL"}
_LOGGER = re.compile(
    r"(?<![\w.$/])((?:[a-z_][\w$]{0,40}\.){1,12}(?![\w$]{0,80}(?:Exception|Error)\b)"
    r"[A-Z][\w$]{1,80})(?![\w.(])"
)
# log4j "%m (%c)%n", Connect "(%c:%L)": the last parenthesis, with a dotted name in it.
_LOGGER_TAIL = re.compile(r" ?\(((?:[A-Za-z_$][\w$]{0,60}\.){1,12}[\w$]{1,80})(?::\d{1,6})?\)\s*\Z")
_THREAD = re.compile(r"\[([^\[\]]{0,200}? ?\| [^\[\]]{1,200})\]")
_THREAD_SPRING = re.compile(r"--- (?:\[[^\]]{0,80}\] )?\[ {0,20}([^\]]{1,80})\]")


@dataclass(frozen=True, slots=True)
class Layout:
    """What the layout of a record gave."""

    level: str | None = None
    ts: str | None = None
    logger: str | None = None
    thread: str | None = None


@dataclass(frozen=True, slots=True)
class Text:
    """A record's text as its program printed it, and what the wrapping gave."""

    lines: str
    """With its line breaks."""
    around: Layout
    """What a JSON object or a container runtime said beside the message."""
    fields: dict[str, Any] | None = None
    """The JSON object it was found in."""


def read_head(head: str, first_line: str) -> Layout:
    """Level, time, logger and thread of a record."""
    head = head[:_HEAD]
    level = _LEVEL.search(head)
    name: str | None
    if level is not None:
        name = next(group for group in level.groups() if group is not None).upper()
        name = _SHORT_LEVELS.get(name, name)
    else:
        klog = _KLOG.match(head)
        name = None if klog is None else _KLOG_LEVELS[klog.group(1)]
    logger = _LOGGER.search(head)
    tail = None if logger is not None else _LOGGER_TAIL.search(first_line[-200:])
    thread = _THREAD.search(head) or (_THREAD_SPRING.search(head) if "--- " in head else None)
    found = logger or tail
    return Layout(
        level=name,
        ts=read_timestamp(head),
        logger=None if found is None else found.group(1),
        thread=None if thread is None else thread.group(1).strip(),
    )


def without_logger(text: str) -> str:
    """*text* without the ` (logger)` that log4j's stock layout puts at its end."""
    if not text.rstrip().endswith(")"):
        return text
    return _LOGGER_TAIL.sub("", text)


def client_of_thread(thread: str | None) -> str | None:
    """The client id in a producer's network thread, even where the layout cut the thread's name."""
    if thread is None or "| " not in thread:
        return None
    return thread.partition("| ")[2] or None


def unwrap_record(text: str) -> Text:
    """Take off JSON, Docker, CRI, syslog and terminal colours; join what CRI had split."""
    text = text[:MAX_TEXT].strip("\ufeff\x00")
    if "‹" in text:  # CockroachDB's marks around what is to be redacted
        text = text.replace("‹", "").replace("›", "")
    start = text.lstrip("> \t")
    if start.startswith("{"):
        parsed = _json_lines(start)
        if parsed is not None:
            return parsed
    if "\n" not in text:
        return _unwrap_line(text)
    return _unwrap_lines(text)


def _unwrap_line(text: str) -> Text:
    raw = text.encode("utf-8", "replace")
    inner = wrapping.unwrap(raw)
    if len(inner) == len(raw):
        return Text(text, Layout())
    outer = raw[: len(raw) - len(inner)].decode("utf-8", "replace")
    shown = inner.decode("utf-8", "replace")
    if shown.startswith("{"):
        parsed = _json_lines(shown)
        if parsed is not None:
            return parsed
    return Text(shown, Layout(ts=read_timestamp(outer)))


def _is_wrapped(line: str) -> bool:
    raw = line.encode("utf-8", "replace")
    return len(wrapping.unwrap(raw)) != len(raw)


_CRI_PARTIAL = re.compile(r"\d{4}-\d\d-\d\dT\S{1,30} (?:stdout|stderr) P ")


def _unwrap_lines(text: str) -> Text:
    lines = text.split("\n")
    if "\x1b[" not in text and not any(_is_wrapped(line) for line in lines[:2]):
        return Text(text.replace("\r", ""), Layout())
    shown: list[str] = []
    around: Layout | None = None
    joins = False
    for line in lines:
        inner = _unwrap_line(line.rstrip("\r"))
        around = around or inner.around
        if joins and shown:
            shown[-1] += inner.lines
        else:
            shown.append(inner.lines)
        joins = _CRI_PARTIAL.match(line) is not None
    return Text("\n".join(shown), around or Layout())


_MESSAGE = ("message", "msg", "log", "@message", "textPayload", "body", "short_message", "MESSAGE")
_LEVELS = ("level", "log.level", "severity", "levelname", "lvl", "level_name", "log_level")
_TIMES = ("@timestamp", "timestamp", "time", "ts", "datetime", "date", "timeMillis", "asctime")
_LOGGERS = ("logger_name", "loggerName", "log.logger", "logger", "name", "loggerClassName")
_THREADS = ("thread_name", "threadName", "thread", "process.thread.name")
_STACKS = ("stack_trace", "error.stack_trace", "exception", "throwable", "thrown", "stackTrace")


def _json_lines(text: str) -> Text | None:
    """The message and its context from one or more JSON objects, one per line."""
    if text.startswith("{\n"):  # one object, spread out
        return _json_object(text)
    first: Text | None = None
    more: list[str] = []
    for line in text.split("\n"):
        shown = _json_object(line)
        if shown is None:
            if first is None:
                return None
            more.append(line)
        elif first is None:
            first = shown
        else:
            more.append(shown.lines)
    if first is None or not more:
        return first
    return Text("\n".join([first.lines, *more]), first.around, first.fields)


def _json_object(line: str) -> Text | None:
    line = line.strip()
    if not line.startswith("{"):
        return None
    try:
        fields = json.loads(line)
    except (ValueError, RecursionError):
        return None
    if not isinstance(fields, dict):
        return None
    message = _message(fields)
    if message is None:
        return None
    stack = _stack(fields)
    level = _string(fields, _LEVELS) or _nested(fields, "log", "level")
    around = Layout(
        level=None if level is None else level.upper(),
        ts=_time(fields),
        logger=_string(fields, _LOGGERS) or _nested(fields, "log", "logger"),
        thread=_string(fields, _THREADS),
    )
    message = message.rstrip("\n")
    inner = message.lstrip()
    if inner.startswith("{") and "log" in fields:
        deeper = _json_object(inner)
        if deeper is not None:
            return deeper
    shown = wrapping.unwrap(message.encode("utf-8", "replace")).decode("utf-8", "replace")
    return Text(shown + (_error(fields) if stack is None else f"\n{stack}"), around, fields)


def _message(fields: dict[str, Any]) -> str | None:
    message = _string(fields, _MESSAGE)
    if message is None and isinstance(fields.get("message"), dict):
        return json.dumps(fields["message"], ensure_ascii=False)
    facility = fields.get("fac")
    if message is not None and isinstance(facility, str):  # node-rdkafka's log objects
        return f"{facility} {message}"
    return message


def _string(fields: dict[str, Any], names: Iterable[str]) -> str | None:
    for name in names:
        value = fields.get(name)
        if isinstance(value, str) and value:
            return value
    return None


def _nested(fields: dict[str, Any], outer: str, name: str) -> str | None:
    inside = fields.get(outer)
    value = inside.get(name) if isinstance(inside, dict) else None
    return value if isinstance(value, str) else None


def _stack(fields: dict[str, Any]) -> str | None:
    stack = _string(fields, _STACKS) or _nested(fields, "error", "stack_trace")
    if stack is not None:
        return stack
    thrown = fields.get("thrown")
    if isinstance(thrown, dict):  # log4j2 JsonLayout
        name, message = thrown.get("name"), thrown.get("message")
        return f"{name}: {message}" if isinstance(name, str) else None
    return None


def _error(fields: dict[str, Any]) -> str:
    """Loggers of Go put what went wrong beside the message; kafkajs does, and is asked for it."""
    said = None if fields.get("logger") == "kafkajs" else _string(fields, ("error", "err"))
    return f" ({said})" if said is not None and " " in said else ""


def _time(fields: dict[str, Any]) -> str | None:
    moment = fields.get("instant")
    if isinstance(moment, dict):  # log4j2 JsonLayout and JsonTemplateLayout
        seconds, nanos = moment.get("epochSecond"), moment.get("nanoOfSecond")
        if isinstance(seconds, int) and isinstance(nanos, int):
            return from_epoch(seconds, nanos // 1_000_000)
    for name in _TIMES:
        value = fields.get(name)
        if isinstance(value, str):
            ts = read_timestamp(value)
            if ts is not None:
                return ts
        elif isinstance(value, int) and not isinstance(value, bool) and value > 10**11:
            return from_epoch(value // 1000, value % 1000)
        elif isinstance(value, int | float) and not isinstance(value, bool) and value > 10**8:
            return from_epoch(int(value), int(value * 1000) % 1000)
    return None
