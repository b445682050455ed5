"""What heartbeats say of their client in numbers, as samples: rates without a JMX exporter."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from datetime import datetime

import pyarrow as pa

from acktrail.audit.wire import Report
from acktrail.contracts.arrow import no_rows
from acktrail.contracts.bronze import METRIC_SAMPLES
from acktrail.contracts.vocabulary import Tier
from acktrail.metrics.names import PRODUCER_METRICS, jmx_name
from ingest.sources.samples import SeriesSamples, sample_rows

INSTANCE = "audit"
"""In the place of a target's port, so that the host is read as from any target."""


def samples_of(reports: Iterable[tuple[str, Report]], source: str, read_at: datetime) -> pa.Table:
    """The metrics in heartbeats, each with its cluster, as rows of `metric_samples`.

    A session's heartbeats for several topics repeat the client's numbers: each moment counts once.
    """
    by_cluster: dict[str, dict[tuple[str, str, int], SeriesSamples]] = {}
    for cluster, report in reports:
        if report.tier is not Tier.HEARTBEAT or not report.metrics or not report.session:
            continue
        series = by_cluster.setdefault(cluster, {})
        for name, value in report.metrics.items():
            key = (report.session, name, report.reported_ms)
            if name in PRODUCER_METRICS and key not in series:
                series[key] = _sample(report, name, value)
    if not by_cluster:
        return no_rows(METRIC_SAMPLES)
    return pa.concat_tables(
        sample_rows(cluster, source, list(series.values()), read_at)
        for cluster, series in by_cluster.items()
    )


def _sample(report: Report, name: str, value: float) -> SeriesSamples:
    settings: Mapping[str, str] = report.settings
    host = settings.get("host")
    labels = {"client_id": settings.get("client_id", ""), "session": report.session}
    return SeriesSamples(
        jmx_name("kafka.producer", "producer-metrics", name),
        labels,
        f"{host}:{INSTANCE}" if host else None,
        ((report.reported_ms, value),),
    )
