"""A map, run: Spark's tasks read files of its input and write those of its output, by Arrow.

Each task is given file names, and reports the names of what it wrote; no row passes through the
JVM. A task that fails, or is done twice, leaves at worst files that no commit names.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence, Set
from dataclasses import dataclass
from functools import partial
from typing import TYPE_CHECKING, Any
from urllib.parse import unquote

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq
from deltalake.transaction import AddAction

from acktrail.contracts import Table
from acktrail.contracts.arrow import schema
from acktrail.errors import ContractError, SourceUnavailable
from acktrail.lake import Lake, Values
from acktrail.lake.damage import explained
from acktrail.lake.refusal import refusal
from acktrail.lake.store import Store
from pipelines.job import Map, Options
from pipelines.writing import FileWriter, Written, as_batch, take_report, task_place

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

OUTSIDE = "outside_window"
"""Dropped: the row belongs to a partition that this run does not recompute."""
BATCH_ROWS = 40_000
BATCH_BYTES = 64 << 20
TASKS_PER_CORE = 4
TASK_ROWS = 25_000
"""Fewer rows than this are not worth a task, and a file, of their own."""


@dataclass(frozen=True)
class Span:
    """The partitions a run recomputes, from *first* to *last*."""

    column: str
    first: str
    last: str


@dataclass(frozen=True)
class File:
    """One file of the input: its path below the table, and its partition."""

    path: str
    values: Values
    unread: bool = True
    """No run has read it yet: all its rows are kept, in the span or not."""


@dataclass(frozen=True)
class Task:
    """All that a worker needs to know."""

    job: Map
    options: Options
    source: Store
    target: Store
    span: Span | None
    shares: Sequence[Sequence[File]]


@dataclass(frozen=True)
class Work:
    """Files of the input, the rows in them, and which of their rows are wanted.

    With a *span*, rows outside it are left out, but for those of *unread* files.
    """

    files: Mapping[str, Values]
    rows: int
    span: Span | None = None
    unread: Set[str] = frozenset()


def run_tasks(session: SparkSession, lake: Lake, job: Map, work: Work, options: Options) -> Written:
    """Read the job's input and write what it becomes; nothing is committed."""
    written = Written()
    if not work.files:
        return written
    files = [File(path, values, path in work.unread) for path, values in work.files.items()]
    shares = shared_out(files, _tasks(work.rows, session.sparkContext.defaultParallelism))
    source, target = task_place(lake, job.input), task_place(lake, job.output)
    task = Task(job, options, source, target, work.span, shares)
    numbers = session.range(0, len(shares), 1, len(shares))
    for row in numbers.mapInArrow(_worker(task), "report string").collect():
        take_report(written, row["report"])
    return written


def _tasks(rows: int, cores: int) -> int:
    """So many that all cores are busy to the end, and few files come of few rows."""
    return max(1, min(cores * TASKS_PER_CORE, rows // TASK_ROWS))


def shared_out(files: Sequence[File], most: int) -> list[list[File]]:
    """*files* in at most *most* shares, as even as can be."""
    count = min(most, len(files))
    return [list(files[number::count]) for number in range(count)]


def _worker(task: Task) -> Any:
    """What Spark calls in its Python workers: numbers of shares in, what was done out."""

    def work(numbers: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        for batch in numbers:
            for number in map(int, batch.column(0).to_numpy()):
                yield as_batch(partial(do, task, task.shares[number]))

    return work


def do(task: Task, share: Sequence[File]) -> tuple[list[AddAction], dict[str, int]]:
    """Read and write one share: the files it became, and what was dropped."""
    read = task.job.reader(task.options)
    dropped: Counter[str] = Counter()
    writer = FileWriter(task.job.output, task.target)
    for file in share:
        for batch in _batches(task, file):
            done = read(batch)
            dropped.update(done.dropped)
            for rows in done.rows:
                kept = rows if file.unread or task.span is None else _inside(task.span, rows)
                dropped[OUTSIDE] += rows.num_rows - kept.num_rows
                writer.add(kept)
    written = writer.close()
    strange = sorted(set(dropped) - {*task.job.reasons, OUTSIDE})
    if strange:
        raise ContractError(
            f"{task.job.name}: rows were dropped for a reason it does not name: {strange[0]}"
        )
    return written, +dropped


def _inside(span: Span, rows: pa.RecordBatch) -> pa.RecordBatch:
    partition = rows.column(span.column)
    before = pc.less(partition, pa.scalar(span.first))
    after = pc.greater(partition, pa.scalar(span.last))
    return rows.filter(pc.invert(pc.or_(before, after)))


def _batches(task: Task, file: File) -> Iterator[pa.RecordBatch]:
    """The rows of *file* with the columns the job reads, as the contract types them."""
    place = task.source.files()
    try:
        with place.open_input_file(unquote(file.path)) as opened:
            parquet = pq.ParquetFile(opened)
            present = [n for n in task.job.columns if n in parquet.schema_arrow.names]
            size = batch_rows(parquet.metadata)
            for batch in parquet.iter_batches(size, columns=present, use_threads=False):
                yield _shaped(task.job.input, task.job.columns, batch, file.values)
    except (FileNotFoundError, pa.ArrowInvalid) as error:
        raise explained(task.job.input, f"{task.source.path}/{file.path}", error) from error
    except OSError as error:
        path = f"{task.source.path}/{file.path}"
        unknown = SourceUnavailable(f"{task.job.input.name}: {path} could not be read: {error}")
        raise refusal(path, error) or unknown from error


def batch_rows(metadata: pq.FileMetaData) -> int:
    """So many rows at a time that a batch is not too large, by the mean size of a row."""
    groups = (metadata.row_group(n) for n in range(metadata.num_row_groups))
    longest = max((g.total_byte_size / max(1, g.num_rows) for g in groups), default=1)
    return max(1, min(BATCH_ROWS, int(BATCH_BYTES / max(1, longest))))


def _shaped(
    table: Table, columns: Sequence[str], batch: pa.RecordBatch, values: Values
) -> pa.RecordBatch:
    wanted = pa.schema([schema(table).field(n).with_nullable(True) for n in columns])
    arrays = []
    for field_ in wanted:
        if field_.name in batch.schema.names:
            array = batch.column(field_.name)
            arrays.append(array if array.type == field_.type else array.cast(field_.type))
        else:  # a partition's value, or a column that the file was written before
            value = pa.scalar(values.get(field_.name), field_.type)
            arrays.append(pa.repeat(value, batch.num_rows))
    return pa.RecordBatch.from_arrays(arrays, schema=wanted)
