"""Samples as rows of `metric_samples`, built by column."""

from __future__ import annotations

import hashlib
import json
import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Any

import numpy as np
import pyarrow as pa

from acktrail.contracts.arrow import conform
from acktrail.contracts.bronze import METRIC_SAMPLES

_LABELS = pa.map_(pa.string(), pa.string())
_AT = pa.timestamp("us", tz="UTC")


@dataclass(frozen=True)
class SeriesSamples:
    """Samples of one series, as its exporter spelt it."""

    metric: str
    labels: Mapping[str, str]
    """Without the metric name."""
    instance: str | None
    samples: Sequence[tuple[int, float]]
    """(epoch milliseconds, value)."""
    error: str | None = None
    """Set where the target could not be read; the value is then not a number."""


def series_id(instance: str | None, metric: str, labels: Mapping[str, str]) -> str:
    """A hash of instance, name and labels: the same series has the same id for ever."""
    text = json.dumps([instance, metric, sorted(labels.items())], ensure_ascii=False)
    return hashlib.sha256(text.encode()).hexdigest()[:32]


def failed_target(instance: str, at_ms: int, why: str) -> SeriesSamples:
    """The row of a target that could not be read: a gap, never a zero."""
    return SeriesSamples("up", {}, instance, ((at_ms, math.nan),), why)


def sample_rows(
    cluster: str, source: str, series: Sequence[SeriesSamples], read_at: datetime
) -> pa.Table:
    """All samples of *series* as rows of `metric_samples`."""
    lengths = [len(one.samples) for one in series]
    which: Any = np.repeat(np.arange(len(series)), lengths)
    times = [at * 1000 for one in series for at, _ in one.samples]
    values = [value for one in series for _, value in one.samples]
    count = len(times)

    def per_series(texts: list[str | None]) -> Any:
        return pa.array(texts, pa.string()).take(which)

    labels = pa.array([list(one.labels.items()) for one in series], _LABELS).take(which)
    ids = [series_id(one.instance, one.metric, one.labels) for one in series]
    built = pa.table(
        {
            "cluster": _constant(cluster, count),
            "source": _constant(source, count),
            "instance": per_series([one.instance for one in series]),
            "metric": per_series([one.metric for one in series]),
            "labels": labels,
            "series": per_series(list(ids)),
            "at": pa.array(times, pa.int64()).cast(_AT),
            "value": pa.array(values, pa.float64()),
            "scrape_error": per_series([one.error for one in series]),
            "read_at": _constant(read_at, count, _AT),
            "day": _constant(f"{read_at:%Y-%m-%d}", count),
        }
    )
    return conform(METRIC_SAMPLES, built)


def _constant(value: str | datetime, count: int, kind: pa.DataType | None = None) -> Any:
    scalar: Any = pa.scalar(value, kind or pa.string())
    return pa.repeat(scalar, count)
