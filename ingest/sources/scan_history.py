"""What the lake already has of the topics that a scanner reads, by its own questions."""

from __future__ import annotations

import time
from bisect import bisect_left
from collections import defaultdict
from collections.abc import Sequence
from datetime import UTC, datetime, timedelta
from functools import reduce
from operator import or_
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.dataset as ds

from acktrail.audit.topic_evidence import REPORT_DELAY_MS
from acktrail.audit.wire import Report, report_of_row
from acktrail.contracts import Table
from acktrail.contracts.bronze import AUDIT_REPORTS, CLUSTER_STATES
from acktrail.contracts.vocabulary import Tier
from acktrail.lake import Lake
from acktrail.lake.rows import Rows
from acktrail.window import day_of, epoch_ms, from_epoch_ms
from ingest.kafka.cluster_view import PartitionState
from ingest.sources.scan_epochs import SIGHTING_COLUMNS
from ingest.sources.scan_plan import Place

_STATES = ("topic", "topic_id", "partition", "at", "latest_offset")
_RECENT = timedelta(days=2)
"""How far back the epochs of a partition that was not met before are looked up."""
_STRETCH_MIN = 10
_KEPT_S = 300.0
"""How long the ends of logs are kept before they are read again."""


class ScanHistory:
    """Reads of the lake, each of as few files as its bounds allow."""

    def __init__(self, lake: Lake, cluster: str, topics: Sequence[str]) -> None:
        self._lake = lake
        self._where = (ds.field("cluster") == cluster) & ds.field("topic").isin(list(topics))
        self._topic_ids: dict[str, str] = {}
        self._ends: dict[Place, list[tuple[int, int]]] = {}
        self._ends_of: tuple[str, float] | None = None
        """The first day that the ends were read for, and until when they are kept."""

    def reports(self, received_after: int, columns: Sequence[str]) -> list[Report]:
        """The reports received after *received_after*: all that was committed since then."""
        at = from_epoch_ms(received_after)
        found = self._rows(AUDIT_REPORTS, columns, at, ds.field("read_at") > _ms_end(at))
        return [report_of_row(row) for row in found.to_pylist()]

    def sightings(self, states: Sequence[PartitionState]) -> list[Report]:
        """Who has seen records of these partitions, and the scans; without the ids."""
        tiers = [tier.value for tier in (Tier.IN_LOG, Tier.DELIVERED, Tier.SCANNED)]
        where = ds.field("tier").isin(tiers) & _at(states)
        found = self._rows(AUDIT_REPORTS, SIGHTING_COLUMNS, None, where)
        return [report_of_row(row) for row in found.to_pylist()]

    def noticed(self, state: PartitionState) -> int | None:
        """The receipt at which a scan first noticed the epoch of *state*; None: none has."""
        where = (
            (ds.field("tier") == Tier.SCANNED.value)
            & (ds.field("leader_epoch") == state.leader_epoch)
            & _at([state])
        )
        found = self._rows(AUDIT_REPORTS, ("after_at",), None, where).column("after_at")
        return min((epoch_ms(at) for at in found.to_pylist() if at is not None), default=None)

    def first_epoch(self, state: PartitionState) -> int:
        """The oldest leader epoch that the cluster told lately of a partition; else the newest."""
        assert state.leader_epoch is not None
        since = datetime.now(UTC) - _RECENT
        where = (ds.field("topic_id") == state.topic_id) & _at([state])
        found = self._rows(CLUSTER_STATES, ("leader_epoch",), since, where)
        told = [int(e) for e in found.column("leader_epoch").to_pylist() if e is not None]
        return min([state.leader_epoch, *told])

    def ask(self, topic_ids: dict[str, str]) -> None:
        """From now on `lowest_end` is about these topics, by name."""
        if topic_ids != self._topic_ids:
            self._topic_ids, self._ends_of = dict(topic_ids), None

    def lowest_end(self, place: Place, begun_ms: int | None) -> int:
        """No record of a session that began then lies below this offset.

        It is the lowest end of the log since the last answer before the session began.
        """
        if begun_ms is None:
            return 0
        limit = begun_ms - REPORT_DELAY_MS
        self._read_ends(day_of(from_epoch_ms(limit) - timedelta(days=1)))
        told = self._ends.get(place, [])
        first = bisect_left(told, (limit, -1)) - 1
        return min((end for _, end in told[first:]), default=0) if first >= 0 else 0

    def _read_ends(self, day: str) -> None:
        """The lowest end in each stretch of time, by the time of its last answer."""
        now = time.monotonic()
        if self._ends_of is not None and self._ends_of[0] <= day and now < self._ends_of[1]:
            return
        where = (ds.field("day") >= day) & ds.field("latest_offset").is_valid()
        found = self._rows(CLUSTER_STATES, _STATES, None, where)
        stretch: Any = pc.floor_temporal(found.column("at"), _STRETCH_MIN, unit="minute")
        lowest = (
            found.append_column("stretch", stretch)
            .group_by(["topic", "topic_id", "partition", "stretch"])
            .aggregate([("at", "max"), ("latest_offset", "min")])
        )
        ends: dict[Place, list[tuple[int, int]]] = defaultdict(list)
        for row in lowest.to_pylist():
            if row["topic_id"] == self._topic_ids.get(row["topic"], row["topic_id"]):
                end = (epoch_ms(row["at_max"]), int(row["latest_offset_min"]))
                ends[row["topic"], row["partition"]].append(end)
        self._ends = {place: sorted(told) for place, told in ends.items()}
        self._ends_of = day, now + _KEPT_S

    def _rows(
        self, table: Table, columns: Sequence[str], since: datetime | None, where: ds.Expression
    ) -> pa.Table:
        seen = self._lake.look(table)
        if seen is None:
            return self._lake.read(table, columns=columns)
        rows = Rows(table, self._lake.at(table), seen)
        if since is not None:
            rows = rows.reaching({"read_at": since})
        return rows.read(*columns, where=self._where & where)


def _at(states: Sequence[PartitionState]) -> ds.Expression:
    by_topic: dict[str, list[int]] = defaultdict(list)
    for state in states:
        by_topic[state.topic].append(state.partition)
    places = [
        (ds.field("topic") == topic) & ds.field("partition").isin(numbers)
        for topic, numbers in by_topic.items()
    ]
    return reduce(or_, places)


def _ms_end(at: datetime) -> datetime:
    """The last microsecond of the millisecond: receipts are compared in milliseconds."""
    return at + timedelta(microseconds=999)
