"""What becomes of results: kept in `check_results`, and the way to the outbox and the receivers.

The same for `check` and for `watch`.
"""

from __future__ import annotations

import uuid
from collections.abc import Sequence
from datetime import UTC, datetime, timedelta
from typing import TYPE_CHECKING

import pyarrow.dataset as ds

from acktrail.alerts.finding import WAITING
from acktrail.contracts.arrow import rows
from acktrail.contracts.runs import CHECK_RESULTS
from expectations.isr import with_isr
from expectations.notify import messengers, receivers
from expectations.notify.linked import LinkedMessenger, LinkedReceiver
from expectations.outbox import Delivery, Outbox
from expectations.stale import NOTHING_WAITS
from expectations.validate import Asked, scopes_of

if TYPE_CHECKING:
    from acktrail.alerts.alert import Alert
    from acktrail.alerts.finding import CheckResult
    from acktrail.lake import Lake
    from acktrail.settings.alerts import AlertSettings
    from expectations.suite import Suite

OVERTAKEN = timedelta(minutes=15)
"""Two checks that run side by side are not history to each other."""


def keep_results(lake: Lake, results: Sequence[CheckResult], as_of: datetime) -> None:
    """Append *results* to `check_results`."""
    run, now = uuid.uuid4().hex, datetime.now(UTC)
    listed = [row for result in results for row in result.rows(run, now, as_of)]
    lake.append(CHECK_RESULTS, rows(CHECK_RESULTS, listed))


def is_history(lake: Lake, as_of: datetime) -> bool:
    """Whether a check has already asked about a moment well after *as_of*.

    Alerts are about the newest moment asked; an old question must not open or resolve any.
    """
    later = ds.field("as_of") > as_of + OVERTAKEN
    return lake.read(CHECK_RESULTS, later, ["as_of"]).num_rows > 0


def deliver_alerts(
    lake: Lake, settings: AlertSettings, now: datetime, report_url: str | None = None
) -> Delivery:
    """Tell every receiver that *settings* name what it does not know yet.

    Alerts link to the report at *report_url*, where there is one.
    """
    told, posted = receivers(settings), messengers(settings)
    return Outbox(lake).tell_all(
        [LinkedReceiver(r, report_url) for r in told] if report_url else told,
        [LinkedMessenger(m, report_url) for m in posted] if report_url else posted,
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
