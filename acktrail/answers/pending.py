"""Evidence that is in the lake and not in the answers yet: how much, since when, and why.

Every job's commit has the versions of its inputs that it has read, so this needs the tables' logs
alone: no rows are read, and no JVM is started.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from datetime import datetime, timedelta
from functools import cache

from acktrail.contracts import Table, table_named
from acktrail.contracts.arrow import rows
from acktrail.contracts.lineage import MADE, inputs_of, line_of
from acktrail.contracts.runs import RUN_FAILURES
from acktrail.lake import Lake
from acktrail.lake.changes import UnreadFiles


@dataclass(frozen=True)
class Failure:
    """The last time `acktrail run` did not finish a job."""

    at: datetime
    error: str


@dataclass(frozen=True)
class PendingEvidence:
    """What the job of *table* has not read of its input *source*."""

    table: str
    source: str
    rows: int
    counted: bool
    """Whether *rows* is all of them, or only a part."""
    since: datetime | None
    """When the first of it came; None where the log of *source* no longer says so."""
    failure: Failure | None = None
    """The run that failed on it."""

    def is_overdue(self, now: datetime, allowed: timedelta) -> bool:
        """Whether a run has failed on it, or it has waited for longer than *allowed*."""
        return self.failure is not None or self.since is None or now - self.since > allowed


def pending_evidence(lake: Lake) -> list[PendingEvidence]:
    """What every job has still to read, in the order in which jobs run."""
    failures = last_failures(lake)
    unread = cache(lake.unread)  # several jobs have read the same table up to the same version
    return [
        _pending(table, source, found, failures.get(table.name))
        for table in MADE
        for source, since in _read_up_to(lake, table)
        if (found := unread(source, since)) is not None
    ]


def _read_up_to(lake: Lake, table: Table) -> Iterator[tuple[Table, int | None]]:
    """The inputs of the job of *table*, with the version it has read; None: none."""
    consumed = lake.consumed(table, table.name) or {}
    for source in inputs_of(table):
        yield source, consumed.get(source.name)


def _pending(
    table: Table, source: Table, unread: UnreadFiles, failure: Failure | None
) -> PendingEvidence:
    # Had any run after the failure succeeded, this evidence would not be pending.
    met = failure is not None and (unread.since is None or unread.since <= failure.at)
    return PendingEvidence(
        table=table.name,
        source=source.name,
        rows=unread.rows,
        counted=unread.counted,
        since=unread.since,
        failure=failure if met else None,
    )


def behind(
    table: Table, pending: Iterable[PendingEvidence], kinds: frozenset[str]
) -> list[PendingEvidence]:
    """Of *pending* what *table* lacks, itself or through its inputs, of the bronze tables *kinds*.

    Evidence of other kinds may add a cause to a row of *table*; it decides nothing there.
    """
    line = line_of(table)
    return [p for p in pending if p.table in line and kinds & _bronze_of(p.source)]


def _bronze_of(name: str) -> frozenset[str]:
    return line_of(table_named(name)) - {table.name for table in MADE}


def last_failures(lake: Lake) -> dict[str, Failure]:
    """The last failure of every job that ever failed."""
    found: dict[str, Failure] = {}
    for row in lake.read(RUN_FAILURES).to_pylist():
        known = found.get(row["job"])
        if known is None or row["failed_at"] > known.at:
            found[row["job"]] = Failure(row["failed_at"], row["error"])
    return found


def record_failures(
    lake: Lake, errors: Mapping[str, str], failed_at: datetime, as_of: datetime
) -> None:
    """Write down that the jobs in *errors* were not finished, each with the reason."""
    listed = [
        {"job": job, "failed_at": failed_at, "as_of": as_of, "error": error[:500]}
        for job, error in errors.items()
    ]
    lake.append(RUN_FAILURES, rows(RUN_FAILURES, listed))
