"""An agent's own health as Prometheus metrics; loaded only where they are served."""

from __future__ import annotations

import threading
from collections.abc import Iterable, Iterator

from prometheus_client.core import CounterMetricFamily, GaugeMetricFamily
from prometheus_client.registry import Collector

from ingest.agent.counters import SourceCounts


class AgentMetrics(Collector):
    """The counts of all sources as Prometheus metrics."""

    def __init__(self, counts: Iterable[SourceCounts]) -> None:
        self._counts = list(counts)
        self._lock = threading.Lock()

    def collect(self) -> Iterator[CounterMetricFamily | GaugeMetricFamily]:
        """The metrics as they are now."""
        with self._lock:
            yield from self._totals()
            yield from self._gauges()

    def _totals(self) -> Iterator[CounterMetricFamily]:
        received = _counter("received", "Records received, each once written or dropped.")
        written = _counter("written", "Rows committed to the lake.")
        commits = _counter("commits", "Commits to the lake.")
        dropped = _counter("dropped", "Records not kept, by reason.", "reason")
        failures = _counter("failures", "Errors, by kind; each led to another try.", "error")
        for c in self._counts:
            received.add_metric([c.source], c.received)
            written.add_metric([c.source], c.written)
            commits.add_metric([c.source], c.commits)
            for reason, count in sorted(c.dropped.items()):
                dropped.add_metric([c.source, reason], count)
            for error, count in sorted(c.failures.items()):
                failures.add_metric([c.source, error], count)
        yield from (received, written, commits, dropped, failures)

    def _gauges(self) -> Iterator[GaugeMetricFamily]:
        up = _gauge("source_up", "1 while the source is read, 0 while it waits or has stopped.")
        last = _gauge("last_commit_timestamp_seconds", "When the last commit was made.")
        lag = _gauge("lag", "What is there and not yet read, in the source's unit.", "unit")
        notes = _gauge("notes", "Things a person should know; `acktrail agent status` says which.")
        for c in self._counts:
            up.add_metric([c.source], float(c.running))
            notes.add_metric([c.source], len(c.health.notes))
            if c.last_commit_at is not None:
                last.add_metric([c.source], c.last_commit_at)
            if c.health.lag is not None:
                lag.add_metric([c.source, c.health.lag_unit], c.health.lag)
        yield from (up, last, lag, notes)


def _counter(name: str, doc: str, *labels: str) -> CounterMetricFamily:
    return CounterMetricFamily(f"acktrail_agent_{name}", doc, labels=["source", *labels])


def _gauge(name: str, doc: str, *labels: str) -> GaugeMetricFamily:
    return GaugeMetricFamily(f"acktrail_agent_{name}", doc, labels=["source", *labels])
