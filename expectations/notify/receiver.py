"""What a receiver is: a name, and a way to send it alerts. One small file each."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import datetime
from typing import Protocol

from acktrail.alerts.lifecycle import Alert


class Receiver(Protocol):
    """Somebody who is told of alerts.

    *send* returns once all are taken, and raises AlertUndelivered otherwise. It is called at
    least once for each change, with the same key each time; where *forgets* is set it is called
    again in every run while the alert is open, and for some time after.
    """

    @property
    def name(self) -> str:
        """Names the receiver in the outbox."""

    @property
    def forgets(self) -> bool:
        """Whether an alert must be sent again while it is open."""

    def send(self, alerts: Sequence[Alert], now: datetime) -> None:
        """Tell of *alerts*, open or resolved."""
