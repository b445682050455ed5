"""`broker_metrics`: brokers' metrics; all topics together and single topics stay apart."""

from __future__ import annotations

from collections.abc import Mapping

from pyspark.sql import DataFrame

from acktrail.contracts.bronze import METRIC_SAMPLES
from acktrail.contracts.silver import BROKER_METRICS
from pipelines.job import Fold, Options
from pipelines.silver.metric_growth import hours_with_new_samples, read_metrics


def read_broker_metrics(
    inputs: Mapping[str, DataFrame], keys: frozenset[str] | None, options: Options
) -> DataFrame:
    """Read the samples of brokers, with the growth of their totals."""
    return read_metrics(inputs[METRIC_SAMPLES.name], keys, BROKER_METRICS, "broker", options)


JOB = Fold((METRIC_SAMPLES,), BROKER_METRICS, hours_with_new_samples, read_broker_metrics)
