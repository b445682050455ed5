"""What one round of `acktrail watch` does: each job on what is new, then the checks and alerts."""

from __future__ import annotations

import logging
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import TYPE_CHECKING
from urllib.parse import unquote

import click

from acktrail.alerts.finding import UNDECIDED
from acktrail.contracts.bronze import LOG_RECORDS
from acktrail.contracts.gold import RETRY_BUDGETS
from acktrail.contracts.runs import SOURCE_STATES
from acktrail.errors import AlertUndelivered
from acktrail.operate.watch_loop import is_due
from acktrail.terminal.output import moment
from acktrail.window import hour_of
from ingest.agent.source_log import SourceLog

if TYPE_CHECKING:
    from acktrail.alerts.alert import Alert
    from acktrail.alerts.finding import CheckResult
    from acktrail.contracts import Table
    from acktrail.lake import Lake
    from acktrail.settings.alerts import AlertSettings
    from expectations.suite import Suite
    from pipelines.job import Job, Options
    from pipelines.runner import SparkFactory

log = logging.getLogger(__name__)

_KEEP_EVERY = timedelta(minutes=5)
_ANSWER_S, _GIVE_UP_S = 5.0, 1.0
"""How long a round waits for a receiver's answer, and goes on trying."""
_READ_LATE = timedelta(seconds=5)
"""How old a line may be before the agents have it in the lake."""
_ASK_EVERY = timedelta(seconds=30)
_BY_TIME = (RETRY_BUDGETS, SOURCE_STATES)
"""Tables whose checks every round asks: their answer changes with the clock alone."""
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

    It recomputes a whole day, and nearly all new records say nothing of settings; but what no job
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

    place = lake.at(LOG_RECORDS).files()
    for name in files:
        texts = pq.read_table(unquote(name), columns=["text"], filesystem=place).column("text")
        if pc.any(pc.match_substring_regex(texts, _SETTINGS)).as_py():
            return True
    return False


@dataclass
class PacedStep(JobStep):
    """A job whose evidence comes in steps of its own, and is not run more often than that."""

    every: timedelta = timedelta(seconds=10)
    _ran_at: datetime | None = None

    def __call__(self, as_of: datetime) -> bool:
        """True if there was anything new."""
        if not is_due(self._ran_at, as_of, self.every):
            return False
        ran = super().__call__(as_of)
        self._ran_at = as_of if ran else self._ran_at
        return ran


_STEPS: dict[str, type[JobStep]] = {
    "client_configs": SettingsStep,
    "client_metrics": PacedStep,
    "broker_metrics": PacedStep,
}


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
    report_url: str | None = None
    _kept: dict[tuple[str, str], str] = field(default_factory=dict)
    _kept_at: datetime | None = None
    _open: set[str] = field(default_factory=set)
    _noted: set[str] = field(default_factory=set)
    _asked: dict[str, tuple[int | None, datetime | None]] = field(default_factory=dict)
    _delivery: SourceLog = field(default_factory=lambda: SourceLog("alerts"))

    def __call__(self, as_of: datetime) -> bool:
        """True if an alert was opened, changed or resolved."""
        from expectations.paging import deliver_alerts, keep_results, record_alerts
        from expectations.policy_suites import policy_and_suites
        from expectations.validate import Asked, validate

        policy = Path(self.settings.policy) if self.settings.policy else None
        decided, suites = policy_and_suites(policy)
        for note in decided.notes():
            if note not in self._noted:
                self._noted.add(note)
                log.warning("%s: %s", policy, note)
        chosen = self._due(suites, as_of)
        runbooks = self.settings.runbooks_url
        # Asked about now, a warning comes as early as it can. But silence counts only up to the
        # moment that was surely read: by now alone, nothing is quiet or resolved.
        asked = Asked(self.clock(), decided, runbooks)
        read = Asked(as_of - _READ_LATE, decided, runbooks)
        early = [suite for suite in chosen if suite.table in _BY_TIME]
        results = validate(early, self.lake, asked)
        loud = {r.table for r in results if r.findings}
        results = [r for r in results if r.table in loud]
        later = [suite for suite in chosen if suite.table.name not in loud]
        if later:
            results += validate(later, self.lake, read)
        if self._worth_keeping(results, as_of):
            keep_results(self.lake, results, as_of)
        changes = record_alerts(self.lake, _told_here(results), suites, asked, as_of)
        self._tell(changes, as_of)
        delivery = deliver_alerts(
            self.lake, hasty(self.settings), datetime.now(UTC), self.report_url
        )
        if delivery.problems:
            # They stay in the outbox, and a watch that ended now would miss what comes next.
            said = "; ".join(delivery.problems)[:500]
            self._delivery.failed(AlertUndelivered(f"Not delivered: {said}."))
        elif delivery.delivered:
            self._delivery.worked()
        return bool(changes or delivery.delivered)

    def _due(self, suites: Sequence[Suite], as_of: datetime) -> list[Suite]:
        """The suites whose answer may be another than before.

        Time alone changes some; the others when their table has changed, and every half minute,
        because evidence beside it counts too. What no job has written yet is for the scheduled
        check to miss, not for the first round.
        """
        mine = {table.name for table in self.tables}
        found = []
        for suite in suites:
            name = suite.table.name
            version = self.lake.version(suite.table) if name in mine else None
            if version is None:
                continue
            before, at = self._asked.get(suite.name, (None, None))
            if suite.table in _BY_TIME or version != before or is_due(at, as_of, _ASK_EVERY):
                self._asked[suite.name] = (version, as_of)
                found.append(suite)
        return found

    def _tell(self, changes: Sequence[Alert], as_of: datetime) -> None:
        """One line on stdout when an alert opens and when it is resolved, not in between."""
        from acktrail.alerts.alert import OPEN

        for alert in changes:
            if alert.status == OPEN and alert.fingerprint in self._open:
                continue
            (self._open.add if alert.status == OPEN else self._open.discard)(alert.fingerprint)
            click.echo(f"{moment(as_of)}  {alert.status}  {alert.severity}  {alert.summary}")

    def _worth_keeping(self, results: Sequence[CheckResult], as_of: datetime) -> bool:
        """Results are kept when an outcome changed, else every five minutes."""
        outcomes = {(r.table, r.check): r.outcome.value for r in results}
        stale = is_due(self._kept_at, as_of, _KEEP_EVERY)
        known = {**self._kept, **outcomes}
        if known == self._kept and not stale:
            return False
        self._kept, self._kept_at = known, as_of
        return True


def _told_here(results: Sequence[CheckResult]) -> list[CheckResult]:
    """*results*, with what is not known left to the scheduled check to tell.

    A watch that has just begun has not read everything yet. What is not known still keeps open
    what was found before.
    """
    return [
        replace(
            result,
            findings=tuple(
                replace(f, muted_by=f.muted_by or "watch") if f.state == UNDECIDED else f
                for f in result.findings
            ),
        )
        for result in results
    ]
