"""When something was so: instants at which it was seen, as stretches of time with a beginning."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from datetime import datetime, timedelta

RECOVERED = timedelta(minutes=3)
"""What was not seen for so long is over: a rate covers a minute, and is sampled and read later."""


@dataclass(frozen=True)
class Stretch:
    """From the first to the last of some instants; *ends_at* is None while it goes on."""

    starts_at: datetime
    last_at: datetime
    ends_at: datetime | None


def stretches(instants: Iterable[datetime], asked_at: datetime) -> list[Stretch]:
    """Instants up to *asked_at*, together where they are at most RECOVERED apart."""
    found: list[list[datetime]] = []
    for at in sorted(instants):
        if at > asked_at:
            continue
        if found and at - found[-1][1] <= RECOVERED:
            found[-1][1] = at
        else:
            found.append([at, at])
    return [
        Stretch(first, last, None if asked_at - last <= RECOVERED else last)
        for first, last in found
    ]


def above_zero(samples: Iterable[tuple[datetime, str, float]], asked_at: datetime) -> list[Stretch]:
    """When any of several gauges was above 0, from samples of time, gauge and value.

    A gauge counts as it was last seen, for RECOVERED at most: one that is not seen any more says
    nothing. Over is what every gauge that was above 0 has since denied.
    """
    found: list[Stretch] = []
    high: dict[str, datetime] = {}
    start: datetime | None = None
    last: datetime | None = None
    for at, gauge, value in sorted(samples):
        if at > asked_at:
            break
        if start and last and at - last > RECOVERED:
            found.append(Stretch(start, last, last))
            high, start = {}, None
        if value > 0:
            high[gauge] = last = at
            start = start or at
        else:
            high.pop(gauge, None)
            if start and last and not high:
                found.append(Stretch(start, last, last))
                start = None
    if start and last:
        found.append(Stretch(start, last, None if asked_at - last <= RECOVERED else last))
    return found
