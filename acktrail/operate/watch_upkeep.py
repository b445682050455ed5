"""What keeps a round of `acktrail watch` as short after a week as after a minute."""

from __future__ import annotations

import logging
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import TYPE_CHECKING

from acktrail.contracts.runs import ALERTS, CHECK_RESULTS, RUNS, SOURCE_STATES
from acktrail.operate.watch_loop import is_due
from ingest.agent.source_log import sentence

if TYPE_CHECKING:
    from acktrail.contracts import Table
    from acktrail.lake import Lake
    from pipelines.job import Job

log = logging.getLogger(__name__)


@dataclass
class UpkeepStep:
    """Every hour, small files of the tables that rounds read and write are put together, and old
    entries of their logs removed.

    Every round leaves some, and all that reads a table, its log included, takes longer with each.
    It comes last in its round, after the alerts, and no watch ends by it: what fails is tried again
    an hour later.
    """

    lake: Lake
    jobs: Sequence[Job]
    every: timedelta = timedelta(hours=1)
    name: str = "upkeep"
    _kept_at: datetime | None = None

    def __call__(self, as_of: datetime) -> bool:
        """True if files were put together."""
        if self._kept_at is None:
            self._kept_at = as_of
        if not is_due(self._kept_at, as_of, self.every):
            return False
        self._kept_at = as_of
        removed = sum(self._optimize(table) for table in self._tables())
        if removed:
            log.info("Compacted %d small files.", removed)
        return removed > 0

    def _tables(self) -> list[Table]:
        used = {t.name: t for job in self.jobs for t in (*job.inputs, job.output)}
        return [*used.values(), RUNS, CHECK_RESULTS, ALERTS, SOURCE_STATES]

    def _optimize(self, table: Table) -> int:
        from pipelines import upkeep
        from pipelines.registry import JOBS

        try:
            return upkeep.optimize(self.lake, table, JOBS)["files_removed"]
        except Exception as error:
            log.warning(
                "Could not compact %s: %s Will try again in an hour.", table.name, sentence(error)
            )
            return 0
