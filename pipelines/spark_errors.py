"""What Spark's errors mean, in a line or two: no stack trace, the place in the query, near names.

Spark raises one class for what analysis finds, and Py4J's own for what fails in a task, with the
reason several causes deep. Both carry an error condition (`DIVIDE_BY_ZERO`) and its parameters.
"""

from __future__ import annotations

import logging
import re
from collections.abc import Callable, Sequence
from typing import Any

from acktrail.nearest import did_you_mean, nearest, suggestion

_PLACE = re.compile(r"line (\d+),? (pos|position) (\d+)")
_HEAD = re.compile(r"^\[[A-Z_0-9.]+\]\s*")
_TAILS = (
    # What follows the sentence a person needs: codes, plans, and advice on Spark's own settings.
    r"\s*SQLSTATE: \w+.*",
    r"\s*If necessary,? set \S+ to \S+ to bypass this error\.",
    r"\s*Please,? refer to '\S+' for a fix\.",
)
_LOGGERS = ("SQLQueryContextLogger", "DataFrameQueryContextLogger")


def silence() -> None:
    """Keep PySpark from printing each error, with Java's stack trace, before anyone sees it."""
    from pyspark.logger import PySparkLogger

    for name in _LOGGERS:  # not `disabled`: whoever configures logging later may enable them again
        PySparkLogger.getLogger(name).setLevel(logging.CRITICAL + 1)


def message(error: Exception, functions: Callable[[], Sequence[str]] = tuple) -> str:
    """*error* in one line; *functions* lists the names that can be called, where that is known."""
    found = _with_condition(error)
    if found is None:
        return _first_line(_java_text(error))
    condition = str(found.getCondition())
    parameters = found.getMessageParameters() or {}
    text = str(getattr(found, "_desc", found))
    place = _place(text)
    kind = condition.partition(".")[0]
    if kind == "PARSE_SYNTAX_ERROR":
        return f"Syntax error at {parameters.get('error', 'the end')}{place}."
    if kind == "UNRESOLVED_COLUMN":
        near = [_unquoted(name) for name in parameters.get("proposal", "").split(", ") if name]
        name = _unquoted(parameters["objectName"])
        return f"There is no column {name}{place}.{suggestion(nearest(name, near) or near[:3])}"
    if kind == "UNRESOLVED_ROUTINE":
        name = _unquoted(parameters["routineName"])
        return f"There is no function {name}{place}.{did_you_mean(name, functions())}"
    if kind == "TABLE_OR_VIEW_NOT_FOUND":
        name = _unquoted(parameters["relationName"])
        return f"Table {name} does not exist yet{place}. Run `acktrail run`."
    said = _first_line(text).rstrip(".")
    return f"{said}{place}."


def _with_condition(error: Exception) -> Any:
    """The innermost cause of *error* that names its error condition; None where none does."""
    from pyspark.errors import PySparkException
    from pyspark.errors.exceptions.captured import CapturedException, convert_exception

    if isinstance(error, PySparkException) and error.getCondition():
        return error
    found = None
    cause = getattr(error, "java_exception", None) or getattr(error, "_origin", None)
    while cause is not None:
        converted = convert_exception(cause)
        if isinstance(converted, CapturedException) and converted.getCondition():
            found = converted
        cause = cause.getCause()
    return found


def _java_text(error: Exception) -> str:
    """What the innermost Java exception says: `OutOfMemoryError: Java heap space`."""
    cause = getattr(error, "java_exception", None)
    if cause is None:
        return str(error)
    while cause.getCause() is not None:
        cause = cause.getCause()
    return str(cause.toString()).rpartition("java.lang.")[2]


def _place(text: str) -> str:
    """` (line 1, position 8)`, counted from 1; Spark counts the first two kinds from 0."""
    found = _PLACE.search(text)
    if found is None:
        return ""
    line, word, position = found.groups()
    return f" (line {line}, position {int(position) + (word == 'pos')})"


def _first_line(text: str) -> str:
    said = re.sub(r"\s+", " ", text.strip().split("\n\n")[0].split("\n==")[0])
    said = _HEAD.sub("", said)
    for tail in _TAILS:
        said = re.sub(tail, "", said)
    return said.strip()[:600]


def _unquoted(name: str) -> str:
    return name.replace("`", "")
