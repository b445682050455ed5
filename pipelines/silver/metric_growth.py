"""`client_metrics` and `broker_metrics`: one name each whatever the exporter spelt, and growth.

An hour is made from its own samples and those of the hour before: growth needs the sample before
the first. So a new sample touches its own hour and the next.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from datetime import UTC, datetime, timedelta
from functools import partial
from typing import Any

import pyarrow as pa
import pyarrow.dataset as ds
from pyspark.sql import DataFrame, Window
from pyspark.sql import functions as F

from acktrail.aliases import Aliases, Named, broker_in_name, host_of
from acktrail.contracts import Table
from acktrail.contracts.arrow import schema
from acktrail.contracts.bronze import METRIC_SAMPLES
from acktrail.contracts.silver import BROKER_METRICS, CLIENT_METRICS
from acktrail.metrics.series import LOOK_BACK_S, Meaning, number, read_series
from acktrail.window import day_of, hour_of
from pipelines.arrow_rows import hours_in, within_hours
from pipelines.job import Evidence, Fold, Options
from pipelines.spark_schema import loose

_HOUR = timedelta(hours=1)
_MARKS = ("_total", "_rate", "_begins")


def hours_with_new_samples(evidence: Evidence) -> frozenset[str]:
    """The hours of new samples, and the hours after them."""
    new = evidence.new.get(METRIC_SAMPLES.name)
    if new is None:
        return frozenset()
    starts = hours_in(new.read("at").column("at"))
    return frozenset(hour_of(s) for start in starts for s in (start, start + _HOUR))


def samples_around(_evidence: Evidence, keys: frozenset[str]) -> dict[str, ds.Expression]:
    """The samples of the hours *keys*, and of the hours before them."""
    return {METRIC_SAMPLES.name: within_hours("at", keys, before=1)}


def _read_metrics(
    table: Table,
    side: str,
    inputs: Mapping[str, DataFrame],
    keys: frozenset[str] | None,
    options: Options,
) -> DataFrame:
    """The samples of one *side* as rows of *table*, with the growth of totals."""
    meant = _mean(_around(inputs[METRIC_SAMPLES.name], keys), table, side, options)
    micros = F.unix_micros("at")
    series = Window.partitionBy("cluster", "source", "series").orderBy("at")
    earlier = series.rowsBetween(Window.unboundedPreceding, -1)
    oldest = micros - LOOK_BACK_S * 1_000_000
    # NaN says nothing of a total: growth is counted from the last number before it.
    value = F.col("value")
    before = F.last(value, ignorenulls=True).over(earlier)
    before_at = F.last(F.when(value.isNotNull(), micros), ignorenulls=True).over(earlier)
    near = F.coalesce(before_at >= oldest, F.lit(False))
    # The series of an error begins with its first one: others of the target were there before it.
    seen = F.coalesce(F.lag(micros).over(series) >= oldest, F.lit(False))
    target = Window.partitionBy("cluster", "source", "instance").orderBy(micros)
    others_at = F.max(micros).over(target.rangeBetween(-LOOK_BACK_S * 1_000_000, -1))
    begun = F.col("_begins") & ~seen & others_at.isNotNull()
    grown = F.when(begun, value).when(
        near, F.when(value >= before, value - before).otherwise(value)
    )
    since = F.when(begun, others_at).otherwise(before_at)
    counted = meant.withColumn("increase", F.when(F.col("_total"), grown)).withColumn(
        "elapsed_ms",
        F.when(F.col("increase").isNotNull(), F.round((micros - since) / 1000).cast("long")),
    )
    rate = F.when(F.col("_rate"), F.col("value")).when(
        F.col("elapsed_ms") > 0, F.col("increase") * 1000 / F.col("elapsed_ms")
    )
    rows = counted.withColumn("rate_per_s", rate).drop(*_MARKS)
    return rows if keys is None else rows.where(F.col("hour").isin(sorted(keys)))


def _around(samples: DataFrame, keys: frozenset[str] | None) -> DataFrame:
    good = samples.where(F.col("scrape_error").isNull())
    if keys is None:
        return good
    hours = sorted(datetime.strptime(k, "%Y-%m-%dT%H").replace(tzinfo=UTC) for k in keys)
    if not hours:
        return good.where(F.lit(False))
    needed = sorted({h for hour in hours for h in (hour - _HOUR, hour)})
    first_day = day_of(hours[0] - timedelta(days=1))
    spans = F.lit(False)
    for hour in needed:
        spans = spans | ((F.col("at") >= F.lit(hour)) & (F.col("at") < F.lit(hour + _HOUR)))
    return good.where((F.col("day") >= first_day) & spans)


def _mean(samples: DataFrame, table: Table, side: str, options: Options) -> DataFrame:
    rules = tuple(options.aliases)
    fields = [pa.field(f.name, f.type) for f in schema(table)]
    out = pa.schema([*fields, *(pa.field(mark, pa.bool_()) for mark in _MARKS)])

    def read(batches: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        known: dict[tuple[str, str], tuple[Meaning, dict[str, Any]] | None] = {}
        aliases = Aliases(rules)
        for batch in batches:
            rows = []
            for sample in batch.to_pylist():
                key = (sample["source"], sample["series"])
                if key not in known:
                    known[key] = _series(sample, side, aliases, table)
                meaning = known[key]
                if meaning is not None:
                    rows.append(_row(sample, *meaning))
            yield pa.RecordBatch.from_pylist(rows, schema=out)

    columns = ("cluster", "source", "instance", "metric", "labels", "series", "at", "value")
    marked = loose(table)
    for mark in _MARKS:
        marked = marked.add(mark, "boolean")
    return samples.select(*columns).mapInArrow(read, marked)


def _series(
    sample: Mapping[str, Any], side: str, aliases: Aliases, table: Table
) -> tuple[Meaning, dict[str, Any]] | None:
    labels = dict(sample["labels"] or ())
    meaning = read_series(sample["metric"], labels)
    if meaning is None or meaning.side != side:
        return None
    named = aliases.name(_facts(sample, labels, meaning))
    said: dict[str, Any] = {
        "topic": meaning.topic,
        "metric": meaning.metric,
        "host": named.host or host_of(sample["instance"]),
        "client_id": named.client_id or meaning.client_id,
        "node": meaning.node,
        "broker": _broker(sample["instance"], meaning, named),
        "request": meaning.request,
        "error": meaning.error,
    }
    return meaning, {name: value for name, value in said.items() if name in table.names}


def _facts(
    sample: Mapping[str, Any], labels: Mapping[str, str], meaning: Meaning
) -> dict[str, str | None]:
    """What alias rules see: every label, and what is called otherwise under its one name."""
    return (
        {"host": host_of(sample["instance"])}
        | dict(labels)
        | {
            "client_id": meaning.client_id or labels.get("client_id"),
            "instance": sample["instance"],
            "source": sample["source"],
        }
    )


def _broker(instance: str | None, meaning: Meaning, named: Named) -> int | None:
    """The broker id: a rule's, else a label's, else the one in the target's name."""
    if meaning.side != "broker" or named.broker is not None:
        return named.broker
    if meaning.broker is not None or named.broker_decided:
        return meaning.broker
    return broker_in_name(named.host or instance)


def _row(sample: Mapping[str, Any], meaning: Meaning, said: dict[str, Any]) -> dict[str, Any]:
    return said | {
        "cluster": sample["cluster"],
        "source": sample["source"],
        "series": sample["series"],
        "instance": sample["instance"],
        "at": sample["at"],
        "value": number(sample["value"]),
        "hour": hour_of(sample["at"]),
        "_total": meaning.is_total,
        "_rate": meaning.is_rate,
        "_begins": meaning.begins_with_an_event,
    }


def _metrics_job(table: Table, side: str) -> Fold:
    read = partial(_read_metrics, table, side)
    return Fold((METRIC_SAMPLES,), table, hours_with_new_samples, read, samples_around)


CLIENT_JOB = _metrics_job(CLIENT_METRICS, "producer")
BROKER_JOB = _metrics_job(BROKER_METRICS, "broker")
