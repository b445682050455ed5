"""The five primitives of every drawing: axis, step line, band, lane, matrix.

Places along a drawing are shares of its width, so a drawing fits every screen and texts keep their
size. Only what has no text is stretched.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from functools import cache

from acktrail.pages.html import Child, Html, join, tag

_STEPS = (
    *(0.001, 0.002, 0.005, 0.01, 0.02, 0.05, 0.1, 0.2, 0.5, 1, 2, 5, 10, 15, 30),
    *(60, 120, 300, 600, 900, 1800, 3600, 7200, 10800, 21600, 43200),
    *(86400, 172800, 604800, 1209600, 2592000, 7776000, 31536000),
)
_TICKS = 7


@dataclass(frozen=True)
class Scale:
    """From values to shares of the width."""

    low: float
    high: float

    def share(self, value: float) -> float:
        """Where *value* is, from 0 to 100; outside, the nearer end."""
        if self.high <= self.low:
            return 0.0
        return min(100.0, max(0.0, (value - self.low) * 100 / (self.high - self.low)))

    def at(self, value: float) -> str:
        """As *share*, as a drawing spells it."""
        return f"{_short(self.share(value))}%"


def time_scale(since: datetime, until: datetime) -> Scale:
    """A scale of epoch seconds."""
    return Scale(since.timestamp(), until.timestamp())


def _short(number: float) -> str:
    return f"{number:.2f}".rstrip("0").rstrip(".")


@dataclass(frozen=True)
class AxisTick:
    """A value of an axis, and what stands there."""

    value: float
    label: str


def time_ticks(scale: Scale) -> list[AxisTick]:
    """At most seven round moments, in UTC."""
    step = next((s for s in _STEPS if (scale.high - scale.low) / s <= _TICKS), _STEPS[-1])
    style = "%m-%d" if step >= 86400 else "%H:%M" if step >= 60 else "%H:%M:%S"
    if step < 1:
        style = "%H:%M:%S.%f"
    ticks: list[AxisTick] = []
    number = int(scale.low // step) + 1
    while number * step <= scale.high and len(ticks) <= _TICKS * 2:
        moment = datetime.fromtimestamp(number * step, UTC)
        label = moment.strftime(style)
        if step < 1:
            label = label[:-3]
        if style == "%H:%M" and moment.hour == moment.minute == 0:
            label = moment.strftime("%m-%d")
        ticks.append(AxisTick(number * step, label))
        number += 1
    return ticks


def number_ticks(scale: Scale) -> list[AxisTick]:
    """At most seven round numbers."""
    span = max(scale.high - scale.low, 1)
    step = 1
    while span / step > _TICKS:
        step = step * 5 // 2 if str(step)[0] == "2" else step * 2
    first = int(scale.low // step) * step
    return [
        AxisTick(value, f"{value:,}")
        for value in range(first, int(scale.high) + 1, step)
        if value >= scale.low
    ]


def axis(scale: Scale, ticks: Sequence[AxisTick], title: str, kind: str = "") -> Html:
    """The values below a drawing. Every other one gives way on a narrow screen."""
    marks = []
    for number, tick in enumerate(ticks):
        share = scale.share(tick.value)
        side = "start" if share < 9 else "end" if share > 91 else "middle"
        odd = " odd" if number % 2 else ""
        x = scale.at(tick.value)
        marks.append(tag("line", x1=x, x2=x, y1="0", y2="4", class_="tick"))
        marks.append(tag("text", tick.label, x=x, y="16", class_=f"label{odd}", text_anchor=side))
    return tag(
        "svg",
        tag("title", title),
        tag("line", x1="0", x2="100%", y1="0.5", y2="0.5", class_="tick"),
        *marks,
        class_=f"axis {kind}".strip(),
        height="20",
        role="img",
    )


@dataclass(frozen=True)
class LineStep:
    """From *begins* to *ends* the value was between *low* and *high*."""

    begins: float
    ends: float
    low: float
    high: float


def step_line(scale: Scale, steps: Sequence[LineStep], top: float, height: int) -> Html:
    """A line of steps over a filled area; it breaks where steps do not touch."""
    line: list[str] = []
    area: list[str] = []
    previous: LineStep | None = None
    reach = (scale.high - scale.low) / 1000

    def down(value: float) -> str:
        share = 0.0 if top <= 0 else min(1.0, max(0.0, value / top))
        return _short(height - share * (height - 2))

    for step in steps:
        x0, x1 = _short(scale.share(step.begins) * 10), _short(scale.share(step.ends) * 10)
        joined = previous is not None and step.begins - previous.ends <= reach
        line.append(f"{'L' if joined else 'M'}{x0} {down(step.high)}H{x1}")
        if step.low < step.high:
            line.append(f"V{down(step.low)}V{down(step.high)}")
        area.append(f"M{x0} {height}V{down(step.high)}H{x1}V{height}Z")
        previous = step
    return tag(
        "svg",
        tag("path", d="".join(area), class_="area"),
        tag("path", d="".join(line), class_="line"),
        class_="stretched",
        viewBox=f"0 0 1000 {height}",
        preserveAspectRatio="none",
        height=height,
        width="100%",
    )


def band(
    scale: Scale, begins: float, ends: float, kind: str, y: int, height: int, title: str = ""
) -> Html:
    """A span of the scale, of a *kind* that the style sheet draws; never thinner than a hair."""
    left, right = scale.share(begins), scale.share(ends)
    return tag(
        "rect",
        tag("title", title) if title else None,
        class_=f"band {kind}",
        x=f"{_short(left)}%",
        width=f"{_short(max(0.0, right - left))}%",
        y=y,
        height=height,
    )


def rule(scale: Scale, value: float, kind: str, height: int, title: str = "") -> Html:
    """A line across a lane at one value."""
    x = scale.at(value)
    named = tag("title", title) if title else None
    return tag("line", named, class_=f"rule {kind}", x1=x, x2=x, y1="0", y2=height)


def mark(scale: Scale, value: float, kind: str, y: int, title: str) -> Html:
    """An event: a dot, or a star for evidence that decided."""
    named = tag("title", title)
    x = scale.at(value)
    if kind == "star":
        return tag("text", named, "★", x=x, y=y + 5, class_="star", text_anchor="middle")
    return tag("circle", named, cx=x, cy=y, r="3.5", class_=f"mark {kind}")


def lane(
    title: str, description: str, height: int, *parts: Child, kind: str = "", **data: object
) -> Html:
    """One row of a drawing, with its name and what it shows for those who do not see it."""
    return tag(
        "svg",
        tag("title", title),
        tag("desc", description) if description else None,
        *parts,
        class_=f"lane {kind}".strip(),
        height=height,
        role="img",
        **data,
    )


@dataclass(frozen=True)
class Cell:
    """One cell of a matrix; the *kind* decides its height and pattern, not its colour alone."""

    kind: str
    title: str = ""


def matrix(title: str, cells: Sequence[Cell], height: int = 18) -> Html:
    """One row of a matrix. Cells side by side that are the same are drawn as one."""
    drawn: list[Html] = []
    scale = Scale(0, len(cells))
    start = 0
    for number in range(1, len(cells) + 1):
        if number < len(cells) and cells[number] == cells[start]:
            continue
        cell = cells[start]
        part = HEIGHTS.get(cell.kind, 1.0)
        tall = max(3, round(height * part))
        drawn.append(band(scale, start, number, cell.kind, height - tall, tall, cell.title))
        start = number
    return lane(title, "", height, join(*drawn), _grid(len(cells), height), kind=few(len(cells)))


@cache
def _grid(cells: int, height: int) -> Html:
    """The lines between *cells*: the same for each row of a table."""
    scale = Scale(0, cells)
    return join(
        tag("line", x1=scale.at(n), x2=scale.at(n), y1="0", y2=height, class_="grid")
        for n in range(1, cells if cells <= 48 else 0)
    )


def few(columns: int) -> str:
    """The class of a matrix and its axis: a few columns do not take the whole width."""
    return "few" if columns <= 6 else ""


HEIGHTS = {
    "clean": 0.15,
    "retries": 0.45,
    "failures": 0.75,
    "lost": 1.0,
    "none": 1.0,
    "seen": 0.5,
    "partial": 1.0,
    "pass": 0.15,
    "warn": 0.5,
    "undecided": 0.75,
    "fail": 1.0,
    "notrun": 1.0,
}
"""How much of the height of a row each kind of cell takes."""


def described(names: Iterable[str], most: int = 8) -> str:
    """A list of names for a description."""
    listed = list(names)
    more = len(listed) - most
    return ", ".join(listed[:most]) + (f" and {more} more" if more > 0 else "")
