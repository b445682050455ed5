"""The runner: read what is new, transform, conform, count, commit.

A run's commit carries, in the same Delta transaction as its rows, the job's run number (a repeated
one is skipped) and the versions of the inputs it has consumed. A crash before the commit leaves
nothing but files no commit names; after it, the next run starts from there.
"""

from __future__ import annotations

import json
import logging
import threading
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime, timedelta
from typing import TYPE_CHECKING

from acktrail.contracts import Table
from acktrail.contracts.arrow import rows
from acktrail.contracts.runs import RUNS
from acktrail.crashpoints import crash_point
from acktrail.errors import Overtaken, PositionConflict
from acktrail.lake import (
    NOTHING_REPLACED,
    AddedFiles,
    Change,
    Lake,
    Position,
    ReplaceAll,
    Replacement,
    ReplacePartitions,
    ReplaceRange,
    Snapshot,
)
from acktrail.window import Window, day_of, hour_of
from pipelines.job import Diff, Evidence, Fold, Job, Map, Options

if TYPE_CHECKING:
    import pyarrow as pa
    import pyarrow.dataset as ds
    from pyspark.sql import DataFrame, SparkSession

    from pipelines.mapping import Span
    from pipelines.writing import Written

SparkFactory = Callable[[], "SparkSession"]
"""Makes the session when it is first needed: a run with nothing new starts no JVM."""

log = logging.getLogger(__name__)

TRIES = 5
"""How often a job is run while other drivers commit to its table first."""
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
    """What is decided before any JVM: what is new, and whether the whole table is recomputed."""

    job: Job
    run: int
    news: Mapping[str, AddedFiles]
    since: Mapping[str, int]
    rebuild: bool
    seen: Mapping[str, Snapshot]
    """The inputs that were ever written, and the output, as they were looked at."""

    @property
    def output(self) -> Snapshot | None:
        """The output that was looked at; None before its first version."""
        return self.seen.get(self.job.output.name)

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
    """Run *job* once on what is new, or over *rebuild*; the run is recorded in `runs`.

    Where another driver commits first, nothing of this run is written, and the job is run on what
    is new then: mostly nothing. LakeBusy where that happens TRIES times in a row.
    """
    for _ in range(TRIES - 1):
        try:
            return _run_once(job, lake, spark, as_of, options or Options(), rebuild)
        except Overtaken as error:
            log.info("%s Looking at what is new again.", error)
    return _run_once(job, lake, spark, as_of, options or Options(), rebuild)


def _run_once(
    job: Job,
    lake: Lake,
    spark: SparkFactory,
    as_of: datetime,
    options: Options,
    rebuild: Window | None,
) -> RunCounts:
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
    lake.create(job.output)
    written, replaced = _write(job, spark, lake, plan, as_of, options, rebuild)
    crash_point("before_commit")
    version = _commit(lake, plan, written, replaced)
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
        touched=len(replaced.names) if isinstance(replaced, ReplacePartitions) else 0,
        version=version,
        migrated=migrated,
    )
    _record(lake, counts)
    crash_point("after_record")
    return counts


def is_up_to_date(job: Job, lake: Lake) -> bool:
    """Whether a run of *job* would find nothing to do."""
    plan = _plan(job, lake)
    return not plan.rebuild and not _has_news(plan)


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
    output = lake.look(job.output)
    consumed = None if output is None else lake.consumed(job.output, job.name)
    since = consumed or {}
    seen = {job.output.name: output} if output is not None else {}
    news = {}
    for table in job.inputs:
        found = lake.look(table)
        if found is not None:
            seen[table.name] = found
            news[table.name] = lake.added_to(table, found, since.get(table.name))
    lost = consumed is None and output is not None and bool(output.files)
    gap = any(not added.complete for added in news.values())
    run_number = 0 if number is None else number + 1
    return _Plan(job, run_number, news, since, lost or gap, seen)


def _rows_in(plan: _Plan, *, whole: bool) -> int:
    """The rows a run reads: what is new, or all there is."""
    return sum(a.standing_rows if whole else a.rows for a in plan.news.values())


def _has_news(plan: _Plan) -> bool:
    return any(added.files or added.partitions for added in plan.news.values())


