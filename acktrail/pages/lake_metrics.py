"""The lake's answers as Prometheus metrics: over HTTP, or in a file for node_exporter.

The lake is read only where it has changed: every answer remembers the version of its tables. What
a clock changes (seconds left, ages) is computed for each scrape from instants. A lake that cannot
be read gives `acktrail_lake_up 0` and no answer at all, never zeros.
"""

from __future__ import annotations

import logging
import math
import os
import threading
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from functools import cache
from pathlib import Path
from typing import Any

from prometheus_client import CollectorRegistry, start_http_server, write_to_textfile
from prometheus_client.core import GaugeMetricFamily
from prometheus_client.registry import Collector

from acktrail import __version__
from acktrail.answers import current_facts as facts
from acktrail.contracts import TABLES, Table
from acktrail.contracts.gold import DELIVERY_LEDGER, LOSS_INCIDENTS, RETRY_BUDGETS
from acktrail.contracts.runs import CHECK_RESULTS, COVERAGE, SOURCE_STATES
from acktrail.errors import AcktrailError, ConfigError, UsageError
from acktrail.lake import Lake
from acktrail.pages import metric_series as series
from acktrail.policy.model import Policy
from acktrail.window import hour_of

FRESH = "fresh_s"
"""The policy's threshold: evidence that is older tells nothing about now."""
_FRESH_S = 3600.0
_LOG = logging.getLogger(__name__)

Read = Callable[[Lake, datetime, Policy], Any]


@dataclass(frozen=True)
class Answer:
    """One question, the tables it is answered from, and how."""

    name: str
    tables: tuple[Table, ...]
    read: Read


ANSWERS = (
    Answer("ledger", (DELIVERY_LEDGER,), lambda lake, *_: facts.ledger_accounts(lake)),
    Answer(
        "losses",
        (LOSS_INCIDENTS, DELIVERY_LEDGER),
        lambda lake, now, policy: facts.recent_incidents(lake, now - policy.window),
    ),
    Answer("budgets", (RETRY_BUDGETS,), facts.open_budgets),
    Answer("checks", (CHECK_RESULTS,), lambda lake, now, _: facts.newest_check_results(lake, now)),
    Answer(
        "evidence",
        (COVERAGE, SOURCE_STATES),
        lambda lake, now, _: facts.newest_evidence(lake, now),
    ),
    Answer("sources", (SOURCE_STATES,), lambda lake, now, _: facts.reported_sources(lake, now)),
    Answer("jobs", TABLES, lambda lake, *_: facts.job_facts(lake)),
)


@dataclass
class _Kept:
    """What was read of one answer, from which versions of its tables, in which hour."""

    versions: tuple[Any, ...]
    hour: str
    found: Any


class LakeFacts:
    """The answers of one lake, each read again only after somebody has committed to its tables."""

    def __init__(self, lake: Lake, policy: Policy) -> None:
        self._lake = lake
        self._policy = policy
        self._kept: dict[str, _Kept] = {}
        self._errors: dict[str, str] = {}
        self.reads = 0
        """How often an answer was read from the lake's rows."""

    def look(self, now: datetime) -> dict[str, Any] | None:
        """By answer what is known (None: no evidence); without those that cannot be read.

        None where there is no lake, or nothing in it can be read.
        """
        try:
            if self._lake.is_empty():
                raise UsageError(f"There is no table at {self._lake.uri}.")
        except (AcktrailError, OSError) as error:
            self._report("lake", error)
            return None
        self._report("lake", None)
        look = cache(self._lake.look)  # several answers are made from one table
        found: dict[str, Any] = {}
        for answer in ANSWERS:
            try:
                # A snapshot that was looked at before is the same: nobody has committed since.
                versions = tuple(look(table) for table in answer.tables)
                found[answer.name] = self._read(answer, versions, now)
            except (AcktrailError, OSError) as error:
                self._kept.pop(answer.name, None)
                self._report(answer.name, error)
            else:
                self._report(answer.name, None)
        return found or None

    def _read(self, answer: Answer, versions: tuple[Any, ...], now: datetime) -> Any:
        kept = self._kept.get(answer.name)
        hour = hour_of(now)
        if kept is not None and kept.hour == hour:
            same = zip(kept.versions, versions, strict=True)
            if all(before is after for before, after in same):
                return kept.found
        self.reads += 1
        read = answer.read(self._lake, now, self._policy)
        self._kept[answer.name] = _Kept(versions, hour, read)
        return read

    def _report(self, name: str, error: Exception | None) -> None:
        """Log an error once, and that it is over."""
        said = "" if error is None else f"{type(error).__name__}: {error}"
        if said and said != self._errors.get(name):
            _LOG.warning("%s cannot be read: %s", name, said)
        elif not said and self._errors.get(name):
            _LOG.info("%s can be read again.", name)
        self._errors[name] = said


