"""What one round of `acktrail watch` does: each job on what is new, then the checks and alerts."""

from __future__ import annotations

import logging
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import TYPE_CHECKING
from urllib.parse import unquote

import click

from acktrail.contracts.bronze import LOG_RECORDS
from acktrail.errors import AlertUndelivered
from acktrail.operate.watch_loop import is_due
from acktrail.terminal.output import moment
from acktrail.window import hour_of
from ingest.agent.source_log import SourceLog

if TYPE_CHECKING:
    from acktrail.alerts.finding import CheckResult
    from acktrail.alerts.lifecycle import Alert
    from acktrail.contracts import Table
    from acktrail.lake import Lake
    from acktrail.settings.alerts import AlertSettings
    from pipelines.job import Job, Options
    from pipelines.runner import SparkFactory

log = logging.getLogger(__name__)

_KEEP_EVERY = timedelta(minutes=5)
_ANSWER_S, _GIVE_UP_S = 5.0, 1.0
"""How long a round waits for a receiver's answer, and goes on trying."""
_READ_LATE = timedelta(seconds=5)
"""How old a line may be before the agents have it in the lake."""
_SETTINGS = "(Producer|Consumer)Config values:|Kafka version"
"""Words of the records that `client_configs` is made from."""


@dataclass
class JobStep:
    """One job, run on what is new."""

    job: Job
    lake: Lake
    spark: SparkFactory
    options: Options

    @property
    def name(self) -> str:
        """As the job."""
        return self.job.name

    def __call__(self, as_of: datetime) -> bool:
        """True if there was anything new."""
        from pipelines import runner

        counts = runner.run(self.job, self.lake, self.spark, as_of, self.options)
        return not counts.nothing_new


@dataclass
class SettingsStep(JobStep):
    """`client_configs`, run once a client has printed settings, and every hour.

    It makes a whole day anew, and nearly all new records say nothing of settings; but what no job
    has read yet is not put together with other files.
    """

    every: timedelta = timedelta(hours=1)
    _looked_at: int | None = None
    _ran_at: datetime | None = None

    def __call__(self, as_of: datetime) -> bool:
        """True if there was anything to read."""
        added = self.lake.added(LOG_RECORDS, self._looked_at)
        if added is None:
            return False
        first = self._looked_at is None or not added.complete
        due = is_due(self._ran_at, as_of, self.every)
        ran = False
        if first or due or prints_settings(self.lake, added.files):
            ran = super().__call__(as_of)
            self._ran_at = as_of
        self._looked_at = added.version
        return ran


def prints_settings(lake: Lake, files: Iterable[str]) -> bool:
    """Whether any record in these *files* of `log_records` holds settings or a version."""
    import pyarrow.compute as pc
    import pyarrow.parquet as pq
    from pyarrow import fs

    for name in files:
        path = f"{lake.path(LOG_RECORDS)}/{unquote(name)}"
        system, inner = fs.FileSystem.from_uri(path) if "://" in path else (None, path)
        texts = pq.read_table(inner, columns=["text"], filesystem=system).column("text")
        if pc.any(pc.match_substring_regex(texts, _SETTINGS)).as_py():
            return True
    return False


@dataclass
class PacedStep(JobStep):
    """A job whose evidence comes in steps of its own, and is not run more often than that."""

    every: timedelta = timedelta(seconds=30)
    _ran_at: datetime | None = None

    def __call__(self, as_of: datetime) -> bool:
        """True if there was anything new."""
        if not is_due(self._ran_at, as_of, self.every):
            return False
        ran = super().__call__(as_of)
        self._ran_at = as_of if ran else self._ran_at
        return ran


_STEPS: dict[str, type[JobStep]] = {"client_configs": SettingsStep, "client_metrics": PacedStep}


def step_of(job: Job, lake: Lake, spark: SparkFactory, options: Options) -> JobStep:
    """The step that runs *job* in a round."""
    return _STEPS.get(job.name, JobStep)(job, lake, spark, options)


