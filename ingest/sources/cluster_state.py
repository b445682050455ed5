"""Snapshots of what the cluster says: partitions, settings when they change, group commits.

Each table has a position of its own, the time of the last snapshot in epoch milliseconds.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterable, Iterator, Mapping
from datetime import UTC, datetime
from typing import Any

from acktrail.contracts import Table
from acktrail.contracts.arrow import rows
from acktrail.contracts.bronze import CLUSTER_CONFIGS, CLUSTER_STATES, GROUP_OFFSETS
from acktrail.errors import ConfigError
from acktrail.lake import Lake, Position
from acktrail.logs.redact import redact
from acktrail.settings.sources import ClusterStateSource, SourceSettings
from ingest.kafka.access import client_config
from ingest.kafka.cluster_view import ClusterView, PartitionState
from ingest.registry import SourceContext
from ingest.source import Batch, Health

_TABLES = (CLUSTER_STATES, CLUSTER_CONFIGS, GROUP_OFFSETS)


def build(settings: SourceSettings, context: SourceContext) -> ClusterStates:
    """The source that *settings* describe."""
    if not isinstance(settings, ClusterStateSource):
        raise ConfigError(f"{settings.name} is not a cluster_state source.")
    return ClusterStates(settings, context)


class ClusterStates:
    """The source of kind `cluster_state`."""

    def __init__(
        self,
        settings: ClusterStateSource,
        context: SourceContext,
        clock: Callable[[], float] = time.time,
    ) -> None:
        self.name = settings.name
        self.app_id = f"cluster_state/{context.cluster}/{settings.name}"
        self._settings = settings
        self._cluster = context.cluster
        self._config = client_config(context.kafka)
        self._clock = clock
        self._lake: Lake | None = None
        self._view: ClusterView | None = None
        self._positions: dict[str, int | None] = {}
        self._known: dict[tuple[str, str], dict[str, str]] = {}
        self._next_round = 0.0
        self._notes: tuple[str, ...] = ()

    def open(self, lake: Lake) -> None:
        """Learn what settings the lake knows, and connect."""
        self._lake = lake
        self._positions = {t.name: lake.position(t, self.app_id) for t in _TABLES}
        self._known = _known_settings(lake, self._cluster, self.name)
        self._view = ClusterView(self._config, self._settings.timeout_s)
        self._next_round = 0.0

    def poll(self, timeout_s: float) -> Iterable[Batch]:  # noqa: ARG002 - bounded by timeout_s
        """One snapshot when it is due: a batch per table."""
        now = self._clock()
        if now < self._next_round:
            return
        assert self._view is not None, "open() comes first"
        view = self._view
        view.notes.clear()
        topics = list(self._settings.topics) or view.topics()
        after = self._newest_receipt()
        states = view.partitions(topics)
        yield self._batch(CLUSTER_STATES, self._states(states, after))
        topics = sorted({s.topic for s in states})
        yield self._batch(CLUSTER_CONFIGS, self._configs(view, topics, after))
        groups = list(self._settings.groups) or view.groups()
        after = self._newest_receipt()
        yield self._batch(GROUP_OFFSETS, self._commits(view, groups, states, after))
        self._notes = tuple(view.notes[:20])
        self._next_round = now + self._settings.interval_s

    def _newest_receipt(self) -> datetime:
        """What was received up to this was in the lake before the question that follows."""
        assert self._lake is not None, "open() comes first"
        return datetime.fromtimestamp(self._lake.receipt(self._cluster) / 1000, UTC)

    def _states(self, states: list[PartitionState], after: datetime) -> Iterator[dict[str, Any]]:
        at = self._now()
        for state in states:
            yield {
                "topic": state.topic,
                "topic_id": state.topic_id,
                "partition": state.partition,
                "at": at,
                "earliest_offset": state.earliest_offset,
                "latest_offset": state.latest_offset,
                "leader_epoch": state.leader_epoch,
                "leader": state.leader,
                "replicas": list(state.replicas),
                "isr": list(state.isr),
                "after_at": after,
            }

    def _configs(
        self, view: ClusterView, topics: list[str], after: datetime
    ) -> Iterator[dict[str, Any]]:
        """Only what is not as it was."""
        for key, found in view.settings(topics, view.brokers()).items():
            settings = {name: redact(value) for name, value in found.items()}
            if self._known.get(key) == settings:
                continue
            self._known[key] = settings
            kind, entity = key
            yield {
                "entity_kind": kind,
                "entity": entity,
                "at": self._now(),
                "settings": settings,
                "after_at": after,
            }

    def _commits(
        self,
        view: ClusterView,
        groups: list[str],
        states: list[PartitionState],
        after: datetime,
    ) -> Iterator[dict[str, Any]]:
        ids = {state.topic: state.topic_id for state in states}
        for commit in view.commits(groups, states):
            if commit.topic not in ids:
                continue
            yield {
                "group": commit.group,
                "topic": commit.topic,
                "topic_id": ids[commit.topic],
                "partition": commit.partition,
                "at": self._now(),
                "committed_offset": commit.offset,
                "metadata": commit.metadata,
                "members": commit.members,
                "group_state": commit.state,
                "after_at": after,
            }

    def _batch(self, table: Table, records: Iterable[Mapping[str, Any]]) -> Batch:
        listed = list(records)
        read_at = self._now()
        stamp = {
            "cluster": self._cluster,
            "source": self.name,
            "read_at": read_at,
            "day": f"{read_at:%Y-%m-%d}",
        }
        began = self._positions[table.name]
        reached = max(int(read_at.timestamp() * 1000), (began or 0) + 1)
        self._positions[table.name] = reached
        made = rows(table, [{**record, **stamp} for record in listed])
        return Batch(table, made, (Position(self.app_id, began, reached),), made.num_rows)

    def _now(self) -> datetime:
        return datetime.fromtimestamp(self._clock(), UTC)

    def committed(self, batch: Batch) -> None:
        """Nothing is kept for a batch."""

    def health(self) -> Health:
        """Seconds since the last snapshot, what could not be asked, topics that do not exist."""
        missing = self._view.missing if self._view is not None else ()
        last = self._positions.get(CLUSTER_STATES.name)
        lag = None if last is None else self._clock() - last / 1000
        return Health(lag=lag, lag_unit="s", notes=self._notes, unread=missing, once_fails=True)

    def close(self) -> None:
        """Let go of the connections."""
        self._view = None


def _known_settings(lake: Lake, cluster: str, source: str) -> dict[tuple[str, str], dict[str, str]]:
    """The newest settings of every topic and broker in the lake."""
    import pyarrow.dataset as ds

    where = (ds.field("cluster") == cluster) & (ds.field("source") == source)
    found = lake.read(
        CLUSTER_CONFIGS, where=where, columns=["entity_kind", "entity", "at", "settings"]
    )
    newest: dict[tuple[str, str], dict[str, str]] = {}
    for row in sorted(found.to_pylist(), key=lambda row: row["at"]):
        newest[row["entity_kind"], row["entity"]] = dict(row["settings"] or ())
    return newest
