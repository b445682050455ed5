"""Reports that audited clients send to an audit topic: evidence of real applications.

A report's rows go to `audit_reports`, a heartbeat's metrics to `metric_samples`. A commit is of one
table, so each partition has a position in both, and what lies before a table's own is not written
to it again. The topic may serve several clusters: the cluster's id in a row says which.
"""

from __future__ import annotations

import time
from collections import Counter
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from datetime import UTC, datetime
from typing import Any

from confluent_kafka import Message

from acktrail.audit.wire import Report, decode_reports, row_of_report
from acktrail.contracts import Table
from acktrail.contracts.arrow import no_rows, rows
from acktrail.contracts.bronze import AUDIT_REPORTS, METRIC_SAMPLES
from acktrail.errors import ConfigError
from acktrail.lake import Lake, Position
from acktrail.settings.sources import AuditTopicSource, SourceSettings
from ingest.kafka.access import client_config
from ingest.kafka.topic_reader import EXPIRED, POISON, PartitionProgress, Place, TopicReader
from ingest.registry import SourceContext
from ingest.source import Batch, Health
from ingest.sources.heartbeat_metrics import samples_of

UNKNOWN_CLUSTER = "unknown_cluster"
"""Rows about a cluster that the settings do not name."""
BEHIND = 5_000
"""So many messages without metrics move the position of the metrics, too."""
_TABLES = (AUDIT_REPORTS, METRIC_SAMPLES)


def build(settings: SourceSettings, context: SourceContext) -> AuditTopic:
    """The source that *settings* describe."""
    if not isinstance(settings, AuditTopicSource):
        raise ConfigError(f"{settings.name} is not an audit_topic source.")
    return AuditTopic(settings, context)


@dataclass
class _Lane:
    """One partition on its way into one table."""

    began: int | None
    """The table's position; None: there is none yet."""
    expired: int = 0


@dataclass
class _Came:
    """What a round has read of one partition, for both tables."""

    reached: int
    reports: list[tuple[str, Report]] = field(default_factory=list)
    """Each with its cluster."""
    offsets: list[int] = field(default_factory=list)
    """Of each report, where its message lies."""
    dropped: list[tuple[int, str]] = field(default_factory=list)
    """Where a message lies that was dropped, or a row's, and why."""


