"""The log scanner: reads audited topics itself and says which ids are really in the log.

Whole: every record once; the position of a partition is the next offset. Where a new leader epoch
has replaced what was read, the position goes back to the first record of that epoch. On suspicion:
only the ranges around ids that were promised and not seen (after a whole read too, since only a
look begun after the ack decides), and what was seen before a new leader epoch that may have taken
it; the position is the time of the last look. A topic that was created again has another id, and so
another position. Of topics with transactional producers all is read twice: it says what was
committed.
"""

from __future__ import annotations

import secrets
import time
from collections.abc import Callable, Collection, Iterable, Iterator, Sequence
from datetime import UTC, datetime

import pyarrow as pa
import pyarrow.dataset as ds

from acktrail.audit.wire import Report, row_of_report
from acktrail.contracts.arrow import no_rows, rows
from acktrail.contracts.bronze import AUDIT_REPORTS
from acktrail.contracts.vocabulary import Tier
from acktrail.errors import ConfigError
from acktrail.lake import Lake, Position
from acktrail.settings.sources import LogScanSource, SourceSettings
from ingest.kafka.access import client_config
from ingest.kafka.cluster_view import ClusterView, PartitionState
from ingest.registry import SourceContext
from ingest.source import Batch, Health
from ingest.sources.partition_reader import PartitionReader
from ingest.sources.scan_epochs import NewEpoch, late_ms, seen_before
from ingest.sources.scan_history import ScanHistory
from ingest.sources.scan_plan import COLUMNS, REMEMBERED_MS, Bounds, ScanPlan
from ingest.sources.scan_reports import LogRecord, ScannedRange, scan_reports
from ingest.sources.scan_transactions import TransactionalTopics, offsets_of, outcomes

