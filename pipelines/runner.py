"""The runner: read what is new, transform, conform, count, commit.

A run's commit carries, in the same Delta transaction as its rows, the job's run number (a repeated
one is skipped) and the versions of the inputs it has consumed. A crash before the commit leaves
nothing but files no commit names; after it, the next run starts from there.
"""

from __future__ import annotations

import threading
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from typing import TYPE_CHECKING
from urllib.parse import unquote

from acktrail.contracts import Table
from acktrail.contracts.arrow import rows
from acktrail.contracts.runs import RUNS
from acktrail.crashpoints import crash_point
from acktrail.errors import LakeBusy, PositionConflict
from acktrail.lake import AddedFiles, Change, Lake, Position
from acktrail.window import Window, day_of, hour_of
from pipelines.job import Diff, Evidence, Fold, Job, Map, Options

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

    from pipelines.mapping import Span
    from pipelines.writing import Target, Written

SparkFactory = Callable[[], "SparkSession"]
"""Makes the session when it is first needed: a run with nothing new starts no JVM."""

FILES_LISTED = 1_000
"""A table of at most so many files on a disk is read by their names, as the control plane lists
them: Delta's own listing is a Spark job or two (1.2 s a table against 0.1 s). Beyond that, and on
object stores where each name costs a request, Delta's index is the cheaper one."""


_MIGRATING = threading.Lock()

LONG_ROWS = 1_000_000
"""From so many new rows of one table on, a run is a long job (`session.build`)."""


@dataclass(frozen=True)
class RunCounts:
    """What one run of one job did: rows in = rows out + dropped, for a map."""

    job: str
    shape: str
    run: int
    started_at: datetime
    ended_at: datetime
    as_of: datetime
    nothing_new: bool = False
    rebuilt: bool = False
    rows_in: int = 0
    rows_out: int = 0
    dropped: Mapping[str, int] = field(default_factory=dict)
    consumed: Mapping[str, int] = field(default_factory=dict)
    touched: int = 0
    version: int = -1
    migrated: tuple[str, ...] = ()
    """Tables that an earlier version wrote, and that were rewritten before the run."""


@dataclass(frozen=True)
class _Plan:
    """What the control plane says before any JVM: what is new, whether to make all anew."""

    job: Job
    run: int
    news: Mapping[str, AddedFiles]
    since: Mapping[str, int]
    rebuild: bool

    @property
    def consumed(self) -> dict[str, int]:
        return {**self.since, **{name: added.version for name, added in self.news.items()}}


def run(
    job: Job,
    lake: Lake,
    spark: SparkFactory,
    as_of: datetime,
    options: Options | None = None,
    rebuild: Window | None = None,
) -> RunCounts:
    """Run *job* once on what is new, or over *rebuild*; the run is recorded in `runs`."""
    started_at = datetime.now(UTC)
    migrated = _migrate(job, lake)
    plan = _plan(job, lake)
    if rebuild is None and not plan.rebuild and not _has_news(plan):
        ended_at = datetime.now(UTC) if migrated else started_at
        return RunCounts(
            job.name,
            job.shape,
            plan.run,
            started_at,
            ended_at,
            as_of,
            nothing_new=True,
            migrated=migrated,
        )
    from pipelines import writing

    session = spark()
    chosen = options or Options()
    if isinstance(job, Map):
        written = _run_map(job, session, lake, plan, chosen, rebuild)
    else:
        writing.create(session, lake, job.output)
        if isinstance(job, Fold):
            frame, target = _fold_rows(job, session, lake, plan, chosen, rebuild)
        else:
            frame, target = _diff_rows(job, session, lake, plan, as_of)
        crash_point("before_commit")
        written = writing.commit(lake, job, plan.run, frame, target, plan.consumed)
        if lake.consumed(job.output, job.name) != plan.consumed:
            raise _overtaken(plan)  # Spark skips a number that is already there
    crash_point("after_commit")
    counts = RunCounts(
        job=job.name,
        shape=job.shape,
        run=plan.run,
        started_at=started_at,
        ended_at=datetime.now(UTC),
        as_of=as_of,
        rebuilt=plan.rebuild or rebuild is not None,
        rows_in=_rows_in(plan, whole=plan.rebuild or rebuild is not None),
        rows_out=written.rows,
        dropped=written.dropped,
        consumed=plan.consumed,
        touched=written.touched,
        version=lake.version(job.output) or 0,
        migrated=migrated,
    )
    _record(lake, counts)
    crash_point("after_record")
    return counts


def _migrate(job: Job, lake: Lake) -> tuple[str, ...]:
    """Rewrite the job's tables that an earlier version wrote; jobs side by side wait here."""
    outdated = [table for table in (*job.inputs, job.output) if lake.outdated(table)]
    if not outdated:
        return ()
    from pipelines.migrations import migrate

    with _MIGRATING:
        return tuple(table.name for table in outdated if migrate(lake, table))


def is_long(jobs: Sequence[Job], lake: Lake, rebuild: bool = False) -> bool:
    """Whether there is so much to read that the JVM's full compiler is worth its start."""
    found = (lake.added(t, None) for job in jobs for t in job.inputs) if rebuild else ()
    news = (added for job in jobs for added in _plan(job, lake).news.values())
    return any(added.rows >= LONG_ROWS for added in (*found, *news) if added is not None)


def _plan(job: Job, lake: Lake) -> _Plan:
    """Look at the logs of inputs and output only.

    The run's number comes first: whoever commits after that makes this run the second, which
    writes nothing. Read last, it would be a number that stale news are committed under.
    """
    number = lake.position(job.output, job.name)
    exists = lake.exists(job.output)
    consumed = lake.consumed(job.output, job.name) if exists else None
    since = consumed or {}
    news = {}
    for table in job.inputs:
        added = lake.added(table, since.get(table.name))
        if added is not None:
            news[table.name] = added
    lost = consumed is None and exists and bool(lake.files(job.output))
    gap = any(not added.complete for added in news.values())
    return _Plan(job, 0 if number is None else number + 1, news, since, rebuild=lost or gap)