class LakeMetrics(Collector):
    """What a scrape is answered with."""

    def __init__(
        self,
        lake: Lake,
        policy: Policy,
        top: int,
        clock: Callable[[], datetime] = lambda: datetime.now(UTC),
    ) -> None:
        self.facts = LakeFacts(lake, policy)
        self.up = False
        """Whether every answer could be read, at the last scrape."""
        self._policy = policy
        self._top = top
        self._clock = clock
        self._lock = threading.Lock()

    def collect(self) -> Iterator[GaugeMetricFamily]:
        """All series as they are now; one scrape at a time."""
        with self._lock:
            began = time.perf_counter()
            now = self._clock()
            found = self.facts.look(now)
            shown = [] if found is None else list(self._series(found, now))
            answers: series.Samples = {(a.name,): _is_up(found, a.name) for a in ANSWERS}
            self.up = found is not None and all(up != 0 for up in answers.values())
            shown += _own(self.up, answers, now, time.perf_counter() - began)
        for one in shown:
            family = GaugeMetricFamily(one.name, one.doc, labels=one.labels)
            for key, value in sorted(one.samples.items()):
                family.add_metric(key, value)
            yield family

    def _series(self, found: dict[str, Any], now: datetime) -> Iterator[series.MetricSeries]:
        fresh = timedelta(seconds=self._policy.limit_everywhere(FRESH, _FRESH_S))
        asked = series.ScrapeMoment(now, self._policy.window, self._top, fresh)
        accounts, evidence = found.get("ledger"), found.get("evidence")
        if found.get("losses") is not None or (accounts is not None and "losses" in found):
            yield from series.loss_series(found["losses"] or (), accounts or {}, asked)
        if accounts is not None:
            yield from series.ledger_series(accounts)
        if found.get("budgets") is not None:
            yield from series.budget_series(found["budgets"], evidence or (), asked)
        if found.get("checks") is not None:
            yield from series.check_series(found["checks"])
        if evidence is not None:
            yield from series.evidence_series(evidence, asked)
        if found.get("sources") is not None:
            yield from series.source_series(found["sources"], asked)
        if found.get("jobs") is not None:
            yield from series.job_series(found["jobs"], asked)


def _is_up(found: dict[str, Any] | None, name: str) -> float:
    if found is None or name not in found:
        return 0.0
    return math.nan if found[name] is None else 1.0


def _own(
    up: bool, answers: series.Samples, now: datetime, seconds: float
) -> list[series.MetricSeries]:
    """What the exporter says of itself."""
    return [
        series.MetricSeries(
            "acktrail_lake_up",
            "1 where the lake and every answer could be read; 0: what is not read is not shown.",
            samples={(): float(up)},
        ),
        series.MetricSeries(
            "acktrail_answer_up",
            "1 where an answer could be read, 0 where not, NaN where the lake has no evidence for "
            "it.",
            ("answer",),
            answers,
        ),
        series.MetricSeries(
            "acktrail_exporter_timestamp_seconds",
            "The moment these metrics are about.",
            samples={(): now.timestamp()},
        ),
        series.MetricSeries(
            "acktrail_exporter_read_seconds",
            "How long it took to look at the lake.",
            samples={(): seconds},
        ),
        series.MetricSeries(
            "acktrail_build_info", "The version of acktrail.", ("version",), {(__version__,): 1.0}
        ),
    ]


def serve(metrics: LakeMetrics, host: str, port: int) -> Callable[[], None]:
    """Serve *metrics* at /metrics; returns what ends it. ConfigError where the port is taken."""
    registry = CollectorRegistry(auto_describe=False)
    registry.register(metrics)
    try:
        server, thread = start_http_server(port, host, registry)
    except OSError as error:
        raise ConfigError(f"--listen {host}:{port}: {error.strerror or error}.") from None

    def stop() -> None:
        server.shutdown()
        server.server_close()
        thread.join()

    return stop


def write_textfile(metrics: LakeMetrics, path: Path) -> None:
    """Write *metrics* to *path*: a reader sees the old file or the new one, never a part."""
    registry = CollectorRegistry(auto_describe=False)
    registry.register(metrics)
    try:
        write_to_textfile(str(path), registry)
        os.chmod(path, 0o644)  # node_exporter runs as another user
    except OSError as error:
        raise ConfigError(f"--textfile {path}: {error.strerror or error}.") from None
