"""What a page asks the lake: a window of time, the moment of asking, and names."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Any

import pyarrow.dataset as ds

from acktrail.contracts import Table
from acktrail.lake.rows import Where
from acktrail.window import day_of, hour_of

_NAMES = ("cluster", "topic", "client_id", "group")


@dataclass(frozen=True)
class Inquiry:
    """A window from *since* to *until*, asked at *as_of*; names that are None ask for all."""

    since: datetime
    until: datetime
    as_of: datetime
    cluster: str | None = None
    topic: str | None = None
    client_id: str | None = None
    group: str | None = None

    def named(self, table: Table, *left_out: str) -> Any:
        """The rows of *table* with the asked names, as far as it has them; None: all rows."""
        found = None
        for name in _NAMES:
            value = getattr(self, name)
            if value is not None and name in table.names and name not in left_out:
                found = both(found, ds.field(name) == value)
        return found

    def at(self, table: Table, column: str = "at", *left_out: str) -> Any:
        """The rows whose *column* is in the window."""
        inside = (ds.field(column) >= self.since) & (ds.field(column) <= self.until)
        return both(self._parts(table), both(self.named(table, *left_out), inside))

    def overlapping(self, table: Table, begins: str, ends: str) -> Any:
        """The rows that went on in the window, and those without a time."""
        inside = (ds.field(ends) >= self.since) | ds.field(ends).is_null()
        inside &= (ds.field(begins) <= self.until) | ds.field(begins).is_null()
        return both(self.named(table), inside)

    def hours(self, table: Table, column: str = "hour") -> Any:
        """The rows of the hours that the window touches."""
        return both(self._hours(column), self.named(table))

    def _hours(self, column: str) -> Any:
        first, last = (
            ds.field(column) >= hour_of(self.since),
            ds.field(column) <= hour_of(self.until),
        )
        return Where(first & last, first & last)

    def _parts(self, table: Table) -> Any:
        """What the window says of the partition: whole files are left out by it."""
        if "hour" in table.partition:
            return self._hours("hour")
        if "opened_hour" in table.partition:
            return self._hours("opened_hour")
        if "day" in table.partition:  # of reading, which may be later
            days = ds.field("day") >= day_of(self.since - timedelta(days=1))
            return Where(days, days)
        return None


def both(one: Any, other: Any) -> Any:
    """The rows that meet both; None meets all."""
    if one is None or other is None:
        return other if one is None else one
    return other & one if isinstance(other, Where) else one & other
