"""The jobs, in the order they run. Each line is one table."""

from __future__ import annotations

from acktrail.errors import UsageError
from pipelines.audit_jobs import AUDIT_JOBS
from pipelines.gold import retry_budgets
from pipelines.job import Job
from pipelines.silver import (
    client_configs,
    client_sightings,
    clients,
    log_events,
    metric_growth,
    unread_records,
)

JOBS: tuple[Job, ...] = (
    # Evidence becomes facts (silver), then facts become answers (gold).
    log_events.PRODUCER_JOB,
    log_events.CONSUMER_JOB,
    log_events.BROKER_JOB,
    unread_records.JOB,
    client_configs.JOB,
    metric_growth.CLIENT_JOB,
    metric_growth.BROKER_JOB,
    client_sightings.JOB,
    clients.JOB,
    retry_budgets.JOB,
    *AUDIT_JOBS,
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
