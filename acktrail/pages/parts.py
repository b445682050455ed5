"""Parts that views are made of: sections, tables, notes, rows of a chart."""

from __future__ import annotations

from collections.abc import Sequence

from acktrail.pages.html import Child, Html, join, tag
from acktrail.pages.live_links import address


def section(name: str, title: str, lede: Child, *body: Child) -> Html:
    """A view: its title, one sentence that says what it shows here, and what it draws."""
    return tag(
        "section",
        tag("h2", title, id=f"{name}-title"),
        tag("p", lede, class_="lede"),
        *body,
        id=name,
        aria_labelledby=f"{name}-title",
    )


def table(
    caption: str, columns: Sequence[str], rows: Sequence[Sequence[Child]], ids: Sequence[str] = ()
) -> Html:
    """A table. Column names that end with `#` hold numbers. On a narrow screen a row is a card."""
    head = [
        tag("th", name.rstrip("#"), scope="col", class_="number" if name.endswith("#") else None)
        for name in columns
    ]
    body = []
    for number, row in enumerate(rows):
        cells = [
            tag(
                "td",
                value,
                class_="number" if name.endswith("#") else None,
                data_label=name.rstrip("#"),
            )
            for name, value in zip(columns, row, strict=True)
        ]
        body.append(tag("tr", *cells, id=(ids[number] or None) if ids else None))
    return tag(
        "div",
        tag("table", tag("caption", caption), tag("thead", tag("tr", *head)), tag("tbody", *body)),
        class_="table",
        tabindex="0",
        role="region",
        aria_label=caption,
    )


def details(summary: str, *body: Child, open_: bool = False) -> Html:
    """What a reader may open."""
    return tag("details", tag("summary", summary), *body, open=open_)


def left_out(text: str) -> Html:
    """What is not shown, and where it is."""
    return tag("p", text, class_="left-out")


def empty(text: str) -> Html:
    """What is said where there is nothing to draw."""
    return tag("p", text, class_="empty")


def row(label: Child, drawing: Html, value: Child = "", name: str | None = None) -> Html:
    """One row of a chart: label, drawing, value."""
    return tag(
        "div",
        tag("div", label, class_="row-label"),
        tag("div", drawing, class_="row-drawing"),
        tag("div", value, class_="row-value"),
        class_="row",
        id=name,
    )


def chart(label: str, *rows: Child, kind: str = "") -> Html:
    """Rows under one another, with one axis."""
    return tag("div", *rows, class_=f"chart {kind}".strip(), role="group", aria_label=label)


def badge(kind: str, text: str) -> Html:
    """A word in a frame; the sign before it says the same as its colour."""
    sign = {"bad": "✕", "warn": "!", "unknown": "?", "ok": "✓", "info": "i"}[kind]
    return tag(
        "span",
        tag("span", sign, aria_hidden="true", class_="sign"),
        " ",
        text,
        class_=f"badge {kind}",
    )


def to(kind: str, name: str) -> Html:
    """A link to what is known of *name*."""
    shown = name if len(name) <= 60 else f"{name[:59]}…"
    return tag("a", shown, href=address(kind, name))


_RULES = {"election", "truncation", "now", "commit"}
"""Kinds that are drawn as lines."""


def legend(*entries: tuple[str, str]) -> Html:
    """What each pattern means: kind of a band, and words."""
    shown = []
    for kind, words in entries:
        if kind in _RULES:
            shape = tag("line", class_=f"rule {kind}", x1="7", x2="7", y1="0", y2="12")
        else:
            shape = tag("rect", class_=f"band {kind}", width="13", height="9", x="0.5", y="1.5")
        swatch = tag("svg", shape, width="14", height="12", aria_hidden="true")
        shown.append(tag("li", swatch, " ", words))
    return tag("ul", *shown, class_="legend")


def several(items: Sequence[Child]) -> Html:
    """A list of points."""
    return tag("ul", *(tag("li", item) for item in items))


def nothing() -> Html:
    """No markup."""
    return join()
