"""Metrics straight from producers and brokers, for those without Prometheus.

Every target gives a round's samples, or one row that says why not: a gap, never a zero. The
position is the time of the last round in epoch milliseconds.
"""

from __future__ import annotations

import json
import time
from collections.abc import Callable, Iterable
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Any
from urllib.parse import urlsplit

from acktrail.contracts.bronze import METRIC_SAMPLES
from acktrail.errors import ConfigError
from acktrail.lake import Lake, Position
from acktrail.metrics.names import read_name
from acktrail.settings.sources import ScrapeSource, SourceSettings
from ingest.http_access import HttpAccess, why
from ingest.registry import SourceContext
from ingest.source import Batch, Health
from ingest.sources.absent_metrics import named_but_absent
from ingest.sources.exposition import Exposition, read_text
from ingest.sources.jolokia import read_answers, read_requests
from ingest.sources.samples import SeriesSamples, failed_target, sample_rows

MOST_BYTES = 64 * 1024 * 1024
AT_ONCE = 8


def build(settings: SourceSettings, context: SourceContext) -> Scraper:
    """The source that *settings* describe."""
    if not isinstance(settings, ScrapeSource):
        raise ConfigError(f"{settings.name} is not a scrape source.")
    return Scraper(settings, context)


@dataclass(frozen=True)
class _Answer:
    instance: str
    at_ms: int
    exposition: Exposition | None
    error: str | None


class Scraper:
    """The source of kind `scrape`."""

    def __init__(
        self,
        settings: ScrapeSource,
        context: SourceContext,
        clock: Callable[[], float] = time.time,
    ) -> None:
        self.name = settings.name
        self.app_id = f"scrape/{context.cluster}/{settings.name}"
        self._settings = settings
        self._cluster = context.cluster
        self._clock = clock
        self._access = HttpAccess.of(settings)
        self._position: int | None = None
        self._next_round = 0.0
        self._notes: tuple[str, ...] = ()

    def open(self, lake: Lake) -> None:
        """Learn when the last round was."""
        self._position = lake.position(METRIC_SAMPLES, self.app_id)
        self._next_round = 0.0

    def poll(self, timeout_s: float) -> Iterable[Batch]:  # noqa: ARG002 - bounded by timeout_s
        """One round over all targets when it is due."""
        now = self._clock()
        if now < self._next_round:
            return
        self._next_round = now + self._settings.interval_s
        with ThreadPoolExecutor(AT_ONCE) as pool:
            answers = list(pool.map(self._ask, self._settings.targets))
        yield self._batch(answers)

    def _batch(self, answers: list[_Answer]) -> Batch:
        series, dropped, seen = [], {"not_configured": 0, "unreadable": 0}, set()
        for answer in answers:
            if answer.error is not None:
                series.append(failed_target(answer.instance, answer.at_ms, answer.error))
            if answer.exposition is None:
                continue
            dropped["not_configured"] += answer.exposition.not_configured
            dropped["unreadable"] += answer.exposition.unreadable
            for sample in answer.exposition.samples:
                labels = dict(sample.labels)
                meaning = read_name(sample.metric, labels)
                seen.add(meaning.name if meaning else "")
                at = ((answer.at_ms, sample.value),)
                series.append(SeriesSamples(sample.metric, labels, answer.instance, at))
        self._report(answers, seen)
        read_at = datetime.fromtimestamp(self._clock(), UTC)
        made = sample_rows(self._cluster, self.name, series, read_at)
        reached = max([answer.at_ms for answer in answers] + [(self._position or 0) + 1])
        position = Position(self.app_id, self._position, reached)
        self._position = reached
        kept = {reason: count for reason, count in dropped.items() if count}
        return Batch(METRIC_SAMPLES, made, (position,), made.num_rows + sum(kept.values()), kept)

    def _report(self, answers: list[_Answer], seen: set[str]) -> None:
        notes = [f"No metrics from {a.instance}: {a.error}." for a in answers if a.error]
        empty = [a.instance for a in answers if a.exposition and not a.exposition.samples]
        if empty:
            notes.append(
                f"{', '.join(empty)}: the answer has none of the metrics that we read. "
                "Does the exporter keep kafka.producer and kafka.server beans?"
            )
        if "metrics" in self._settings.model_fields_set and not notes:
            notes += named_but_absent(self._settings.metrics, seen)
        self._notes = tuple(notes)

    def _ask(self, target: str) -> _Answer:
        instance = urlsplit(target).netloc
        at_ms = int(self._clock() * 1000)
        try:
            body = self._fetch(target)
            if self._settings.format == "text":
                exposition = read_text(body.decode("utf-8", "replace"), self._settings.metrics)
                return _Answer(instance, at_ms, exposition, None)
            exposition, wrong = read_answers(json.loads(body), self._settings.metrics)
        except ConfigError:
            raise
        except Exception as error:
            # One target's trouble, whatever it is, is a gap in its series and nobody else's.
            return _Answer(instance, at_ms, None, why(error))
        return _Answer(instance, at_ms, exposition, "; ".join(wrong)[:500] or None)

    def _fetch(self, target: str) -> bytes:
        posted = None
        if self._settings.format == "jolokia":
            posted = read_requests(self._settings.metrics)
        deadline = time.monotonic() + self._settings.timeout_s
        with self._access.session() as session:
            arguments: dict[str, Any] = {"json": posted} if posted is not None else {}
            with session.request(
                "POST" if posted is not None else "GET",
                target,
                headers=self._access.headers(),
                timeout=self._settings.timeout_s,
                stream=True,
                **arguments,
            ) as answer:
                if answer.status_code != 200:
                    raise OSError(f"HTTP {answer.status_code} {answer.reason}".rstrip())
                body = bytearray()
                for chunk in answer.iter_content(65_536):
                    body += chunk
                    if len(body) > MOST_BYTES:
                        raise OSError(f"the answer is longer than {MOST_BYTES} bytes")
                    if time.monotonic() > deadline:
                        raise OSError(f"no whole answer in {self._settings.timeout_s:g} s")
                return bytes(body)

    def committed(self, batch: Batch) -> None:
        """Nothing is kept for a batch."""

    def health(self) -> Health:
        """Seconds since the last round, targets that failed or gave nothing."""
        lag = None if self._position is None else self._clock() - self._position / 1000
        return Health(lag=lag, lag_unit="s", notes=self._notes)

    def close(self) -> None:
        """Nothing is kept open between rounds."""
