"""`acktrail watch`: agents, small jobs and checks every few seconds, so that warnings are early."""

from __future__ import annotations

import signal
import threading
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from acktrail.commands.options import open_lake, settings_options
from acktrail.errors import TransientError
from acktrail.output import moment
from acktrail.settings import Loaded

if TYPE_CHECKING:
    from acktrail.commands.run import SparkOnDemand
    from acktrail.contracts import Table
    from acktrail.lake import Lake
    from acktrail.settings.alerts import AlertSettings
    from expectations.alert import Alert
    from expectations.result import CheckResult
    from ingest.agent import Agent
    from pipelines.job import Job, Options

SMALL_JOBS = ("producer_events", "client_configs", "client_metrics", "retry_budgets")
"""What an early warning needs. The scheduled `acktrail run` does the rest, beside it."""

OPEN = "open"
_KEEP_EVERY = timedelta(minutes=5)


@click.command()
@click.argument("jobs", nargs=-1)
@click.option("--every", default=5.0, show_default=True, help="Seconds between two rounds.")
@click.option("--for", "seconds", type=float, help="Stop after so many seconds.")
@click.option("--master", metavar="URL", help="Spark master, e.g. local[2].")
@settings_options
def command(
    loaded: Loaded,
    jobs: tuple[str, ...],
    every: float,
    seconds: float | None,
    master: str | None,
) -> None:
    """Read, run and check every few seconds, and alert at once.

    The agents of the configured sources, the jobs that retry budgets need (or JOBS) and their
    checks, in one process with one warm Spark session: the same jobs and checks as `run` and
    `check`. Whoever comes second on a table tries again. SIGTERM ends it in good order. Changes
    of alerts are printed on stdout.

    Example:

    \b
        acktrail watch --config acktrail.toml
        acktrail watch --lake ./lake --every 10
        acktrail watch --lake ./lake producer_events retry_budgets
    """
    from acktrail import journal
    from acktrail.commands.run import SparkOnDemand, job_options
    from acktrail.commands.watch_loop import Step, Watch
    from pipelines.registry import jobs_named

    journal.to_stderr()
    lake = open_lake(loaded)
    chosen = jobs_named(jobs or SMALL_JOBS)
    agent = _agent(loaded, lake, every)
    reading = threading.Thread(target=_read, args=(agent,), name="agents")
    on_demand = SparkOnDemand(loaded, master)
    with on_demand:
        options = job_options(loaded)
        steps: list[Step] = [JobStep(job, lake, on_demand, options) for job in chosen]
        tables = [job.output for job in chosen]
        steps.append(CheckStep(lake, loaded.settings.alerts, tables, _now))
        watch = Watch(steps, every, _now, on_failure=on_demand.renew)
        stop = _stopper(watch.stopping, agent)
        timer = threading.Timer(seconds, stop) if seconds is not None else None
        if agent is not None:
            reading.start()
        if timer is not None:
            timer.start()
        try:
            watch.run()
        finally:
            stop()
            if timer is not None:
                timer.cancel()
            if agent is not None:
                reading.join()


def _now() -> datetime:
    return datetime.now(UTC)


def _stopper(stopping: threading.Event, agent: Agent | None) -> Any:
    """What SIGTERM, SIGINT and the end of --for do: let the round and the agents finish."""

    def stop(*_signal: object) -> None:
        stopping.set()
        if agent is not None:
            agent.stop()

    for signum in (signal.SIGTERM, signal.SIGINT):
        signal.signal(signum, stop)
    return stop


def _agent(loaded: Loaded, lake: Lake, every: float) -> Agent | None:
    """The agents of the configured sources, flushing as often as the jobs look; None if none."""
    if not loaded.settings.sources:
        return None
    from acktrail.commands.agent import sources_of
    from ingest.agent import Agent, Pace

    settings = loaded.settings.agent
    pace = Pace(min(settings.flush_s, every / 2), int(settings.flush_mb * 1024 * 1024))
    return Agent(lake, sources_of(loaded, once=False), pace)


def _read(agent: Agent) -> None:
    """Agents go on without a source that cannot be cured; they have said so in the journal."""
    from acktrail.errors import AcktrailError

    try:
        agent.run()
    except AcktrailError as error:
        click.echo(f"{type(error).__name__}: {error}", err=True)


@dataclass
class JobStep:
    """One job, run on what is new."""

    job: Job
    lake: Lake
    spark: SparkOnDemand
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

    def __call__(self, as_of: datetime) -> bool:
        """True if an alert was opened, changed or resolved."""
        from expectations.ask import answers, keep
        from expectations.notify import receivers
        from expectations.outbox import Outbox

        policy = Path(self.settings.policy) if self.settings.policy else None
        # What no job has written yet is for the scheduled check to miss, not for the first round.
        written = [table.name for table in self.tables if self.lake.exists(table)]
        runbooks = self.settings.runbooks_url
        # Asked about now, a warning comes as early as it can. But silence counts only up to the
        # moment that was read, the tick's beginning: by now alone, nothing is resolved.
        results = answers(self.lake, self.clock(), policy, runbooks, tables=written)
        if self._open and not any(r.findings for r in results):
            results = answers(self.lake, as_of, policy, runbooks, tables=written)
        if self._worth_keeping(results, as_of):
            keep(self.lake, results, as_of)
        outbox = Outbox(self.lake)
        findings = [f for r in results for f in r.findings]
        changes = outbox.record(findings, {r.check for r in results}, as_of)
        self._tell(changes, as_of)
        interval = timedelta(seconds=self.settings.interval_s)
        delivery = outbox.deliver(receivers(self.settings), datetime.now(UTC), interval)
        if delivery.problems:
            raise TransientError("; ".join(delivery.problems))
        return bool(changes or delivery.delivered)

    def _tell(self, changes: Sequence[Alert], as_of: datetime) -> None:
        """One line on stdout when an alert opens and when it is resolved, not in between."""
        for alert in changes:
            if alert.status == OPEN and alert.fingerprint in self._open:
                continue
            (self._open.add if alert.status == OPEN else self._open.discard)(alert.fingerprint)
            said = alert.annotations.get("summary", "")
            click.echo(f"{moment(as_of)}  {alert.status}  {alert.check}  {said}")

    def _worth_keeping(self, results: Sequence[CheckResult], as_of: datetime) -> bool:
        """Results are kept when an outcome changed, else every five minutes."""
        outcomes = {(r.table, r.check): r.outcome.value for r in results}
        stale = self._kept_at is None or as_of - self._kept_at >= _KEEP_EVERY
        if outcomes == self._kept and not stale:
            return False
        self._kept, self._kept_at = outcomes, as_of
        return True
