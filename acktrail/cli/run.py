"""`acktrail run`: the Spark jobs, in order, on what is new."""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from datetime import UTC, datetime
from typing import TYPE_CHECKING, Any

import click

from acktrail.answers.pending import record_failures
from acktrail.errors import AcktrailError, ConfigError, LakeBusy, Overtaken
from acktrail.nearest import did_you_mean
from acktrail.settings import Loaded
from acktrail.terminal.options import (
    as_of_option,
    format_option,
    lake_to_keep,
    master_option,
    open_lake,
    settings_options,
)
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
@click.option("--rebuild", metavar="FROM/TO", help="Recompute this window from bronze.")
@master_option
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

    Safe to repeat: without new evidence it does nothing and starts no JVM. Safe beside `watch` and
    other runs: if two write to one table, the second reads what the first committed and tries
    again.

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

        def run_one(job: Job) -> RunCounts | Overtaken:
            with progress.part(job.name), unfinished.job(job.name):
                try:
                    return runner.run(job, lake, spark, as_of, options, window)
                except Overtaken as error:  # the other jobs go on
                    return error

        with unfinished:
            done = dict(zip(chosen, run_all(chosen, run_one), strict=True))
            overtaken = {job: e for job, e in done.items() if isinstance(e, Overtaken)}
            late = [job for job in overtaken if window or not runner.is_up_to_date(job, lake)]
            unfinished.overtaken({job.name: overtaken[job] for job in late})
    write_rows([_row(job, counts) for job, counts in done.items()], _COLUMNS, output)


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

    def overtaken(self, jobs: Mapping[str, Overtaken]) -> None:
        """LakeBusy where *jobs* have still something to do, that other drivers kept them from."""
        if not jobs:
            return
        self._errors.update({name: f"{name}: {error}" for name, error in jobs.items()})
        raise LakeBusy(
            f"Other drivers kept committing first to {', '.join(jobs)}: these are not up to date. "
            "Every other job is done, and nothing was lost. Run again."
        )

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
        from pipelines.spark_conf import refuse_private_lake

        given = loaded.settings.spark
        self._spark = given.model_copy(update={"master": master}) if master else given
        self._store = open_lake(loaded).store
        self._long_job = long_job
        self._session: SparkSession | None = None
        self._making = threading.Lock()
        refuse_private_lake(self._spark, self._store)

    def __call__(self) -> SparkSession:
        """The session; the JVM starts the first time."""
        from pipelines import session, spark_log

        with self._making:
            if self._session is None:
                self._session = session.build(self._spark, self._store, long_job=self._long_job)
            spark_log.keep_short(spark_log.jvm_log())
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
    from acktrail.retries.client_settings import INVENTORY_NAMES, VERSION

    for client, known in inventory.items():
        for name, value in known.items():
            where = f'inventory."{client}"."{name}"'
            dotted = name.replace("_", ".")
            if dotted not in INVENTORY_NAMES:
                near = did_you_mean(dotted, INVENTORY_NAMES)
                listed = f" It can have: {', '.join(INVENTORY_NAMES)}."
                raise ConfigError(f"{where}: the inventory has no such setting.{near or listed}")
            if dotted != VERSION and not str(value).isdigit():
                raise ConfigError(f"{where} = {value!r}: write a whole number")


def _row(job: Job, counts: RunCounts | Overtaken) -> dict[str, Any]:
    if isinstance(counts, Overtaken):
        return {"job": job.name, "shape": job.shape, "said": "done by another driver"}
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
