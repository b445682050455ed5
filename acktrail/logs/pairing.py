"""Which invalid-metadata lines stand alone: the retry line that should precede each is not there.

The Java producer's sender prints the retry line, then, where the error says that its metadata is
old, a companion line for the same partition. A batch that is not retried prints the companion
alone: it failed for good, or was answered after it had expired.
"""

from __future__ import annotations

from collections.abc import Hashable
from dataclasses import replace
from datetime import datetime, timedelta

from acktrail.logs.event import Event
from acktrail.logs.event_rows import client_of
from acktrail.logs.kafka_errors import category
from acktrail.logs.times import instant

UNPAIRED = "unpaired"

TOGETHER = timedelta(seconds=1)
"""One thread prints both lines, one after the other."""


class RetryLines:
    """The retry lines printed so far, by place (client, topic, partition) and kind of error."""

    def __init__(self) -> None:
        self._printed: dict[Hashable, dict[str | None, datetime]] = {}

    def add(self, place: Hashable, at: datetime, error: str | None) -> None:
        """A retry line of *place*."""
        self._printed.setdefault(place, {})[category(error)] = at

    def precede(self, place: Hashable, at: datetime, error: str | None) -> bool:
        """Whether a retry line of *place* and of the same kind of error was printed just before.

        An error without a known kind goes with any.
        """
        kind = category(error)
        return any(
            at - printed <= TOGETHER
            for other, printed in self._printed.get(place, {}).items()
            if kind is None or other is None or other == kind
        )


def mark_unpaired(event: Event, retries: RetryLines) -> Event:
    """*event* of one file, in its order; an invalid-metadata line that stands alone is marked.

    Where its time or partition is not printed, it is left as it is.
    """
    if event.kind not in ("retry", "split_retry", "invalid_metadata"):
        return event
    at = instant(event.ts, "UTC")
    if at is None or event.topic is None or event.partition is None:
        return event
    place = (client_of(event), event.topic, event.partition)
    if event.kind != "invalid_metadata":
        retries.add(place, at, event.error)
        return event
    if retries.precede(place, at, event.error):
        return event
    return replace(event, detail=UNPAIRED)
