"""The log scanner: reads audited topics itself and says which ids are really in the log.

Whole: every record once; the position of a partition is the next offset. Where a new leader epoch
has replaced what was read, the position goes back to the first record of that epoch. On suspicion:
only the ranges around ids that were promised and not seen (after a whole read too, since only a
look begun after the ack decides); the position is the time of the last look. A topic that was
created anew has another id, and so another position.
"""

from __future__ import annotations

import secrets
import time
from collections.abc import Callable, Iterable, Iterator, Sequence
from datetime import UTC, datetime

import pyarrow as pa
import pyarrow.dataset as ds

from acktrail.audit.wire import Report, row_of_report
from acktrail.contracts.arrow import rows
from acktrail.contracts.bronze import AUDIT_REPORTS, CLUSTER_STATES
from acktrail.contracts.vocabulary import Tier
from acktrail.errors import ConfigError
from acktrail.lake import Lake, Position
from acktrail.settings.sources import LogScanSource, SourceSettings
from ingest.kafka.access import client_config
from ingest.kafka.cluster_view import ClusterView, PartitionState
from ingest.registry import SourceContext
from ingest.source import Batch, Health
from ingest.sources.partition_reader import PartitionReader
from ingest.sources.scan_plan import COLUMNS, Place, suspects
from ingest.sources.scan_reports import LogRecord, ScannedRange, scan_reports


def build(settings: SourceSettings, context: SourceContext) -> LogScanner:
    """The source that *settings* describe."""
    if not isinstance(settings, LogScanSource):
        raise ConfigError(f"{settings.name} is not a log_scan source.")
    return LogScanner(settings, context)


