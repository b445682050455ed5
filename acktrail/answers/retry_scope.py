"""What an answer about retries rests on: whether client logs or metrics were read at all."""

from __future__ import annotations

from datetime import datetime

import pyarrow.compute as pc

from acktrail.answers.scope import utc
from acktrail.contracts.bronze import LOG_RECORDS, METRIC_SAMPLES
from acktrail.contracts.gold import RETRY_BUDGETS
from acktrail.contracts.runs import COVERAGE
from acktrail.contracts.silver import CLIENT_METRICS, PRODUCER_EVENTS
from acktrail.errors import NoEvidence
from acktrail.lake import Lake
from acktrail.window import hour_of


def require_retry_evidence(lake: Lake) -> None:
    """NoEvidence where nothing was collected that shows retries, or no run has read it."""
    if lake.exists(RETRY_BUDGETS):
        return
    if not (lake.exists(LOG_RECORDS) or lake.exists(METRIC_SAMPLES)):
        raise NoEvidence(
            "This lake has no client logs and no metrics; nothing is known about retries. "
            "docs/agents.md shows how to collect them."
        )
    if not (lake.exists(PRODUCER_EVENTS) or lake.exists(CLIENT_METRICS)):
        raise NoEvidence(f"Table {RETRY_BUDGETS.name} does not exist yet. Run `acktrail run`.")


def missing_evidence(lake: Lake, since: datetime, as_of: datetime) -> str | None:
    """A sentence where no client log and no metric is of the time from *since* to *as_of*."""
    covered = (pc.field("first_at") <= as_of) & (pc.field("last_at") >= since)
    covered &= pc.field("kind").isin(["logs", "metrics"])
    if lake.read(COVERAGE, covered, ["kind"]).num_rows:
        return None
    hours = (pc.field("hour") >= hour_of(since)) & (pc.field("hour") <= hour_of(as_of))
    if any(lake.read(t, hours, ["hour"]).num_rows for t in (PRODUCER_EVENTS, CLIENT_METRICS)):
        return None
    return (
        f"There is no client log and no metric from {utc(since)} to {utc(as_of)}; "
        "nothing is known about retries in that time."
    )
