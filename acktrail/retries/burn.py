"""How fast totals grow: per second of the time that was measured, over five minutes and an hour.

Time without a sample is unknown, not quiet: growth is divided by the time it was counted over, and
a rate says how much of its window that is.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta

SHORT = timedelta(minutes=5)
LONG = timedelta(hours=1)

TOLD_BELOW = 0.75
"""A window measured for less than this share is marked: the last scrape is always some time ago."""


@dataclass(frozen=True)
class Growth:
    """How much a total of a client or a broker grew up to *at*, in *elapsed*."""

    cluster: str
    who: str
    """Client id, or broker id as text (its target where the id is not known)."""
    metric: str
    at: datetime
    increase: float
    elapsed: timedelta
    host: str = ""
    """Of the target it was measured at, after the alias rules."""
    error: str = ""


@dataclass(frozen=True)
class Rate:
    """A growth per second, and for how long of its window it was measured."""

    per_s: float
    measured_s: float


@dataclass(frozen=True)
class Rates:
    """A rate over the short and the long window; None where nothing was measured in it."""

    short: Rate | None = None
    long: Rate | None = None


def rates(
    growth: Sequence[Growth], as_of: datetime, measured: Sequence[Growth] | None = None
) -> Rates:
    """How fast one thing grew: the sum of its series over the time they were measured.

    A series begins with its first event and others of the target were there before: *measured* is
    all that tells that the thing was looked at.
    """
    seen = growth if measured is None else measured
    return Rates(_rate(growth, seen, as_of, SHORT), _rate(growth, seen, as_of, LONG))


def _rate(
    growth: Sequence[Growth], seen: Sequence[Growth], as_of: datetime, window: timedelta
) -> Rate | None:
    begin = as_of - window
    covered = _length((max(g.at - g.elapsed, begin), g.at) for g in seen if begin < g.at <= as_of)
    if covered <= timedelta(0):
        return None
    # Of a growth that began before the window, the part that lies in it.
    within = sum(
        g.increase * min(1.0, (g.at - begin) / g.elapsed)
        for g in growth
        if begin < g.at <= as_of and g.elapsed > timedelta(0)
    )
    return Rate(within / covered.total_seconds(), covered.total_seconds())


def _length(spans: Iterable[tuple[datetime, datetime]]) -> timedelta:
    """How long the *spans* are together, where they overlap counted once."""
    total = timedelta(0)
    reached: datetime | None = None
    for begin, end in sorted(spans):
        start = begin if reached is None else max(begin, reached)
        if end > start:
            total += end - start
            reached = end
    return total


def added(each: Iterable[Rates]) -> Rates:
    """The rates of several things together; measured at least as long as the one that was least."""
    listed = list(each)
    return Rates(_added(r.short for r in listed), _added(r.long for r in listed))


def _added(each: Iterable[Rate | None]) -> Rate | None:
    known = [rate for rate in each if rate is not None]
    if not known:
        return None
    return Rate(sum(r.per_s for r in known), min(r.measured_s for r in known))
