"""Where in a text an error is: the line, with a caret below the place."""

from __future__ import annotations

import re

_WIDEST = 100
_PLACE = re.compile(r" \(line (\d+), position (\d+)\)")


def with_caret(message: str, text: str) -> str:
    """*message*, and for the place that it names the line of *text* with a caret below."""
    found = _PLACE.search(message)
    if found is None:
        return message
    shown = caret(text, int(found[1]), int(found[2]) - 1)
    if not shown:
        return message
    plain = message[: found.start()] + message[found.end() :]
    return f"{plain}\n{shown}"


def caret(text: str, line: int, column: int) -> str:
    """Line *line* (from 1) of *text* and a caret below *column* (from 0); empty outside of it."""
    lines = text.split("\n")
    if not 0 < line <= len(lines) or not 0 <= column <= len(lines[line - 1]):
        return ""
    shown = lines[line - 1].replace("\t", " ")
    if len(shown) > _WIDEST:
        first = max(0, min(column - _WIDEST // 2, len(shown) - _WIDEST))
        cut = shown[first : first + _WIDEST]
        shown = f"{'…' if first else ''}{cut}{'…' if first + _WIDEST < len(shown) else ''}"
        column += bool(first) - first
    return f"  {line} | {shown.rstrip()}\n  {' ' * len(str(line))} | {' ' * column}^"
