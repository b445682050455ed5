"""This machine's clock against those of the servers that were asked."""

from __future__ import annotations

import time
from collections.abc import Mapping, Sequence
from email.utils import parsedate_to_datetime

from acktrail.operate.probes.row import OK, WARNING, Clock, Row

MOST_S = 5.0
"""Clocks farther apart than this are worth a warning: causes are joined by time."""


def clock_of(server: str, headers: Mapping[str, str], asked_at: float) -> list[Row | Clock]:
    """The clock that the Date header of an answer shows; none where there is no such header.

    The header has whole seconds, so the server's time was up to a second later than it says.
    """
    try:
        said = parsedate_to_datetime(headers["Date"]).timestamp() + 0.5
    except (KeyError, ValueError, TypeError):
        return []
    return [Clock(server, said - (asked_at + time.time()) / 2)]


def clock_row(clocks: Sequence[Clock]) -> Row:
    """One row for all *clocks*."""
    if not clocks:
        return Row(
            "clock", WARNING, "not compared: no metrics server or Alertmanager sent its time"
        )
    listed = ", ".join(f"{c.server} {c.ahead_s:+.1f} s" for c in clocks)
    if max(abs(clock.ahead_s) for clock in clocks) <= MOST_S:
        return Row("clock", OK, f"servers are ahead of this machine by: {listed} (+/- 0.5 s)")
    return Row(
        "clock",
        WARNING,
        f"clocks differ; servers are ahead of this machine by: {listed}. Synchronize them (NTP, "
        "`timedatectl`): what happened first is decided by their times.",
    )