_NOTE_MS = 600_000
"""How often it is noted up to where everything is decided."""
_PAUSES = 4
"""A round is followed by a pause of so many times its length."""


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
        self._committed_reader: PartitionReader | None = None
        self._transactional = TransactionalTopics()
        self._positions: dict[str, int | None] = {}
        self._epochs: dict[str, int] = {}
        self._once = context.once
        self._settle_ms = int(settings.settle_s * 1000)
        self._settled_id = f"log_scan/{context.cluster}/{settings.name}/settled"
        self._history: ScanHistory
        self._plan: ScanPlan | None = None
        self._read_to: int | None = None
        """The newest receipt that the plan was fed with."""
        self._new_epochs: dict[str, NewEpoch] = {}
        self._next_round = 0.0
        self._after: int | None = None
        self._notes: tuple[str, ...] = ()

    def open(self, lake: Lake) -> None:
        """Connect, as a new reporter."""
        self._lake = lake
        self._reporter = secrets.token_hex(16)
        self._part = 0
        self._positions.clear()
        self._epochs.clear()
        self._new_epochs.clear()
        self._transactional = TransactionalTopics()
        self._history = ScanHistory(lake, self._cluster, self._settings.topics)
        self._plan = ScanPlan(self._settle_ms, self._settings.margin)
        self._read_to = None
        self._view = ClusterView(self._config, 15.0)
        self._reader = PartitionReader(self._config)
        self._next_round = 0.0

    def poll(self, timeout_s: float) -> Iterable[Batch]:  # noqa: ARG002 - one round
        """One round over all partitions when it is due."""
        now = self._clock()
        if now < self._next_round:
            return
        assert self._view is not None, "open() comes first"
        assert self._lake is not None, "open() comes first"
        self._view.notes.clear()
        # First of all: what was received up to here was in the lake before anything is asked.
        self._after = self._lake.receipt(self._cluster)
        states = [s for s in self._view.partitions(self._settings.topics) if _readable(s)]
        self._ask_positions(states)
        if self._settings.mode == "whole":
            for state in states:
                yield from self._rest_of(state)
        if self._after is not None:
            self._take_new()
        yield from self._under_new_epochs(states)
        yield from self._suspected(states)
        for state in states:
            if state.topic in self._transactional.sessions:
                yield from self._ended_transactions(state)
        self._notes = tuple(self._view.notes[:20])
        # Whatever is read again and again, most of the time nothing is read.
        took = self._clock() - now
        self._next_round = now + max(self._settings.interval_s, took * (1 + _PAUSES))

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
            if _newer_than(state, records) or _is_nothing(scan):
                return  # since the cluster was asked, the log changed: the next round knows it
            yield self._batch(scan, records, app_id, scan.end_offset)
            if scan.closed or scan.end_offset == start:
                return
            start = scan.end_offset

    def _unchanged_to(self, state: PartitionState, position: int, mode: str = "whole") -> int:
        """How far what was read is still what is there.

        A log is a prefix of what it was plus what later leaders wrote: records before the first
        one of a newer epoch are as they were read.
        """
        earliest, latest = _bounds(state)
        app_id = self._app_id(state, mode)
        known = self._epochs.get(app_id, -1)
        newest = state.leader_epoch if state.leader_epoch is not None else -1
        position = min(position, latest)
        if known < 0 or newest <= known or position <= earliest:
            return position
        first = self._first_newer(state, known, earliest, position)
        self._epochs[app_id] = newest  # looked at once, whether or not something is read now
        return first

    def _first_newer(self, state: PartitionState, known: int, low: int, high: int) -> int:
        """Where from *low* to *high* the first record of an epoch after *known* is; else *high*."""
        assert self._reader is not None, "open() comes first"
        _, latest = _bounds(state)
        if low < high <= latest:  # mostly nothing was cut, and one record shows it
            last = self._reader.epoch_at(state.topic, state.partition, high - 1, latest)
            if last is not None and last <= known:
                return high
        while low < high:
            middle = (low + high) // 2
            epoch = self._reader.epoch_at(state.topic, state.partition, middle, latest)
            if epoch is None or epoch > known:
                high = middle
            else:
                low = middle + 1
        return low

    # -- on suspicion ---------------------------------------------------------------------------

    def _suspected(self, states: Sequence[PartitionState]) -> Iterator[Batch]:
        """Look at what is open; note how far everything is decided."""
        after = self._after
        if after is None or self._plan is None:
            return  # nobody has reported anything
        bounds = {(s.topic, s.partition): Bounds(*_bounds(s), s.topic_id) for s in states}
        self._history.ask({s.topic: s.topic_id for s in states})
        found = self._plan.suspects(after, bounds, self._history.lowest_end)
        for state in states:
            for suspect in found.get((state.topic, state.partition), ()):
                yield from self._look(state, suspect.first_offset, suspect.last_offset)
        waits = [ms for ms in (self._plan.waits_for(), self._epochs_wait()) if ms is not None]
        waits = [ms for ms in waits if ms > after]
        if states and waits and min(waits) <= int(self._clock() * 1000):
            # Nobody reports any more: the receipt of this look makes the next one late enough.
            yield self._end_of(states[0])
        yield from self._note_settled(self._plan.settled(after))

    def _take_new(self) -> None:
        """Feed the plan with what has come to the lake since it was fed last."""
        assert self._lake is not None, "open() comes first"
        assert self._plan is not None
        if self._read_to is None:
            settled = self._positions.get(self._settled_id)
            self._read_to = 0 if settled is None else max(0, settled - REMEMBERED_MS)
        if self._after is not None and self._after <= self._read_to:
            return
        reports = self._history.reports(self._read_to, COLUMNS)
        self._plan.take(reports)
        self._transactional.take(reports)
        self._read_to = max(
            (r.received_ms for r in reports if r.received_ms is not None), default=self._read_to
        )

    def _note_settled(self, settled: int) -> Iterator[Batch]:
        """Now and then a commit of its own, so that a restart does not read all history again."""
        before = self._positions[self._settled_id]
        if before is None or settled >= before + _NOTE_MS or (self._once and settled > before):
            self._positions[self._settled_id] = settled
            move = Position(self._settled_id, before, settled)
            yield Batch(AUDIT_REPORTS, no_rows(AUDIT_REPORTS), (move,), 0)

    def _end_of(self, state: PartitionState) -> Batch:
        """A look at the end of the log and at nothing else."""
        _, latest = _bounds(state)
        scan, records = self._read(state, latest, latest, latest)
        return self._look_batch(state, scan, records)

    def _look(self, state: PartitionState, first: int, last: int | None) -> Iterator[Batch]:
        earliest, latest = _bounds(state)
        start = min(max(first, earliest), latest)
        end = latest if last is None else min(latest, last + 1)
        while True:
            scan, records = self._read(state, start, end, latest)
            if _newer_than(state, records) or _is_nothing(scan):
                return  # as above
            yield self._look_batch(state, scan, records)
            if scan.end_offset >= end or scan.end_offset == start:
                return
            start = scan.end_offset

    def _look_batch(
        self, state: PartitionState, scan: ScannedRange, records: list[LogRecord]
    ) -> Batch:
        app_id = self._app_id(state, "suspicion")
        before = self._positions[app_id] or 0
        return self._batch(scan, records, app_id, max(scan.ended_ms, before + 1))

    # -- a new leader epoch ---------------------------------------------------------------------

    def _under_new_epochs(self, states: Sequence[PartitionState]) -> Iterator[Batch]:
        """Look again at what was seen before a new epoch that may have begun below it."""
        after = self._after
        fresh = []
        for state in states:
            if state.leader_epoch is None:
                continue
            app_id = self._app_id(state, "epoch")
            if self._positions[app_id] is None:
                yield self._verified(app_id, self._history.first_epoch(state))
            verified = self._positions[app_id] or 0
            new = self._new_epochs.get(app_id)
            if state.leader_epoch <= verified:
                continue
            if after is None:  # nothing was ever seen
                yield self._verified(app_id, state.leader_epoch)
            elif new is None or new.epoch < state.leader_epoch:
                noticed = self._history.noticed(state)
                since = after if noticed is None else min(after, noticed)
                self._new_epochs[app_id] = NewEpoch(verified, state.leader_epoch, since)
                if noticed is None:
                    yield self._end_of(state)  # so that a restart knows since when
            if after is not None and after >= self._new_epochs[app_id].due_ms(self._settle_ms):
                fresh.append((state, app_id))
        if fresh and after is not None:
            reports = self._history.sightings([state for state, _ in fresh])
            for state, app_id in fresh:
                yield from self._check_epoch(state, app_id, reports, after)

    def _check_epoch(
        self, state: PartitionState, app_id: str, reports: Sequence[Report], after: int
    ) -> Iterator[Batch]:
        new = self._new_epochs[app_id]
        earliest, latest = _bounds(state)
        bounds, place = Bounds(earliest, latest, state.topic_id), (state.topic, state.partition)
        late = after >= new.noticed_ms + late_ms(self._settle_ms)
        until = new.noticed_ms + late_ms(self._settle_ms) if late else after
        seen = seen_before(reports, place, state.topic_id, new.epoch, until)
        if seen.highest >= earliest:
            start = self._first_newer(state, new.verified, earliest, min(seen.highest + 1, latest))
            suspect = seen.from_offset(start)
            assert self._plan is not None
            if suspect is not None and not self._plan.is_covered(suspect, place, bounds, new.epoch):
                first = max(0, suspect.first_offset - self._settings.margin)
                yield from self._look(state, first, suspect.last_offset)
                if not self._plan.is_covered(suspect, place, bounds, new.epoch):
                    return  # the log changed meanwhile: the next round tries again
        new.checked = 2 if late else 1
        if late:
            del self._new_epochs[app_id]
            yield self._verified(app_id, new.epoch)

    def _verified(self, app_id: str, epoch: int) -> Batch:
        """Everything seen in the partition has been checked under *epoch*."""
        move = Position(app_id, self._positions[app_id], epoch)
        self._positions[app_id] = epoch
        return Batch(AUDIT_REPORTS, no_rows(AUDIT_REPORTS), (move,), 0)

    def _epochs_wait(self) -> int | None:
        """The receipt by which the first check of a new epoch is due; None: there is none."""
        waits = (new.due_ms(self._settle_ms) for new in self._new_epochs.values())
        return min(waits, default=None)

    # -- transactions ---------------------------------------------------------------------------

    def _ended_transactions(self, state: PartitionState) -> Iterator[Batch]:
        """What of a partition was committed or aborted, up to an end that the log had a while ago.

        So long ago that every session up to there has been heard of.
        """
        earliest, latest = _bounds(state)
        app_id, now_ms = self._app_id(state, "transactions"), int(self._clock() * 1000)
        end = self._transactional.settled_end(app_id, latest, now_ms, self._settle_ms)
        position = self._positions[app_id]
        if position is None:
            place = (state.topic, state.partition)
            position = self._history.lowest_end(place, self._transactional.began_ms[state.topic])
        start = max(earliest, self._unchanged_to(state, position, "transactions"))
        while start < end:
            given, stable = self._read_committed(state, start, end)
            scan, records = self._read(state, start, stable, latest)
            if scan.end_offset <= start or not self._led_as_before(state):
                return  # a transaction is open there, or the log may have changed: the next round
            yield self._batch(scan, records, app_id, scan.end_offset, offsets_of(given))
            start = scan.end_offset

    def _read_committed(
        self, state: PartitionState, start: int, end: int
    ) -> tuple[list[LogRecord], int]:
        if self._committed_reader is None:
            self._committed_reader = PartitionReader(self._config, committed=True)
        place = (state.topic, state.partition)
        return self._committed_reader.read(*place, start, end, self._settings.max_records)

    def _led_as_before(self, state: PartitionState) -> bool:
        """Whether the partition has had one leader since it was asked: nothing was cut off."""
        assert self._view is not None, "open() comes first"
        if state.leader_epoch is None:
            return False
        return any(
            (now.partition, now.topic_id, now.leader_epoch)
            == (state.partition, state.topic_id, state.leader_epoch)
            for now in self._view.partitions([state.topic])
        )

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
            after_ms=self._after,
        )
        return scan, records

    def _batch(
        self,
        scan: ScannedRange,
        records: list[LogRecord],
        app_id: str,
        reached: int,
        given: Collection[int] | None = None,
    ) -> Batch:
        """A scan's reports; where *given* to a reader of committed records, how each ended."""
        reports = scan_reports(scan, records, self._reporter, self._part)
        self._part += len(records) + 1
        if given is not None:
            sessions = self._transactional.sessions[scan.topic]
            made_of = (scan, records, given, sessions, self._reporter, self._part)
            reports += outcomes(*made_of)
            self._part += len(records) + 1
        if scan.leader_epoch is not None:
            self._epochs[app_id] = max(self._epochs.get(app_id, -1), scan.leader_epoch)
        position = Position(app_id, self._positions[app_id], reached)
        self._positions[app_id] = reached
        made = self._rows(reports)
        assert self._plan is not None
        self._plan.take(reports)  # before the lake has them: the next round may come first
        return Batch(AUDIT_REPORTS, made, (position,), made.num_rows)

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
        modes = ("whole", "suspicion", "epoch", "transactions")
        met = {self._app_id(s, mode): s for s in states for mode in modes}
        new = {app_id: state for app_id, state in met.items() if app_id not in self._positions}
        if not new:
            return
        unknown = {*new, self._settled_id} - self._positions.keys()
        self._positions |= self._lake.positions(AUDIT_REPORTS, sorted(unknown))
        if self._settings.mode != "whole":
            return
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
        """Nothing is kept for a batch."""

    def health(self) -> Health:
        """What could not be asked, and topics that do not exist."""
        missing = self._view.missing if self._view is not None else ()
        return Health(notes=self._notes, unread=missing, once_fails=True)

    def close(self) -> None:
        """Let go of the connections."""
        self._view = None
        for reader in (self._reader, self._committed_reader):
            if reader is not None:
                reader.close()
        self._reader = self._committed_reader = None


def _readable(state: PartitionState) -> bool:
    return state.earliest_offset is not None and state.latest_offset is not None


def _newer_than(state: PartitionState, records: list[LogRecord]) -> bool:
    asked = state.leader_epoch
    return asked is not None and any((r.leader_epoch or 0) > asked for r in records)


def _is_nothing(scan: ScannedRange) -> bool:
    """Whether the scan neither covered an offset nor found the end of the log."""
    return scan.end_offset == scan.first_offset and not scan.closed


def _bounds(state: PartitionState) -> tuple[int, int]:
    assert state.earliest_offset is not None
    assert state.latest_offset is not None
    return state.earliest_offset, max(state.earliest_offset, state.latest_offset)
