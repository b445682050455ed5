"""`acktrail watch`: agents, small jobs and checks every few seconds, so that warnings are early."""

from __future__ import annotations

import signal
import threading
from collections.abc import Callable, Sequence
from datetime import UTC, datetime
from typing import TYPE_CHECKING, Any

import click

from acktrail.contracts.runs import SOURCE_STATES
from acktrail.settings import Loaded
from acktrail.terminal.options import above_zero, master_option, open_lake, settings_options

if TYPE_CHECKING:
    from acktrail.lake import Lake
    from acktrail.operate.watch_loop import RoundStep
    from ingest.agent.loop import Agent
    from pipelines.job import Job
    from pipelines.runner import SparkFactory

SMALL_JOBS = (
    *("producer_events", "client_configs", "client_metrics", "broker_metrics", "retry_budgets"),
)
"""What an early warning needs: run first in every round, before the checks."""


@click.command()
@click.argument("jobs", nargs=-1)
@click.option(
    "--every", default=5.0, show_default=True, callback=above_zero, help="Seconds between rounds."
)
@click.option(
    "--for", "seconds", type=float, callback=above_zero, help="Stop after so many seconds."
)
@master_option
@settings_options
def command(
    loaded: Loaded,
    jobs: tuple[str, ...],
    every: float,
    seconds: float | None,
    master: str | None,
) -> None:
    """Read, run and check every few seconds, and alert at once.

    One process with one warm Spark session runs the agents of the configured sources, every job (or
    JOBS) whose inputs changed, and their checks: the same as `agent`, `run` and `check`, which can
    run beside it. Jobs for early warnings run first; the others take at most a third of the time.
    On SIGTERM it finishes the current round and ends. Changes of alerts are printed on stdout.

    Example:

    \b
        acktrail watch --config acktrail.toml
        acktrail watch --lake ./lake --every 10
        acktrail watch --lake ./lake producer_events retry_budgets
    """
    from acktrail.cli.run import SparkOnDemand
    from acktrail.operate.watch_loop import Watch
    from acktrail.terminal import journal
    from pipelines.registry import jobs_named

    journal.to_stderr()
    lake = open_lake(loaded)
    chosen = jobs_named(jobs)
    agent = _agent(loaded, lake, every)
    on_demand = SparkOnDemand(loaded, master)
    with on_demand:
        stopping = threading.Event()
        steps = round_of(chosen, lake, on_demand, loaded, _now, stopping)
        watch = Watch(steps, every, _now, stopping, on_failure=on_demand.renew)
        stop = _stopper(watch.stopping, agent)
        reading = Reading(agent, watch.stopping)
        timer = threading.Timer(seconds, stop) if seconds is not None else None
        reading.start()
        if timer is not None:
            timer.start()
        try:
            watch.run()
        finally:
            stop()
            if timer is not None:
                timer.cancel()
            reading.join()
    reading.tell()


def round_of(
    jobs: Sequence[Job],
    lake: Lake,
    spark: SparkFactory,
    loaded: Loaded,
    clock: Callable[[], datetime],
    stopping: threading.Event | None = None,
) -> list[RoundStep]:
    """What a round does: *jobs* that early warnings need, checks, the other jobs, and upkeep."""
    from acktrail.cli.run import job_options
    from acktrail.operate.watch_background import BackgroundJobs
    from acktrail.operate.watch_steps import CheckStep, WarmUp, step_of
    from acktrail.operate.watch_upkeep import UpkeepStep

    options = job_options(loaded)
    tables = [*(job.output for job in jobs), SOURCE_STATES]
    early = [step_of(job, lake, spark, options) for job in jobs if job.name in SMALL_JOBS]
    others = [step_of(job, lake, spark, options) for job in jobs if job.name not in SMALL_JOBS]
    return [
        *early,
        CheckStep(
            lake, loaded.settings.alerts, tables, clock, report_url=loaded.settings.report.url
        ),
        WarmUp(spark),
        *([BackgroundJobs(others, stopping=stopping or threading.Event())] if others else []),
        UpkeepStep(lake, jobs),
    ]


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
    from acktrail.cli.agent import places_of, sources_of
    from ingest.agent.loop import Agent
    from ingest.agent.reading import Pace
    from ingest.agent.writer import this_process

    settings = loaded.settings.agent
    pace = Pace(min(settings.flush_s, every / 2), int(settings.flush_mb * 1024 * 1024))
    return Agent(
        lake,
        sources_of(loaded, once=False),
        pace,
        writer=this_process("watch"),
        places=places_of(loaded),
    )


class Reading:
    """The agents, beside the rounds. A watch ends with their error when nothing reads any more.

    A source that a person must attend to, beside others that go on, is in the journal, in the check
    `every_source_up`, and in the exit code when the watch ends.
    """

    def __init__(self, agent: Agent | None, stopping: threading.Event) -> None:
        self._agent = agent
        self._stopping = stopping
        self._thread = threading.Thread(target=self._read, name="agents")
        self._error: Exception | None = None

    def start(self) -> None:
        """Begin to read, if there is anything to be read."""
        if self._agent is not None:
            self._thread.start()

    def join(self) -> None:
        """Wait until what was read is written."""
        if self._thread.ident is not None:
            self._thread.join()

    def tell(self) -> None:
        """Raise what stopped a source."""
        if self._error is not None:
            raise self._error

    def _read(self) -> None:
        from acktrail.errors import AcktrailError

        assert self._agent is not None
        try:
            self._agent.run()
        except AcktrailError as error:
            self._error = error
        self._stopping.set()