def _write(
    job: Job,
    spark: SparkFactory,
    lake: Lake,
    plan: _Plan,
    as_of: datetime,
    options: Options,
    rebuild: Window | None,
) -> tuple[Written, Replacement]:
    """Write the files of a run, and say which files of the table they replace."""
    from pipelines import input_frames, writing
    from pipelines.spark_schema import no_rows

    if isinstance(job, Map):
        return _map_files(job, spark(), lake, plan, options, rebuild)
    if isinstance(job, Diff):
        frame = _diff_rows(job, spark(), lake, plan, as_of)
        return writing.write_frame(lake, job.output, frame, NOTHING_REPLACED), NOTHING_REPLACED
    keys, needed, summaries = _to_recompute(job, lake, plan, options, rebuild)
    if keys is not None and not keys:
        return writing.Written(), ReplacePartitions(keys)
    session = spark()
    inputs = {
        t.name: input_frames.frame_of(session, lake, t, plan.seen[t.name], needed.get(t.name))
        if t.name in plan.seen
        else no_rows(session, t)
        for t in job.inputs
    }
    inputs |= {name: session.createDataFrame(rows) for name, rows in summaries.items()}
    replaced = ReplaceAll() if keys is None else ReplacePartitions(keys)
    frame = job.transform(inputs, keys, options)
    return writing.write_frame(lake, job.output, frame, replaced), replaced


def _commit(lake: Lake, plan: _Plan, written: Written, replaced: Replacement) -> int:
    """Make the files part of the table, with the run's number and the versions it consumed."""
    job = plan.job
    began = None if plan.run == 0 else plan.run - 1
    note = {"job": job.name, "run": plan.run, "consumed": plan.consumed}
    said = {"userMetadata": json.dumps(note, sort_keys=True)}
    number = Position(job.name, began, plan.run)
    computed_at = None if plan.output is None else plan.output.version
    change = Change((number,), said, replaced, computed_at)
    try:
        return lake.put(job.output, written.files, change)
    except PositionConflict as error:
        raise Overtaken(
            f"{job.name}: another driver committed run {plan.run} first. "
            "Nothing of this run was written; run again."
        ) from error


def _map_files(
    job: Map,
    session: SparkSession,
    lake: Lake,
    plan: _Plan,
    options: Options,
    rebuild: Window | None,
) -> tuple[Written, Replacement]:
    from pipelines import mapping

    added = plan.news.get(job.input.name)
    again = plan.rebuild or rebuild is not None
    files = {} if added is None else added.standing if again else added.files
    span = None if plan.rebuild or rebuild is None else _span(job.output, rebuild)
    unread = frozenset(added.files) if added is not None else frozenset()
    rows = 0 if added is None else added.standing_rows if again else added.rows
    work = mapping.Work(files, rows, span, unread)
    written = mapping.run_tasks(session, lake, job, work, options)
    if not again:
        return written, NOTHING_REPLACED
    return written, ReplaceAll() if span is None else ReplaceRange(span.first, span.last)


def _span(table: Table, window: Window) -> Span | None:
    """What lies in *window*, where the partitions are hours or days; else all."""
    from pipelines.mapping import Span

    if not table.partition or table.partition[0] not in ("hour", "day"):
        return None
    spell = day_of if table.partition[0] == "day" else hour_of
    last = window.end - timedelta(microseconds=1)
    return Span(table.partition[0], spell(window.start), spell(last))


def _to_recompute(
    job: Fold, lake: Lake, plan: _Plan, options: Options, rebuild: Window | None
) -> tuple[frozenset[str] | None, Mapping[str, ds.Expression], Mapping[str, pa.Table]]:
    """The partitions to recompute (None: all), what of the inputs that needs, and summaries."""
    if plan.rebuild or rebuild is not None or not job.output.partition:
        return None, {}, {}
    from acktrail.lake.rows import Rows

    news = {table: added for table, added in plan.news.items() if added.files or added.partitions}
    rows = {
        t.name: Rows(t, lake.at(t), plan.seen[t.name])
        for t in (*job.inputs, job.output)
        if t.name in plan.seen
    }
    evidence = Evidence(
        new={name: replace(rows[name], files=added.files) for name, added in news.items()},
        changed={name: _texts(added) for name, added in news.items()},
        inputs={t.name: rows[t.name] for t in job.inputs if t.name in rows},
        output=rows[job.output.name] if plan.output is not None and plan.output.files else None,
        options=options,
    )
    keys = job.touched(evidence)
    if not keys:
        return keys, {}, {}
    return keys, job.needed(evidence, keys), job.summaries(evidence, keys)


def _diff_rows(
    job: Diff, session: SparkSession, lake: Lake, plan: _Plan, as_of: datetime
) -> DataFrame:
    """What changed between the version that the last run consumed and the one of *plan*.

    Not the newest one: what another driver has committed since is in the next run's difference.
    """
    from pipelines.input_frames import frame_of_files
    from pipelines.spark_schema import no_rows

    since, now = plan.since.get(job.input.name), plan.seen[job.input.name]
    new = now.files
    before = no_rows(session, job.input)
    if since is not None:
        then = lake.look_at(job.input, since)
        gone = {path: values for path, values in then.files.items() if path not in now.files}
        new = {path: values for path, values in now.files.items() if path not in then.files}
        before = frame_of_files(session, lake, job.input, then, gone)
    after = frame_of_files(session, lake, job.input, now, new)
    return job.transform(before, after, as_of)


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
