"""One run of the alert code and nothing else: verdict, outbox, delivery. Killed by its caller."""

from __future__ import annotations

import contextlib
import os
from datetime import UTC, datetime, timedelta
from multiprocessing.connection import Connection

from acktrail.alerts.finding import Finding
from acktrail.contracts.vocabulary import Outcome
from acktrail.errors import AlertUndelivered
from acktrail.lake import Lake
from expectations.notify.alertmanager import Alertmanager
from expectations.notify.post import Patience
from expectations.outbox import Delivery, Outbox

INTERVAL = timedelta(minutes=5)
START = datetime(2026, 1, 31, 12, 0, tzinfo=UTC)


def incident(trial: str) -> Finding:
    """The one thing that is wrong in a trial."""
    return Finding(
        outcome=Outcome.FAIL,
        cluster=trial,
        topic="payments",
        group="billing",
        state="lost_after_ack",
        cause="unclean_election",
        starts_at=START,
        ends_at=START + timedelta(minutes=1),
        because="12 messages are gone",
        check="no_loss_after_ack",
        owner="payments",
        loss=True,
    )


def run(lake: str, url: str, trial: str, wrong: bool, patience: Patience) -> Delivery:
    """What `acktrail check` does once the expectations have answered."""
    outbox = Outbox(Lake(lake))
    now = datetime.now(UTC)
    outbox.record([incident(trial)] if wrong else [], {"no_loss_after_ack"}, now)
    return outbox.deliver([Alertmanager((url,), INTERVAL, patience)], now, INTERVAL)


def begin(telling: Connection, crash_at: str, lake: str, url: str, trial: str, wrong: bool) -> None:
    """What the process does: says that it is there, then one run, up to *crash_at*."""
    if crash_at:
        os.environ["ACKTRAIL_CRASH_AT"] = crash_at
    telling.send("ready")
    with contextlib.suppress(AlertUndelivered):
        run(lake, url, trial, wrong, Patience(0.3, 0.5)).require()
