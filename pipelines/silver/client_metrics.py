"""`client_metrics`: producers' metrics, one name each whatever the exporter spelt."""

from __future__ import annotations

from collections.abc import Mapping

from pyspark.sql import DataFrame

from acktrail.contracts.bronze import METRIC_SAMPLES
from acktrail.contracts.silver import CLIENT_METRICS
from pipelines.job import Fold, Options
from pipelines.silver.metric_growth import hours_with_new_samples, read_metrics


def read_client_metrics(
    inputs: Mapping[str, DataFrame], keys: frozenset[str] | None, options: Options
) -> DataFrame:
    """Read the samples of producers, with the growth of their totals."""
    return read_metrics(inputs[METRIC_SAMPLES.name], keys, CLIENT_METRICS, "producer", options)


JOB = Fold((METRIC_SAMPLES,), CLIENT_METRICS, hours_with_new_samples, read_client_metrics)
