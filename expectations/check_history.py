"""The table `check_results`: what every check found, and up to which moment checks were asked."""

from __future__ import annotations

import uuid
from collections.abc import Sequence
from datetime import UTC, datetime, timedelta

import pyarrow.dataset as ds

from acktrail.alerts.finding import CheckResult
from acktrail.contracts.arrow import rows
from acktrail.contracts.runs import CHECK_RESULTS
from acktrail.lake import Lake

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