class AuditTopic:
    """The source of kind `audit_topic`."""

    def __init__(
        self,
        settings: AuditTopicSource,
        context: SourceContext,
        clock: Callable[[], float] = time.time,
    ) -> None:
        self.name = settings.name
        self._settings = settings
        self._cluster = context.cluster
        self._once = context.once
        self._config = client_config(context.kafka)
        self._clock = clock
        self._lake: Lake | None = None
        self._reader: TopicReader | None = None
        self._own_id = ""
        """Kafka's id of the cluster that the topic is on."""
        self._lanes: dict[tuple[Place, str], _Lane] = {}
        self._poison = self._strange = ""

    def open(self, lake: Lake) -> None:
        """Connect, and go on where the lake says each partition was left."""
        self.close()
        self._lake = lake
        self._reader = TopicReader(
            self.name,
            self._config,
            self._settings.topics,
            self._settings.timeout_s,
            once=self._once,
        )
        self._own_id = self._reader.cluster_id()
        self._reader.look(self._clock(), self._begin)

    def poll(self, timeout_s: float) -> Iterator[Batch]:
        """Reports that came, one batch per partition and table."""
        assert self._reader is not None, "open() comes first"
        yield from self._expired()
        if self._reader.look_due(self._clock()):
            self._reader.look(self._clock(), self._begin)
        if self._once and self._reader.drained:
            return
        came: dict[Place, _Came] = {}
        for message in self._reader.read(timeout_s):
            self._take(message, came)
        for place, found in came.items():
            yield from self._batches(place, found)

    def committed(self, batch: Batch) -> None:
        """The lake has it: nothing is kept for it here."""

    def health(self) -> Health:
        """Messages not yet read, topics that do not exist, what could not be read."""
        reader = self._reader
        if reader is None:
            return Health()
        notes = (*reader.missing, *(note for note in (self._poison, self._strange) if note))
        at = ", ".join(f"{t}-{p}@{found.next}" for (t, p), found in reader.places.items())
        return Health(float(reader.lag), "messages", notes, at, reader.missing, once_fails=True)

    def close(self) -> None:
        """Leave the cluster."""
        if self._reader is not None:
            self._reader.close()
        self._reader = None
        self._lanes = {}

    # -- positions ------------------------------------------------------------------------------

    def _begin(self, new: Mapping[Place, PartitionProgress]) -> None:
        """Move *new* partitions to the lower of the positions that the two tables have."""
        assert self._lake is not None, "open() comes first"
        ids = {place: self._app_id(found.file_id) for place, found in new.items()}
        for table in _TABLES:
            known = self._lake.positions(table, list(ids.values()))
            for place, found in new.items():
                began = known[ids[place]]
                expired = max(0, found.earliest - began) if began is not None else 0
                self._lanes[place, table.name] = _Lane(began, expired)
        for place, found in new.items():
            lanes = [self._lanes[place, table.name] for table in _TABLES]
            found.next = max(found.earliest, min(lane.began or 0 for lane in lanes))

    def _app_id(self, file_id: str) -> str:
        return f"audit_topic/{self._cluster}/{self.name}/{file_id}"

    def _expired(self) -> Iterator[Batch]:
        """Offsets that were deleted before they were read: counted, and passed."""
        assert self._reader is not None, "open() comes first"
        for place, found in self._reader.places.items():
            for table in _TABLES:
                lane = self._lanes[place, table.name]
                if not lane.expired or lane.began is None:
                    continue
                gone, lane.expired = lane.expired, 0
                counted = {EXPIRED: gone} if table is AUDIT_REPORTS else {}
                reached = lane.began + gone
                yield self._batch(place, found, table, no_rows(table), reached, counted)

    # -- messages -------------------------------------------------------------------------------

    def _take(self, message: Message, came: dict[Place, _Came]) -> None:
        place = (str(message.topic()), int(message.partition() or 0))
        offset = int(message.offset() or 0)
        found = came.setdefault(place, _Came(offset))
        found.reached = offset + 1
        value: Any = message.value()
        try:
            reports = decode_reports(value if isinstance(value, bytes) else b"")
        except ValueError as error:
            found.dropped.append((offset, POISON))
            where = f"{place[0]}-{place[1]}, offset {offset}"
            said = (
                f"Messages that are not audit reports are dropped and counted; the first: {where}"
            )
            self._poison = self._poison or f"{said} ({str(error)[:120]})."
            return
        for report in reports:
            cluster = self._cluster_of(report.cluster_id)
            if cluster is None:
                found.dropped.append((offset, UNKNOWN_CLUSTER))
            else:
                found.reports.append((cluster, report))
                found.offsets.append(offset)

    def _cluster_of(self, cluster_id: str | None) -> str | None:
        """The name of the cluster that a row is about; None where the settings give none."""
        if not cluster_id:
            return self._cluster
        named = self._settings.cluster_names.get(cluster_id)
        if named is None and cluster_id == self._own_id:
            named = self._cluster
        if named is None and not self._strange:
            self._strange = (
                f"Reports about cluster {cluster_id} are dropped and counted: name it in "
                f"`cluster_names` of source {self.name}."
            )
        return named

    def _batches(self, place: Place, came: _Came) -> Iterator[Batch]:
        assert self._reader is not None, "open() comes first"
        found = self._reader.places[place]
        read_at = datetime.fromtimestamp(self._clock(), UTC)
        lane = self._lanes[place, AUDIT_REPORTS.name]
        if came.reached > (lane.began or 0):
            first = lane.began or 0
            kept = [r for r, at in zip(came.reports, came.offsets, strict=True) if at >= first]
            made = [row_of_report(r, cluster, self.name, read_at) for cluster, r in kept]
            dropped = Counter(reason for at, reason in came.dropped if at >= first)
            table = rows(AUDIT_REPORTS, made)
            yield self._batch(place, found, AUDIT_REPORTS, table, came.reached, dropped)
        lane = self._lanes[place, METRIC_SAMPLES.name]
        first = lane.began or 0
        if came.reached > first:
            kept = [r for r, at in zip(came.reports, came.offsets, strict=True) if at >= first]
            samples = samples_of(kept, self.name, read_at)
            if samples.num_rows or came.reached - first > BEHIND or self._once:
                yield self._batch(place, found, METRIC_SAMPLES, samples, came.reached, {})

    def _batch(
        self,
        place: Place,
        found: PartitionProgress,
        table: Table,
        made: Any,
        reached: int,
        dropped: dict[str, int],
    ) -> Batch:
        lane = self._lanes[place, table.name]
        move = Position(self._app_id(found.file_id), lane.began, reached)
        lane.began = reached
        received = made.num_rows + sum(dropped.values())
        return Batch(table, made, (move,), received, dict(dropped))
