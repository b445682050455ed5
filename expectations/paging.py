"""From the results of the checks to the outbox: the one way, for `check` and for `watch`."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import datetime, timedelta
from typing import TYPE_CHECKING

from acktrail.alerts.finding import WAITING
from expectations.isr import with_isr
from expectations.notify import messengers, receivers
from expectations.outbox import Delivery, Outbox
from expectations.stale import NOTHING_WAITS
from expectations.validate import Asked, scopes_of

if TYPE_CHECKING:
    from acktrail.alerts.alert import Alert
    from acktrail.alerts.finding import CheckResult
    from acktrail.lake import Lake
    from acktrail.settings.alerts import AlertSettings
    from expectations.suite import Suite


def deliver_alerts(lake: Lake, settings: AlertSettings, now: datetime) -> Delivery:
    """Tell every receiver that *settings* name what it does not know yet."""
    return Outbox(lake).tell_all(
        receivers(settings),
        messengers(settings),
        now,
        timedelta(seconds=settings.interval_s),
        timedelta(seconds=settings.digest_s),
    )


def record_alerts(
    lake: Lake,
    results: Sequence[CheckResult],
    suites: Sequence[Suite],
    asked: Asked,
    now: datetime,
) -> list[Alert]:
    """Write down what *results* mean for the alerts; *suites* are all there are."""
    findings = [f for result in results for f in result.findings]
    looked_for_waiting = () if asked.waiting is NOTHING_WAITS else (WAITING,)
    return Outbox(lake).record(
        with_isr(lake, findings, asked.as_of),
        {*(result.scope for result in results), *looked_for_waiting},
        now,
        scopes_of(suites),
        asked.question.since,
    )