@dataclass
class WarmUp:
    """The budget rules once, on a line made up for it, so that the first real one finds all ready.

    A fleet may print no retry for days. Then the first is the one that matters, and classes still
    to be loaded and a worker still to be started would take from its time.
    """

    spark: SparkFactory
    name: str = "warm_up"
    _done: bool = False

    def __call__(self, as_of: datetime) -> bool:
        """Always False: nothing in the lake changes."""
        from acktrail.contracts.arrow import rows
        from acktrail.contracts.silver import PRODUCER_EVENTS
        from pipelines.gold.retry_budgets import JOB
        from pipelines.job import Options
        from pipelines.spark_schema import no_rows

        if not self._done:
            line = {"cluster": "", "event_key": "", "source": "", "record_key": "", "kind": "retry"}
            made_up = rows(PRODUCER_EVENTS, [line | {"at": as_of, "hour": hour_of(as_of)}])
            session = self.spark()
            inputs = {table.name: no_rows(session, table) for table in JOB.inputs}
            inputs[PRODUCER_EVENTS.name] = session.createDataFrame(made_up)
            JOB.transform(inputs, None, Options()).collect()
            self._done = True
            log.info("Spark is ready.")
        return False


def hasty(settings: AlertSettings) -> AlertSettings:
    """The same receivers, asked with little patience: the next round asks again soon."""
    brief = {
        "timeout_s": min(settings.timeout_s, _ANSWER_S),
        "give_up_s": min(settings.give_up_s, _GIVE_UP_S),
    }
    return settings.model_copy(update=brief)


@dataclass
class CheckStep:
    """The checks on the jobs' tables, and what they mean for alerts.

    Time alone can make a budget critical, so every round asks, whether or not anything is new.
    """

    lake: Lake
    settings: AlertSettings
    tables: Sequence[Table]
    clock: Callable[[], datetime]
    name: str = "checks"
    _kept: dict[tuple[str, str], str] = field(default_factory=dict)
    _kept_at: datetime | None = None
    _open: set[str] = field(default_factory=set)
    _noted: set[str] = field(default_factory=set)
    _delivery: SourceLog = field(default_factory=lambda: SourceLog("alerts"))

    def __call__(self, as_of: datetime) -> bool:
        """True if an alert was opened, changed or resolved."""
        from expectations.ask import answers, check_names, keep, policy_and_suites
        from expectations.notify import receivers
        from expectations.outbox import Outbox

        policy = Path(self.settings.policy) if self.settings.policy else None
        decided, suites = policy_and_suites(policy)
        for note in decided.notes():
            if note not in self._noted:
                self._noted.add(note)
                log.warning("%s: %s", policy, note)
        # What no job has written yet is for the scheduled check to miss, not for the first round.
        written = [table.name for table in self.tables if self.lake.exists(table)]
        runbooks = self.settings.runbooks_url
        # Asked about now, a warning comes as early as it can. But silence counts only up to the
        # moment that was surely read: by now alone, nothing is quiet or resolved.
        results = answers(self.lake, self.clock(), policy, runbooks, tables=written)
        loud = {r.table for r in results if r.findings}
        quiet = [name for name in written if name not in loud]
        if quiet:
            results = [r for r in results if r.table in loud]
            results += answers(self.lake, as_of - _READ_LATE, policy, runbooks, tables=quiet)
        if self._worth_keeping(results, as_of):
            keep(self.lake, results, as_of)
        outbox = Outbox(self.lake)
        findings = [f for r in results for f in r.findings]
        ran, existing = {r.check for r in results}, check_names(suites)
        changes = outbox.record(findings, ran, as_of, existing)
        self._tell(changes, as_of)
        interval = timedelta(seconds=self.settings.interval_s)
        delivery = outbox.deliver(receivers(hasty(self.settings)), datetime.now(UTC), interval)
        if delivery.problems:
            # They stay in the outbox, and a watch that ended now would miss what comes next.
            said = "; ".join(delivery.problems)[:500]
            self._delivery.failed(AlertUndelivered(f"Not delivered: {said}."))
        elif delivery.delivered:
            self._delivery.worked()
        return bool(changes or delivery.delivered)

    def _tell(self, changes: Sequence[Alert], as_of: datetime) -> None:
        """One line on stdout when an alert opens and when it is resolved, not in between."""
        from acktrail.alerts.lifecycle import OPEN

        for alert in changes:
            if alert.status == OPEN and alert.fingerprint in self._open:
                continue
            (self._open.add if alert.status == OPEN else self._open.discard)(alert.fingerprint)
            click.echo(f"{moment(as_of)}  {alert.status}  {alert.check}  {alert.summary}")

    def _worth_keeping(self, results: Sequence[CheckResult], as_of: datetime) -> bool:
        """Results are kept when an outcome changed, else every five minutes."""
        outcomes = {(r.table, r.check): r.outcome.value for r in results}
        stale = is_due(self._kept_at, as_of, _KEEP_EVERY)
        if outcomes == self._kept and not stale:
            return False
        self._kept, self._kept_at = outcomes, as_of
        return True
