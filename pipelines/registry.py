"""The jobs, in the order they run. Each line is one table."""

from __future__ import annotations

from acktrail.errors import UsageError
from pipelines.audit_jobs import BOOKS
from pipelines.gold import retry_budgets
from pipelines.job import Job
from pipelines.silver import (
    broker_events,
    broker_metrics,
    client_configs,
    client_metrics,
    clients,
    consumer_events,
    producer_events,
    unread_records,
)

JOBS: tuple[Job, ...] = (
    # Evidence becomes facts (silver), then facts become answers (gold).
    producer_events.JOB,
    consumer_events.JOB,
    broker_events.JOB,
    unread_records.JOB,
    client_configs.JOB,
    client_metrics.JOB,
    broker_metrics.JOB,
    clients.JOB,
    retry_budgets.JOB,
    *BOOKS,
)


def jobs_named(names: tuple[str, ...]) -> tuple[Job, ...]:
    """The jobs called *names*, in running order; all of them if none is named."""
    known = {job.name for job in JOBS}
    strange = [n for n in names if n not in known]
    if strange:
        raise UsageError(
            f"There is no job {', '.join(strange)}. "
            f"There are: {', '.join(job.name for job in JOBS)}."
        )
    return tuple(job for job in JOBS if not names or job.name in names)
