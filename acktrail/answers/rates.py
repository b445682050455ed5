"""Rates of producers and brokers over time: at most so many points a series, gaps kept as gaps.

A rate is known for the time in which its total grew. Where a sample was much later than usual, the
time before it is a gap: the growth is known, but not when in it.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from itertools import pairwise
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from acktrail.answers.inquiry import Inquiry, both
from acktrail.answers.many import Measure, numbers
from acktrail.contracts import Table
from acktrail.contracts.silver import BROKER_METRICS, CLIENT_METRICS
from acktrail.lake import Lake

BUCKETS = 600
_LATE = 3
"""A sample that comes after so many usual intervals leaves a gap."""


@dataclass(frozen=True)
class Point:
    """A span of time, in epoch seconds, with the lowest and the highest rate in it."""

    begins: float
    ends: float
    low: float
    high: float


@dataclass(frozen=True)
class RateSeries:
    """One rate of one client or broker."""

    cluster: str
    name: str
    points: tuple[Point, ...]
    gaps: tuple[tuple[float, float], ...]
    """Times between its samples of which nothing is known."""

    @property
    def peak(self) -> float:
        """The highest rate."""
        return max((p.high for p in self.points), default=0.0)


@dataclass(frozen=True)
class RateChart:
    """One metric: the series that were ever above 0, highest first."""

    metric: str
    series: list[RateSeries] = field(default_factory=list)
    left_out: int = 0
    flat: int = 0
    """RateSeries that were measured and stayed at 0."""


METRICS = (
    (CLIENT_METRICS, "record-error-total", "client_id"),
    (CLIENT_METRICS, "record-retry-total", "client_id"),
    (BROKER_METRICS, "failed-produce-requests-total", "broker"),
)


def rates(lake: Lake, asked: Inquiry, most: int) -> list[RateChart]:
    """The rates of failed and retried records, and of failed produce requests."""
    return [_rate(lake, asked, table, metric, who, most) for table, metric, who in METRICS]


def _rate(lake: Lake, asked: Inquiry, table: Table, metric: str, who: str, most: int) -> RateChart:
    named = both(asked.at(table, "at", "topic"), pc.field("metric") == metric)
    whole = both(named, pc.field("topic").is_null() & pc.field("rate_per_s").is_valid())
    if table is CLIENT_METRICS:
        whole = both(whole, pc.field("node").is_null())
    columns = ["cluster", who, "instance", "at", "elapsed_ms", "rate_per_s"]
    first = asked.since.timestamp()
    width = max((asked.until.timestamp() - first) / BUCKETS, 0.001)
    parts = [_bucketed(batch, first, width, who) for batch in lake.batches(table, whole, columns)]
    if not parts:
        return RateChart(metric)
    found = list(_series(_folded(pa.concat_tables(parts))))
    ordered = sorted(found, key=lambda s: (-s.peak, s.cluster, s.name))
    moving = [s for s in ordered if s.peak > 0]
    return RateChart(metric, moving[:most], max(0, len(moving) - most), len(ordered) - len(moving))


def _bucketed(batch: pa.Table, first: float, width: float, who: str) -> pa.Table:
    """The samples of a batch, put together by series and bucket."""
    at = batch["at"].cast(pa.int64()).to_numpy() / 1e6
    elapsed = numbers(batch["elapsed_ms"]) / 1000
    named: Any = batch[who].cast(pa.string())
    instance: Any = pc.coalesce(batch["instance"], pa.scalar(""))
    shown: Any = pc.coalesce(named, instance)
    made: dict[str, Any] = {
        "cluster": batch["cluster"],
        "name": shown,
        "instance": instance,
        "bucket": pa.array(((at - first) / width).astype("int64")),
        "first": pa.array(at),
        "last": pa.array(at),
        "elapsed": pa.array(elapsed),
        "low": batch["rate_per_s"],
        "high": batch["rate_per_s"],
    }
    return _folded(pa.table(made))


_KEYS = ("cluster", "name", "instance", "bucket")
_HOW: tuple[Measure, ...] = (
    ("first", "min"),
    ("last", "max"),
    ("elapsed", "max"),
    ("low", "min"),
    ("high", "max"),
)


def _folded(rows: pa.Table) -> pa.Table:
    how: list[Any] = list(_HOW)
    found = rows.group_by(list(_KEYS), use_threads=False).aggregate(how)
    names = {f"{name}_{how}": name for name, how in _HOW}
    return found.rename_columns([names.get(name, name) for name in found.column_names])


def _series(rows: pa.Table) -> Iterator[RateSeries]:
    ordered = rows.sort_by([(name, "ascending") for name in _KEYS])
    kept: list[dict[str, Any]] = []
    for row in ordered.to_pylist():
        if kept and _who(row) != _who(kept[0]):
            yield _one(kept)
            kept = []
        kept.append(row)
    if kept:
        yield _one(kept)


def _who(row: dict[str, Any]) -> tuple[str, str, str]:
    return row["cluster"], row["name"], row["instance"]


def _one(rows: Sequence[dict[str, Any]]) -> RateSeries:
    usual = float(np.median([row["elapsed"] for row in rows]))
    late = usual * _LATE
    points = []
    for row in rows:
        known = row["elapsed"] if row["elapsed"] <= late else usual
        points.append(Point(row["first"] - known, row["last"], row["low"], row["high"]))
    gaps = tuple(
        (before.ends, after.begins)
        for before, after in pairwise(points)
        if after.begins - before.ends > max(usual, 0.001) / 2
    )
    return RateSeries(rows[0]["cluster"], rows[0]["name"], tuple(points), gaps)
