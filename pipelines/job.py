"""The shapes of a job. A job writes one table, and holds no session, path or clock.

*Map*: each new row of one input becomes one row of the output or a counted drop, batch by batch, in
Python; so rows in = rows out + dropped.

*Fold*: looks across rows. `touched` says which partitions of the output the new evidence
concerns; those are recomputed from the inputs by `transform` and replaced whole.

*Diff*: appends what changed in one input since the last run; the only shape with a memory of its
own past, and so the only one that a rebuild does not reproduce.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime
from typing import TYPE_CHECKING, Any, Literal

from acktrail.contracts import Table

if TYPE_CHECKING:
    import pyarrow as pa
    import pyarrow.dataset as ds
    from pyspark.sql import DataFrame

    from acktrail.lake.rows import Rows


@dataclass(frozen=True)
class Options:
    """What a user's settings change in a job; the same for every run."""

    aliases: tuple[Mapping[str, Any], ...] = ()
    inventory: Mapping[str, Mapping[str, str]] = field(default_factory=dict)
    """Client id to settings, for clients that print none."""


@dataclass(frozen=True)
class Evidence:
    """What a fold may look at to say which partitions are touched; read by Arrow, without Spark.

    *new* has, for each input with news, the rows of files added since the last run. *changed* has,
    for each input with news, the partition texts in which rows came or went: for inputs that are
    themselves folds, a row that vanished shows only here. *inputs* are whole tables (those that
    were written), and *output* the table as it stands (None before the first run): read few
    columns of them, and only what may matter.
    """

    new: Mapping[str, Rows]
    changed: Mapping[str, frozenset[str]]
    inputs: Mapping[str, Rows]
    output: Rows | None
    options: Options = Options()


def all_needed(_evidence: Evidence, _keys: frozenset[str]) -> dict[str, ds.Expression]:
    """For folds that read all of every input."""
    return {}


def no_summaries(_evidence: Evidence, _keys: frozenset[str]) -> dict[str, pa.Table]:
    """For folds that sum up nothing beforehand."""
    return {}


@dataclass(frozen=True)
class Fold:
    """A job that recomputes and replaces the partitions its new evidence touches.

    `touched(evidence)` returns the texts of the output's (only) partition column, or None for
    "all of it". `transform(inputs, keys, options)` returns rows of those partitions; *keys* None
    means all. Inputs that do not exist yet are empty frames.

    `needed(evidence, keys)` says which rows of an input can matter to the partitions *keys*, by
    its name: files in which there are none, by their partition or the bounds in the log, are not
    given to the transform. It may let more through than matters, never less.

    `summaries(evidence, keys)` are small tables that the driver makes of rows of all time, and the
    transform takes among its inputs, by their names, in place of those rows.
    """

    inputs: tuple[Table, ...]
    output: Table
    touched: Callable[[Evidence], frozenset[str] | None]
    transform: Callable[[Mapping[str, DataFrame], frozenset[str] | None, Options], DataFrame]
    needed: Callable[[Evidence, frozenset[str]], Mapping[str, ds.Expression]] = all_needed
    summaries: Callable[[Evidence, frozenset[str]], Mapping[str, pa.Table]] = no_summaries
    shape: Literal["fold"] = "fold"

    @property
    def name(self) -> str:
        """A job is called as the table it writes."""
        return self.output.name


@dataclass(frozen=True)
class Read:
    """What the rows of one batch became: rows of the output, and drops by their reason."""

    rows: Sequence[pa.RecordBatch]
    dropped: Mapping[str, int]


ReadBatch = Callable[["pa.RecordBatch"], Read]


@dataclass(frozen=True)
class Map:
    """A job that turns each new row of one input into a row, or into a counted drop.

    `reader(options)` is called once in every task, and what it returns for each batch of the
    input's *columns*.
    """

    input: Table
    columns: tuple[str, ...]
    output: Table
    reader: Callable[[Options], ReadBatch]
    reasons: tuple[str, ...] = ()
    """Every reason a row may be dropped for."""
    shape: Literal["map"] = "map"

    @property
    def name(self) -> str:
        """A job is called as the table it writes."""
        return self.output.name

    @property
    def inputs(self) -> tuple[Table, ...]:
        """The one input, as a tuple like any job's."""
        return (self.input,)


@dataclass(frozen=True)
class Diff:
    """A job that appends what changed in its input: `transform(before, after, as_of)`.

    *before* and *after* are without the files that both states have: their rows did not change.
    """

    input: Table
    output: Table
    transform: Callable[[DataFrame, DataFrame, datetime], DataFrame]
    shape: Literal["diff"] = "diff"

    @property
    def name(self) -> str:
        """A job is called as the table it writes."""
        return self.output.name

    @property
    def inputs(self) -> tuple[Table, ...]:
        """The one input, as a tuple like any job's."""
        return (self.input,)


Job = Map | Fold | Diff


def everything(_evidence: Evidence) -> None:
    """For small tables without partitions: any news touches all of it."""
