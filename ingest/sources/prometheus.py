"""Samples from a Prometheus server: every one of them once.

The position is the end of the last range in epoch milliseconds. A range is asked for only when it
ended `late_s` ago, so that samples under way are not missed; the next begins where it ended.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterable, Iterator
from datetime import UTC, datetime

from acktrail.contracts.bronze import METRIC_SAMPLES
from acktrail.errors import ConfigError, RangeTooLarge
from acktrail.lake import Lake, Position
from acktrail.metrics.names import name_pattern, read_name
from acktrail.settings.sources import PrometheusSource, SourceSettings
from ingest.http_access import HttpAccess
from ingest.registry import SourceContext
from ingest.source import Batch, Health
from ingest.sources.absent_metrics import absent_sides, named_but_absent
from ingest.sources.prometheus_api import Prometheus, Series, selector
from ingest.sources.samples import SeriesSamples, sample_rows

MANY_SAMPLES = 200_000
"""A window that gave more is followed by a shorter one: batches stay bounded."""
SHORTEST_MS = 1_000
ABSENT_MS = 300_000
"""A metric without a sample for so long has no series: a server's own look-back."""


def build(settings: SourceSettings, context: SourceContext) -> PrometheusSamples:
    """The source that *settings* describe."""
    if not isinstance(settings, PrometheusSource):
        raise ConfigError(f"{settings.name} is not a prometheus source.")
    return PrometheusSamples(settings, context)


class PrometheusSamples:
    """The source of kind `prometheus`."""

    def __init__(
        self,
        settings: PrometheusSource,
        context: SourceContext,
        now: Callable[[], float] = time.time,
    ) -> None:
        self.name = settings.name
        self.app_id = f"prometheus/{context.cluster}/{settings.name}"
        self._settings = settings
        self._cluster = context.cluster
        self._now = now
        self._selector = selector(name_pattern(settings.metrics), settings.match)
        self._server = Prometheus(settings.url, HttpAccess.of(settings))
        self._window_ms = int(settings.window_s * 1000)
        self._position: int | None = None
        self._next_poll = 0.0
        self._last_seen: dict[str, int] = {}
        self._read_from: int | None = None
        """Where the first range began that was read since the start."""

    def open(self, lake: Lake) -> None:
        """Go on where the lake says the last range ended."""
        self._position = lake.position(METRIC_SAMPLES, self.app_id)
        self._next_poll = 0.0

    def poll(self, timeout_s: float) -> Iterable[Batch]:
        """One batch per window until *timeout_s* has passed or all is read."""
        if self._now() < self._next_poll:
            return
        until = time.monotonic() + timeout_s
        for batch in self._windows():
            yield batch
            if time.monotonic() >= until:
                return
        self._next_poll = self._now() + self._settings.interval_s

    def _windows(self) -> Iterator[Batch]:
        end = self._whole_ms(self._now() - self._settings.late_s)
        while True:
            began = self._position
            start = end - int(self._settings.history_s * 1000) if began is None else began
            if start >= end:
                return
            reached = min(end, start + self._window_ms)
            try:
                series = self._read(start, reached)
            except RangeTooLarge:
                if self._window_ms <= SHORTEST_MS:
                    raise
                self._window_ms = max(SHORTEST_MS, self._window_ms // 2)
                continue
            self._read_from = start if self._read_from is None else self._read_from
            batch = self._batch(series, Position(self.app_id, began, reached))
            self._position = reached
            yield batch

    def _whole_ms(self, seconds: float) -> int:
        """The end of the range; on a grid, a point of it."""
        step = (self._settings.step_s or 0) * 1000
        ms = int(seconds * 1000)
        return ms // step * step if step else ms

    def _read(self, start_ms: int, end_ms: int) -> list[Series]:
        step = self._settings.step_s
        if step is None:
            return self._server.raw(self._selector, start_ms, end_ms)
        return self._server.on_grid(self._selector, start_ms, end_ms, step)

    def _batch(self, series: list[Series], position: Position) -> Batch:
        kept, received, dropped = [], 0, 0
        for one in series:
            received += len(one.samples)
            labels = dict(one.labels)
            metric = labels.pop("__name__", "")
            meaning = read_name(metric, labels)
            if meaning is None or meaning.name not in self._settings.metrics:
                dropped += len(one.samples)
                continue
            if one.samples:
                newest = max(one.samples[-1][0], self._last_seen.get(meaning.name, 0))
                self._last_seen[meaning.name] = newest
                kept.append(SeriesSamples(metric, labels, labels.get("instance"), one.samples))
        if received > MANY_SAMPLES:
            self._window_ms = max(SHORTEST_MS, self._window_ms // 2)
        read_at = datetime.fromtimestamp(self._now(), UTC)
        return Batch(
            table=METRIC_SAMPLES,
            rows=sample_rows(self._cluster, self.name, kept, read_at),
            positions=(position,),
            received=received,
            dropped={"not_configured": dropped} if dropped else {},
        )

    def _absent(self) -> tuple[str, ...]:
        """Notes on metrics without a series; none before enough was read to know."""
        if self._position is None or self._read_from is None or not self._next_poll:
            return ()  # nothing was read yet, or the history is still being read
        since = self._position - ABSENT_MS
        if self._read_from > since:
            return ()
        seen = {name for name, at in self._last_seen.items() if at > since}
        wanted = self._settings.metrics
        notes = absent_sides(wanted, seen)
        if "metrics" in self._settings.model_fields_set and not notes:
            notes = named_but_absent(wanted, seen)
        return notes

    def committed(self, batch: Batch) -> None:
        """Nothing is kept for a batch."""

    def health(self) -> Health:
        """Seconds between now and the end of what was read; metrics that are missing."""
        lag = None if self._position is None else self._now() - self._position / 1000
        return Health(lag=lag, lag_unit="s", notes=self._absent())

    def close(self) -> None:
        """Let go of the connections."""
        self._server.close()