def _rows_in(plan: _Plan, *, whole: bool) -> int:
    """The rows a run reads: what is new, or all there is."""
    return sum(a.standing_rows if whole else a.rows for a in plan.news.values())


def _has_news(plan: _Plan) -> bool:
    return any(added.files or added.partitions for added in plan.news.values())


def _overtaken(plan: _Plan) -> LakeBusy:
    return LakeBusy(
        f"{plan.job.name}: another driver committed run {plan.run} first. "
        "Nothing of this run was written; run again."
    )


def _run_map(
    job: Map,
    session: SparkSession,
    lake: Lake,
    plan: _Plan,
    options: Options,
    rebuild: Window | None,
) -> Written:
    from pipelines import mapping, writing

    lake.create(job.output)
    added = plan.news.get(job.input.name)
    anew = plan.rebuild or rebuild is not None
    files = {} if added is None else added.standing if anew else added.files
    span = None if plan.rebuild or rebuild is None else _span(job.output, rebuild)
    replaced = None if not anew else span.conditions if span is not None else ()
    unread = frozenset(added.files) if added is not None else frozenset()
    rows = 0 if added is None else added.standing_rows if anew else added.rows
    work = mapping.Work(files, rows, span, unread)
    done = mapping.run_tasks(session, lake, job, work, options)
    crash_point("before_commit")
    began = None if plan.run == 0 else plan.run - 1
    run_number = Position(job.name, began, plan.run)
    said = {"userMetadata": writing.note(job, plan.run, plan.consumed)}
    try:
        lake.put(job.output, done.files, Change((run_number,), said, replaced))
    except PositionConflict as error:
        raise _overtaken(plan) from error
    return writing.Written(done.rows, done.dropped)


def _span(table: Table, window: Window) -> Span | None:
    """What lies in *window*, where the partitions are hours or days; else all."""
    from pipelines.mapping import Span

    if not table.partition or table.partition[0] not in ("hour", "day"):
        return None
    spell = day_of if table.partition[0] == "day" else hour_of
    last = window.end - timedelta(microseconds=1)
    return Span(table.partition[0], spell(window.start), spell(last))


def _fold_rows(
    job: Fold,
    session: SparkSession,
    lake: Lake,
    plan: _Plan,
    options: Options,
    rebuild: Window | None,
) -> tuple[DataFrame, Target]:
    from pipelines import writing

    inputs = {table.name: whole(session, lake, table) for table in job.inputs}
    if plan.rebuild or rebuild is not None or not job.output.partition:
        return job.transform(inputs, None, options), writing.ALL
    news = {table: added for table, added in plan.news.items() if added.files or added.partitions}
    evidence = Evidence(
        new={t.name: _files(session, lake, t, news[t.name]) for t in job.inputs if t.name in news},
        changed={name: _texts(added) for name, added in news.items()},
        inputs=inputs,
        output=whole(session, lake, job.output) if lake.files(job.output) else None,
        options=options,
    )
    keys = job.touched(evidence)
    if keys is None:
        return job.transform(inputs, None, options), writing.ALL
    return job.transform(inputs, keys, options), writing.partitions(job.output, keys)


def _diff_rows(
    job: Diff, session: SparkSession, lake: Lake, plan: _Plan, as_of: datetime
) -> tuple[DataFrame, Target]:
    from pipelines import writing
    from pipelines.spark_schema import no_rows

    after = whole(session, lake, job.input)
    since = plan.since.get(job.input.name)
    before = no_rows(session, job.input)
    if since is not None:
        reader = session.read.format("delta").option("versionAsOf", since)
        before = reader.load(lake.path(job.input))
    return job.transform(before, after, as_of), writing.APPEND


def whole(session: SparkSession, lake: Lake, table: Table) -> DataFrame:
    """All of *table*; an empty frame where it was never written."""
    from pipelines.spark_schema import no_rows

    added = lake.added(table, None)
    if added is None:
        return no_rows(session, table)
    if "://" in lake.uri or len(added.files) > FILES_LISTED:
        return session.read.format("delta").load(lake.path(table))
    return _files(session, lake, table, added)


def _files(session: SparkSession, lake: Lake, table: Table, added: AddedFiles) -> DataFrame:
    from pipelines.spark_schema import no_rows, struct

    if not added.files:
        return no_rows(session, table)
    files = [f"{lake.path(table)}/{unquote(name)}" for name in added.files]
    reader = session.read.schema(struct(table)).option("basePath", lake.path(table))
    return reader.parquet(*files)


def _texts(added: AddedFiles) -> frozenset[str]:
    return frozenset(text for values in added.partitions for text in values.values() if text)


def _record(lake: Lake, counts: RunCounts) -> None:
    """One row in `runs`, once per run number."""
    row = {
        "job": counts.job,
        "run": counts.run,
        "started_at": counts.started_at,
        "ended_at": counts.ended_at,
        "as_of": counts.as_of,
        "shape": counts.shape,
        "rebuilt": counts.rebuilt,
        "rows_in": counts.rows_in,
        "rows_out": counts.rows_out,
        "dropped": {reason: str(n) for reason, n in counts.dropped.items()},
        "consumed": {table: str(v) for table, v in counts.consumed.items()},
        "touched": counts.touched,
        "version": counts.version,
    }
    lake.append(RUNS, rows(RUNS, [row]))
