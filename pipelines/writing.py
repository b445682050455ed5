"""Files of a job's output: Spark's tasks write them by Arrow, and report their names.

A row is checked against the table's contract in the task that writes it. Until the driver commits
the names (`Lake.put`), the files are not part of the table: a task that fails, or is done twice,
leaves at worst files that no commit names.
"""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Callable, Iterable, Iterator
from dataclasses import asdict, dataclass, field
from typing import TYPE_CHECKING, Any

import pyarrow as pa
import pyarrow.compute as pc
from deltalake.transaction import AddAction

from acktrail import errors
from acktrail.contracts import Table
from acktrail.contracts.arrow import conform
from acktrail.errors import AcktrailError, SourceUnavailable
from acktrail.lake import Lake, Replacement, ReplacePartitions
from acktrail.lake.data_files import write_files
from acktrail.lake.refusal import refusal
from acktrail.lake.store import Store
from pipelines.spark_schema import refuse_misfit

if TYPE_CHECKING:
    from pyspark.sql import DataFrame

FILE_BYTES = 128 << 20
"""How much a task gathers, as Arrow, before it writes a file."""


@dataclass
class Written:
    """What the tasks of a run wrote and dropped."""

    files: list[AddAction] = field(default_factory=list)
    dropped: Counter[str] = field(default_factory=Counter)

    @property
    def rows(self) -> int:
        """Rows written."""
        return sum(json.loads(file.stats)["numRecords"] for file in self.files)


class FileWriter:
    """Used in a task: gathers rows, and writes them as files of the table."""

    def __init__(self, table: Table, place: Store) -> None:
        self._table, self._place = table, place
        self._waiting: list[pa.RecordBatch] = []
        self._files: list[AddAction] = []

    def add(self, rows: pa.RecordBatch) -> None:
        """Take *rows*; files are written as soon as there is enough for one."""
        self._waiting.append(rows)
        if sum(waiting.nbytes for waiting in self._waiting) >= FILE_BYTES:
            self._flush()

    def close(self) -> list[AddAction]:
        """Write what is left; every file that was written."""
        self._flush()
        return self._files

    def _flush(self) -> None:
        if not self._waiting:
            return
        rows = conform(self._table, pa.Table.from_batches(self._waiting))
        self._waiting = []
        try:
            self._files += write_files(self._table, rows, self._place)
        except OSError as error:
            unknown = SourceUnavailable(
                f"{self._table.name}: a file could not be written to {self._place.path}: {error}"
            )
            raise refusal(self._place.path, error) or unknown from error


def task_place(lake: Lake, table: Table) -> Store:
    """Where a task finds *table*. Its working directory may be another one.

    Tasks are pickled and may be logged: their secrets are those of the workers' environment.
    """
    return lake.at(table).absolute().without_secrets()


def write_frame(lake: Lake, table: Table, frame: DataFrame, replaced: Replacement) -> Written:
    """Write the rows of *frame*; of those in partitions that are *replaced*, where they are named.

    ContractError where the frame or a value in it does not fit the table.
    """
    refuse_misfit(table, frame)
    names = replaced.names if isinstance(replaced, ReplacePartitions) else None
    written = Written()
    for row in frame.mapInArrow(
        _worker(table, task_place(lake, table), names), "report string"
    ).collect():
        take_report(written, row["report"])
    return written


def _worker(table: Table, place: Store, names: frozenset[str] | None) -> Any:
    def write(batches: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        writer = FileWriter(table, place)

        def work() -> tuple[list[AddAction], dict[str, int]]:
            for batch in batches:
                writer.add(batch if names is None else _inside(table, names, batch))
            return writer.close(), {}

        yield as_batch(work)

    return write


def _inside(table: Table, names: frozenset[str], batch: pa.RecordBatch) -> pa.RecordBatch:
    wanted = pa.array(sorted(names), pa.string())
    return batch.filter(pc.is_in(batch.column(table.partition[0]), wanted))


def as_batch(work: Callable[[], tuple[list[AddAction], dict[str, int]]]) -> pa.RecordBatch:
    """What a task reports: the files and drops that *work* returns, or why it was refused."""
    try:
        files, dropped = work()
        report: dict[str, Any] = {"files": [asdict(file) for file in files], "dropped": dropped}
    except AcktrailError as error:
        report = {"refused": [type(error).__name__, str(error)]}
    return pa.RecordBatch.from_pydict({"report": [json.dumps(report)]})


def take_report(written: Written, report: str) -> None:
    """Add what one task reports to *written*; its error is raised here."""
    content = json.loads(report)
    if "refused" in content:
        kind, text = content["refused"]
        raise getattr(errors, kind)(text)
    written.files += [AddAction(**file) for file in content["files"]]
    written.dropped.update(content["dropped"])
