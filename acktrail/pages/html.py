"""Markup, and the one function by which any text gets into it.

Whatever is not `Html` is escaped: a text from a log cannot become markup, an attribute or a script.
"""

from __future__ import annotations

import re
from collections.abc import Iterable
from typing import Any

_SPECIAL = {"&": "&amp;", "<": "&lt;", ">": "&gt;", '"': "&quot;", "'": "&#39;"}
# What no page may hold, and what would make a text read as another: direction overrides.
_UNSAFE = re.compile(
    "[\x00-\x08\x0b\x0c\x0e-\x1f\x7f-\x9f\u061c\u200b-\u200f\u2028-\u202e\u2060-\u2069\ufdd0-\ufdef"
    "\ufeff\ud800-\udfff\ufffe\uffff]|[\U0001fffe-\U0001ffff]"
)
_MARKED = re.compile(r"[&<>\"']")
LONGEST = 600
"""Characters of one text; what is longer is cut, and ends with an ellipsis."""
_VOID = {"br", "hr", "input", "link", "meta"}
_NAME = re.compile(r"[A-Za-z][A-Za-z0-9:-]*")


class Html(str):
    """Markup, made by this module."""

    __slots__ = ()


Child = Any
"""Html, a text, a number, None (nothing), or several of them."""


def escape(value: object, longest: int = LONGEST) -> Html:
    """*value* as text in a page, in an element or an attribute."""
    text = str(value)
    if len(text) > longest:
        text = text[: longest - 1] + "…"
    text = _UNSAFE.sub("\ufffd", text)
    return Html(_MARKED.sub(lambda found: _SPECIAL[found[0]], text))


def join(*children: Child) -> Html:
    """*children* one after the other."""
    return Html("".join(_parts(children)))


def _parts(children: Iterable[Child]) -> Iterable[str]:
    for child in children:
        if isinstance(child, Html):
            yield child
        elif child is None or child is False:
            continue
        elif isinstance(child, str):
            yield escape(child)
        elif isinstance(child, Iterable):
            yield from _parts(child)
        else:
            yield escape(child)


def tag(element: str, /, *children: Child, **attributes: object) -> Html:
    """An element. `class_` is class, `data_x` is data-x; None and False leave an attribute out."""
    opened = [element]
    for key, value in attributes.items():
        name = key.rstrip("_").replace("_", "-")
        if value is None or value is False:
            continue
        if not _NAME.fullmatch(name) or name.startswith("on") or name == "style":
            raise ValueError(f"{name} is not an attribute that a page may have")
        opened.append(f'{name}="{escape("" if value is True else value, 2000)}"')
    start = " ".join(opened)
    if element in _VOID:
        return Html(f"<{start}>")
    return Html(f"<{start}>{join(*children)}</{element}>")


def raw(text: str) -> Html:
    """*text* of this package, such as its style sheet: never anything that was read."""
    return Html(text)
