"""Answers that are older than their evidence: the checks on them are undecided.

Evidence that came a moment ago is not in the answers yet, and that is normal. Evidence that a run
has failed on, or that has waited for longer than the threshold `pending_s`, may hold what a check
looks for.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from typing import TYPE_CHECKING

from acktrail.alerts.finding import Finding
from acktrail.answers.pending import PendingEvidence, behind, pending_evidence
from acktrail.contracts import Table
from acktrail.contracts.bronze import (
    AUDIT_REPORTS,
    BRONZE,
    CLUSTER_CONFIGS,
    CLUSTER_STATES,
    GROUP_OFFSETS,
    LOG_RECORDS,
    METRIC_SAMPLES,
)
from acktrail.terminal.output import moment
from expectations.domain.expectation import missing

if TYPE_CHECKING:
    from acktrail.lake import Lake

PENDING = "pending_s"
"""The threshold: so long evidence may wait for the next run."""
PENDING_CAUSE = "pending_"
"""How the cause of a finding about evidence that waits begins."""
_ALL = frozenset(table.name for table in BRONZE)
_LEDGER = (AUDIT_REPORTS, CLUSTER_STATES, GROUP_OFFSETS, CLUSTER_CONFIGS)
_DECIDES: dict[str, frozenset[str]] = {
    "logs": frozenset({LOG_RECORDS.name}),
    "metrics": frozenset({METRIC_SAMPLES.name}),
    "audits": frozenset(table.name for table in _LEDGER),
}
"""Kind of evidence to the bronze tables that decide checks of that kind."""


@dataclass(frozen=True)
class Waiting:
    """What waits for a run, and how long it may."""

    pending: Sequence[PendingEvidence]
    allowed: timedelta
    now: datetime

    def before(self, table: Table, needs: str) -> list[Finding]:
        """Why checks on *table* that need evidence of the kind *needs* are undecided."""
        late = behind(table, self._overdue(), _DECIDES.get(needs, _ALL))
        return [self._finding(source) for source in dict.fromkeys(p.source for p in late)]

    def inputs_of(self, table: Table) -> frozenset[str]:
        """The inputs of the job of *table* with rows that it has not read."""
        return frozenset(p.source for p in self.pending if p.table == table.name)

    def notes(self) -> list[str]:
        """One sentence for each table with evidence that came a moment ago."""
        overdue = {p.source for p in self._overdue()}
        fresh = [p for p in self.pending if p.source not in overdue]
        return [
            f"{_rows(rows)} not in the answers yet; the next `acktrail run` reads them."
            for source in dict.fromkeys(p.source for p in fresh)
            if (rows := [p for p in fresh if p.source == source])
        ]

    def _overdue(self) -> list[PendingEvidence]:
        return [p for p in self.pending if p.is_overdue(self.now, self.allowed)]

    def _finding(self, source: str) -> Finding:
        """The same words for every check, so that one thing that waits is one alert."""
        late = [p for p in self._overdue() if p.source == source]
        tables = [p.table for p in late]
        named = " and ".join(tables)
        if len(tables) > 2:
            named = f"{tables[0]}, {tables[1]} and {len(tables) - 2} more tables"
        failures = [p.failure for p in late if p.failure is not None]
        why = f" The last run failed: {_first_line(failures[0].error)}." if failures else ""
        return missing(
            cluster="",
            cause=f"{PENDING_CAUSE}{source}",
            starts_at=min((p.since for p in late if p.since), default=self.now),
            because=f"{_rows(late)} not in {named} yet.{why} Run `acktrail run`.",
            keys=tuple(tables),
        )


NOTHING_WAITS = Waiting((), timedelta(0), datetime.fromtimestamp(0, UTC))
"""For those who run the jobs themselves, just before they ask."""


def look_for_waiting(lake: Lake, allowed_s: float, now: datetime) -> Waiting:
    """The evidence that no run has read yet; the policy lets it wait for *allowed_s*."""
    return Waiting(pending_evidence(lake), timedelta(seconds=allowed_s), now)


def _rows(pending: Sequence[PendingEvidence]) -> str:
    """`1,205 rows of log_records (since 2026-01-31T12:00:00Z) are`."""
    most = max(pending, key=lambda p: p.rows)
    since = min((p.since for p in pending if p.since), default=None)
    when = "" if since is None else f" (since {moment(since)[:19]}Z)"
    if not most.rows:
        return f"Changes in {most.source}{when} are"
    count = f"{most.rows:,} row{'' if most.rows == 1 else 's'}"
    said = count if most.counted else f"At least {count}"
    return f"{said} of {most.source}{when} {'is' if most.rows == 1 else 'are'}"


def _first_line(error: str) -> str:
    return error.strip().partition("\n")[0].rstrip(".")[:160]
