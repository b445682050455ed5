"""A window of time, half open, in UTC; instants as people, partitions and reports have them."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import UTC, datetime, timedelta

from acktrail.errors import UsageError


@dataclass(frozen=True)
class Window:
    """From *start* up to, and without, *end*."""

    start: datetime
    end: datetime

    @classmethod
    def parse(cls, text: str) -> Window:
        """A window written FROM/TO, e.g. 2026-01-31T00:00Z/2026-02-01T00:00Z."""
        start, slash, end = text.partition("/")
        if not slash:
            raise UsageError(f"A window is written FROM/TO, not {text!r}. Example: {_EXAMPLE}")
        window = cls(instant(start), instant(end))
        if window.start >= window.end:
            raise UsageError(f"The window {text} ends before it begins.")
        return window

    def contains(self, moment: datetime) -> bool:
        """Whether *moment* lies in the window."""
        return self.start <= moment < self.end


_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
_EXAMPLE = "2026-01-31T00:00Z/2026-02-01T00:00Z"


def instant(text: str) -> datetime:
    """A moment written in ISO 8601; without an offset it is UTC."""
    try:
        moment = datetime.fromisoformat(text.strip())
    except ValueError:
        raise UsageError(
            f"{text!r} is not a moment. Write it like 2026-01-31T07:00Z or 2026-01-31."
        ) from None
    return moment.replace(tzinfo=UTC) if moment.tzinfo is None else moment.astimezone(UTC)


def hour_of(moment: datetime) -> str:
    """The UTC hour of *moment* as partitions spell it, e.g. 2026-01-31T07."""
    return moment.astimezone(UTC).isoformat()[:13]


def day_of(moment: datetime) -> str:
    """The UTC day of *moment* as partitions spell it, e.g. 2026-01-31."""
    return moment.astimezone(UTC).strftime("%Y-%m-%d")


def epoch_ms(moment: datetime) -> int:
    """*moment* in whole milliseconds since 1970."""
    return (moment - _EPOCH) // timedelta(milliseconds=1)


def from_epoch_ms(ms: int) -> datetime:
    """The moment *ms* milliseconds after the beginning of 1970."""
    return _EPOCH + timedelta(milliseconds=ms)