class LogScanner:
    """The source of kind `log_scan`."""

    def __init__(
        self,
        settings: LogScanSource,
        context: SourceContext,
        clock: Callable[[], float] = time.time,
    ) -> None:
        self.name = settings.name
        self._settings = settings
        self._cluster = context.cluster
        self._config = client_config(context.kafka)
        self._clock = clock
        self._reporter = ""
        self._part = 0
        self._lake: Lake | None = None
        self._view: ClusterView | None = None
        self._reader: PartitionReader | None = None
        self._positions: dict[str, int | None] = {}
        self._epochs: dict[str, int] = {}
        self._uncommitted: dict[int, Batch] = {}
        self._next_round = 0.0
        self._notes: tuple[str, ...] = ()

    def open(self, lake: Lake) -> None:
        """Connect, as a new reporter."""
        self._lake = lake
        self._reporter = secrets.token_hex(16)
        self._part = 0
        self._positions.clear()
        self._epochs.clear()
        self._uncommitted.clear()
        self._view = ClusterView(self._config, 15.0)
        self._reader = PartitionReader(self._config)
        self._next_round = 0.0

    def poll(self, timeout_s: float) -> Iterable[Batch]:  # noqa: ARG002 - one round
        """One round over all partitions when it is due."""
        now = self._clock()
        if now < self._next_round:
            return
        assert self._view is not None, "open() comes first"
        self._view.notes.clear()
        states = [s for s in self._view.partitions(self._settings.topics) if _readable(s)]
        self._ask_positions(states)
        if self._settings.mode == "whole":
            for state in states:
                yield from self._rest_of(state)
        yield from self._suspected(states)
        self._notes = tuple(self._view.notes[:20])
        self._next_round = now + self._settings.interval_s

    # -- whole ----------------------------------------------------------------------------------

    def _rest_of(self, state: PartitionState) -> Iterator[Batch]:
        """From the position to the end the log had a moment ago."""
        earliest, latest = _bounds(state)
        app_id = self._app_id(state, "whole")
        position = self._positions[app_id]
        start = earliest if position is None else max(earliest, self._unchanged_to(state, position))
        if position is not None and start == position and position >= latest:
            return
        while True:
            scan, records = self._read(state, start, latest, latest)
            if _newer_than(state, records):
                return  # a new leader since the cluster was asked: the next round goes by its epoch
            yield self._batch(scan, records, app_id, scan.end_offset)
            if scan.closed or scan.end_offset == start:
                return
            start = scan.end_offset

    def _unchanged_to(self, state: PartitionState, position: int) -> int:
        """How far what was read is still what is there.

        A log is a prefix of what it was plus what later leaders wrote: records before the first
        one of a newer epoch are as they were read.
        """
        earliest, latest = _bounds(state)
        app_id = self._app_id(state, "whole")
        known = self._epochs.get(app_id, -1)
        newest = state.leader_epoch if state.leader_epoch is not None else -1
        position = min(position, latest)
        if known < 0 or newest <= known or position <= earliest:
            return position
        assert self._reader is not None
        low, high = earliest, position  # the first newer record is at or after low
        while low < high:
            middle = (low + high) // 2
            epoch = self._reader.epoch_at(state.topic, state.partition, middle, latest)
            if epoch is None or epoch > known:
                high = middle
            else:
                low = middle + 1
        self._epochs[app_id] = newest  # looked at once, whether or not something is read now
        return low

    # -- on suspicion ---------------------------------------------------------------------------

    def _suspected(self, states: Sequence[PartitionState]) -> Iterator[Batch]:
        assert self._lake is not None, "open() comes first"
        where = (ds.field("cluster") == self._cluster) & ds.field("topic").isin(
            list(self._settings.topics)
        )
        reports = self._lake.read(AUDIT_REPORTS, where=where, columns=COLUMNS).to_pylist()
        for batch in self._uncommitted.values():
            reports += batch.rows.select(COLUMNS).to_pylist()
        found = suspects(
            reports,
            self._ends(states),
            now_ms=int(self._clock() * 1000),
            settle_ms=int(self._settings.settle_s * 1000),
            margin=self._settings.margin,
        )
        for state in states:
            for suspect in found.get((state.topic, state.partition), ()):
                yield from self._look(state, suspect.first_offset, suspect.last_offset)

    def _ends(self, states: Sequence[PartitionState]) -> dict[Place, list[tuple[int, int]]]:
        """Every partition, with the ends of its log that the lake knows."""
        assert self._lake is not None, "open() comes first"
        ends: dict[Place, list[tuple[int, int]]] = {(s.topic, s.partition): [] for s in states}
        ids = {s.topic: s.topic_id for s in states}
        where = (ds.field("cluster") == self._cluster) & ds.field("topic").isin(list(ids))
        columns = ["topic", "topic_id", "partition", "at", "latest_offset"]
        for row in self._lake.read(CLUSTER_STATES, where=where, columns=columns).to_pylist():
            place = (row["topic"], row["partition"])
            same = row["topic_id"] == ids[row["topic"]]
            if same and place in ends and row["latest_offset"] is not None:
                ends[place].append((int(row["at"].timestamp() * 1000), row["latest_offset"]))
        return ends

    def _look(self, state: PartitionState, first: int, last: int | None) -> Iterator[Batch]:
        earliest, latest = _bounds(state)
        start = min(max(first, earliest), latest)
        end = latest if last is None else min(latest, last + 1)
        app_id = self._app_id(state, "suspicion")
        while True:
            scan, records = self._read(state, start, end, latest)
            before = self._positions[app_id] or 0
            yield self._batch(scan, records, app_id, max(scan.ended_ms, before + 1))
            if scan.end_offset >= end or scan.end_offset == start:
                return
            start = scan.end_offset

    # -- both -----------------------------------------------------------------------------------

    def _read(
        self, state: PartitionState, start: int, end: int, latest: int
    ) -> tuple[ScannedRange, list[LogRecord]]:
        assert self._reader is not None, "open() comes first"
        began_ms = int(self._clock() * 1000)
        records, covered = self._reader.read(
            state.topic, state.partition, start, end, self._settings.max_records
        )
        scan = ScannedRange(
            topic=state.topic,
            partition=state.partition,
            first_offset=start,
            end_offset=covered,
            began_ms=began_ms,
            ended_ms=int(self._clock() * 1000),
            closed=covered >= latest,
            topic_id=state.topic_id,
            leader_epoch=state.leader_epoch,
        )
        return scan, records

    def _batch(
        self, scan: ScannedRange, records: list[LogRecord], app_id: str, reached: int
    ) -> Batch:
        reports = scan_reports(scan, records, self._reporter, self._part)
        self._part += len(records) + 1
        if scan.leader_epoch is not None:
            self._epochs[app_id] = max(self._epochs.get(app_id, -1), scan.leader_epoch)
        position = Position(app_id, self._positions[app_id], reached)
        self._positions[app_id] = reached
        made = self._rows(reports)
        batch = Batch(AUDIT_REPORTS, made, (position,), made.num_rows)
        self._uncommitted[id(batch)] = batch
        return batch

    def _rows(self, reports: list[Report]) -> pa.Table:
        read_at = datetime.fromtimestamp(self._clock(), UTC)
        return rows(
            AUDIT_REPORTS, [row_of_report(r, self._cluster, self.name, read_at) for r in reports]
        )

    def _app_id(self, state: PartitionState, mode: str) -> str:
        place = f"{state.topic}/{state.topic_id}/{state.partition}"
        return f"log_scan/{self._cluster}/{self.name}/{mode}/{place}"

    def _ask_positions(self, states: Sequence[PartitionState]) -> None:
        """What the lake says of partitions not met before."""
        assert self._lake is not None, "open() comes first"
        met = {self._app_id(s, mode): s for s in states for mode in ("whole", "suspicion")}
        new = {app_id: state for app_id, state in met.items() if app_id not in self._positions}
        if not new:
            return
        self._positions |= self._lake.positions(AUDIT_REPORTS, list(new))
        where = (
            (ds.field("cluster") == self._cluster)
            & (ds.field("source") == self.name)
            & (ds.field("tier") == Tier.SCANNED.value)
        )
        columns = ["topic", "topic_id", "partition", "leader_epoch"]
        scanned = self._lake.read(AUDIT_REPORTS, where=where, columns=columns).to_pylist()
        by_place = {(s.topic, s.topic_id, s.partition): s for s in new.values()}
        for row in scanned:
            state = by_place.get((row["topic"], row["topic_id"], row["partition"]))
            if state is not None and row["leader_epoch"] is not None:
                app_id = self._app_id(state, "whole")
                self._epochs[app_id] = max(self._epochs.get(app_id, -1), row["leader_epoch"])

    def committed(self, batch: Batch) -> None:
        """From now on the lake says it."""
        self._uncommitted.pop(id(batch), None)

    def health(self) -> Health:
        """What could not be asked, and topics that do not exist."""
        missing = self._view.missing if self._view is not None else ()
        return Health(notes=self._notes, unread=missing, once_fails=True)

    def close(self) -> None:
        """Let go of the connections."""
        self._view = None
        if self._reader is not None:
            self._reader.close()
            self._reader = None


def _readable(state: PartitionState) -> bool:
    return state.earliest_offset is not None and state.latest_offset is not None


def _newer_than(state: PartitionState, records: list[LogRecord]) -> bool:
    asked = state.leader_epoch
    return asked is not None and any((r.leader_epoch or 0) > asked for r in records)


def _bounds(state: PartitionState) -> tuple[int, int]:
    assert state.earliest_offset is not None
    assert state.latest_offset is not None
    return state.earliest_offset, max(state.earliest_offset, state.latest_offset)
