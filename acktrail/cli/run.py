"""`acktrail run`: the Spark jobs, in order, on what is new."""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from datetime import UTC, datetime
from typing import TYPE_CHECKING, Any

import click

from acktrail.answers.pending import record_failures
from acktrail.errors import AcktrailError, ConfigError
from acktrail.nearest import did_you_mean
from acktrail.settings import Loaded
from acktrail.terminal.options import as_of_option, format_option, lake_to_keep, settings_options
from acktrail.terminal.output import write_rows
from acktrail.terminal.progress import Progress
from acktrail.window import Window

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

    from acktrail.lake import Lake
    from pipelines.job import Job, Options
    from pipelines.runner import RunCounts

_COLUMNS = ("job", "shape", "rows_in", "rows_out", "dropped", "touched", "seconds", "said")


@click.command()
@click.argument("jobs", nargs=-1)
@click.option("--rebuild", metavar="FROM/TO", help="Make this window anew from the evidence.")
@click.option("--master", metavar="URL", help="Spark master, e.g. local[2], spark://host:7077.")
@as_of_option
@format_option
@settings_options
def command(
    loaded: Loaded,
    jobs: tuple[str, ...],
    rebuild: str | None,
    master: str | None,
    as_of: datetime,
    output: str,
) -> None:
    """Turn new evidence into facts and answers.

    Safe to repeat: a run with nothing new does nothing, and starts no JVM.

    Example:

    \b
        acktrail run --lake ./lake
        acktrail run retry_budgets --lake ./lake --as-of 2026-01-31T07:00Z
        acktrail run --lake ./lake --rebuild 2026-01-31T00:00Z/2026-02-01T00:00Z
    """
    from pipelines import runner
    from pipelines.registry import jobs_named
    from pipelines.schedule import run_all

    chosen = jobs_named(jobs)
    window = Window.parse(rebuild) if rebuild else None
    lake = lake_to_keep(loaded)
    options = job_options(loaded)
    long_job = runner.is_long(chosen, lake, rebuild=window is not None)
    spark_on_demand = SparkOnDemand(loaded, master, long_job=long_job)
    unfinished = Unfinished(lake, [job.name for job in chosen], as_of)
    with spark_on_demand as spark, Progress(len(chosen)) as progress:

        def run_one(job: Job) -> RunCounts:
            with progress.part(job.name), unfinished.job(job.name):
                return runner.run(job, lake, spark, as_of, options, window)

        with unfinished:
            done = run_all(chosen, run_one)
    write_rows([_row(counts) for counts in done], _COLUMNS, output)


class Unfinished:
    """Writes the jobs that a failed run did not finish to `run_failures`, for `acktrail check`."""

    def __init__(self, lake: Lake, jobs: Sequence[str], as_of: datetime) -> None:
        self._lake, self._as_of = lake, as_of
        self._errors = dict.fromkeys(jobs, "")

    @contextmanager
    def job(self, name: str) -> Iterator[None]:
        """Note how one job ends."""
        try:
            yield
        except Exception as error:
            self._errors[name] = f"{name}: {type(error).__name__}: {error}"
            raise
        del self._errors[name]

    def __enter__(self) -> None:
        """Nothing is written unless the run fails."""

    def __exit__(self, _kind: object, error: BaseException | None, _trace: object) -> None:
        if error is None:
            return
        first = next((said for said in self._errors.values() if said), type(error).__name__)
        errors = {job: said or first for job, said in self._errors.items()}
        try:
            record_failures(self._lake, errors, datetime.now(UTC), self._as_of)
        except (AcktrailError, OSError) as unwritten:
            click.echo(f"The failure was not written to run_failures: {unwritten}", err=True)


class SparkOnDemand:
    """Makes the session when it is first called, and stops it at the end."""

    def __init__(
        self, loaded: Loaded, master: str | None = None, *, long_job: bool = False
    ) -> None:
        self._long_job = long_job
        self._master = master or loaded.settings.spark.master
        self._conf = loaded.settings.spark.conf
        self._session: SparkSession | None = None
        self._making = threading.Lock()

    def __call__(self) -> SparkSession:
        """The session; the JVM starts the first time."""
        from pipelines import session

        with self._making:
            if self._session is None:
                self._session = session.build(self._master, self._conf, long_job=self._long_job)
            return self._session

    def renew(self) -> None:
        """Drop a session whose JVM is gone; the next call makes another. A live one is kept."""
        from pyspark.errors import PySparkException

        from pipelines import session

        if self._session is None:
            return
        try:
            self._session.range(1).count()
        except (PySparkException, OSError, RuntimeError, TypeError, AttributeError):
            self._session = None
            session.forget_gateway()

    def __enter__(self) -> Callable[[], SparkSession]:
        return self

    def __exit__(self, *_error: object) -> None:
        if self._session is not None:
            self._session.stop()


def job_options(loaded: Loaded) -> Options:
    """What the settings change in the jobs."""
    from pipelines.job import Options

    settings = loaded.settings
    _refuse_unknown(settings.inventory)
    inventory = {
        client: {name: str(value) for name, value in known.items()}
        for client, known in settings.inventory.items()
    }
    return Options(tuple(rule.model_dump() for rule in settings.aliases), inventory)


def _refuse_unknown(inventory: Mapping[str, Mapping[str, str | int | float]]) -> None:
    """ConfigError where the inventory names a setting that no job reads, or not by a number."""
    from acktrail.retries.client_budgets import INVENTORY_NAMES, VERSION

    for client, known in inventory.items():
        for name, value in known.items():
            where = f'inventory."{client}"."{name}"'
            dotted = name.replace("_", ".")
            if dotted not in INVENTORY_NAMES:
                near = did_you_mean(dotted, INVENTORY_NAMES)
                listed = f" It can say: {', '.join(INVENTORY_NAMES)}."
                raise ConfigError(f"{where}: the inventory has no such setting.{near or listed}")
            if dotted != VERSION and not str(value).isdigit():
                raise ConfigError(f"{where} = {value!r}: write a whole number")


def _row(counts: RunCounts) -> dict[str, Any]:
    said = [f"migrated {table}" for table in counts.migrated]
    said += ["nothing new"] if counts.nothing_new else ["rebuilt"] if counts.rebuilt else []
    seconds = (counts.ended_at - counts.started_at).total_seconds()
    return {
        "job": counts.job,
        "shape": counts.shape,
        "rows_in": counts.rows_in,
        "rows_out": counts.rows_out,
        "dropped": counts.dropped or None,
        "touched": counts.touched,
        "seconds": round(seconds, 1),
        "said": ", ".join(said),
    }
