"""Which offsets are worth a look: those around ids that were promised and that nobody has seen.

Pure, and fed with rows of `audit_reports` as they come, each row once or more often: a round costs
what is new and what is still open. Order is that of receipts: a look proves something about a
report that was received before the look began (docs/decisions/0012-order-of-receipt.md).
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass, field

import numpy as np

from acktrail.audit.send_errors import precedes_sending
from acktrail.audit.topic_evidence import REPORT_DELAY_MS, SessionEvidence
from acktrail.audit.wire import BITMAP_BYTES, Report, bitmap_of, decode_runs
from acktrail.audit.wire.run_lists import Bitmap, Runs
from acktrail.contracts.vocabulary import PRODUCER_TIERS, Tier
from acktrail.kafka_defaults import REPLICA_LAG_MS

_SEEN = (Tier.IN_LOG, Tier.DELIVERED)
_UNPLACED = (Tier.ACKED_NO_OFFSET, Tier.INDETERMINATE, Tier.SENT_UNACKED, Tier.SENT, Tier.FAILED)
REMEMBERED_MS = 3_600_000
"""So long ids that were seen are remembered without a promise; a later promise is looked at."""
GIVEN_UP_MS = 7 * 24 * 3_600_000
"""Promises that no look could decide for so long are no longer looked at after a restart."""

Place = tuple[str, int]
"""Topic and partition."""
COLUMNS = (
    *("reporter", "session", "topic", "topic_id", "partition", "tier", "group", "block", "part"),
    *("number", "first_offset", "last_offset", "leader_epoch", "records", "ids", "began_at"),
    *("ended_at", "closed", "exited", "errors", "settings", "reported_at", "after_at", "read_at"),
)
"""What is read of `audit_reports` to decide."""


@dataclass(frozen=True)
class Bounds:
    """One partition as the cluster described it."""

    earliest: int
    latest: int
    topic_id: str | None = None


@dataclass(frozen=True)
class Suspect:
    """A range to read; a look decides if it began after the receipt *due_ms*."""

    first_offset: int
    last_offset: int | None
    """None: to the end of the log."""
    due_ms: int


@dataclass(frozen=True)
class Look:
    """What one scan has covered."""

    first: int
    end: int
    """The offset after the last one."""
    after_ms: int
    closed: bool
    epoch: int | None
    topic_id: str | None


@dataclass
class _Session:
    """What is known of a producer instance."""

    first_received: int | None = None
    last_received: int = 0
    ended: int | None = None
    """The receipt of the proof that it has ended."""
    settings: dict[str, str] = field(default_factory=dict)

    @property
    def longest_send_ms(self) -> int:
        return SessionEvidence(settings=self.settings).longest_send_ms

    @property
    def client(self) -> tuple[str, str] | None:
        """Client id and host; None where one of them is not known."""
        found = self.settings.get("client_id", ""), self.settings.get("host", "")
        return found if all(found) else None


@dataclass
class _Open:
    """A report with ids that nobody may have seen."""

    report: Report
    runs: Runs
    bits: Bitmap
    received_ms: int


def _none() -> Bitmap:
    return np.zeros(BITMAP_BYTES, np.uint8)


@dataclass
class _Block:
    """What is known of one block of ids of one session and topic."""

    seen: Bitmap = field(default_factory=_none)
    placed: Bitmap = field(default_factory=_none)
    told: Bitmap = field(default_factory=_none)
    """Ids that were acked or have failed: more than handed over."""
    promises: list[_Open] = field(default_factory=list)
    unplaced: list[_Open] = field(default_factory=list)
    heard_ms: int = 0


class ScanPlan:
    """What is open, and what has been looked at."""

    def __init__(self, settle_ms: int, margin: int) -> None:
        self._settle = settle_ms
        self._margin = margin
        self._blocks: dict[tuple[str, str, int], _Block] = defaultdict(_Block)
        self._looks: dict[Place, set[Look]] = defaultdict(set)
        self._sessions: dict[str, _Session] = defaultdict(_Session)
        self._began: dict[tuple[str, str], int] = {}
        self._waits: list[int] = []

    def take(self, reports: Iterable[Report]) -> None:
        """More evidence, in any order."""
        for report in reports:
            if report.tier is Tier.SCANNED:
                if (look := look_of(report)) is not None:
                    self._looks[report.topic, report.partition].add(look)
                continue
            if report.session:
                self._hear(report)
            if report.ids is not None:
                self._take_ids(report)

    def _hear(self, report: Report) -> None:
        received = report.received_ms
        if report.began_ms is not None:
            key = (report.session, report.topic)
            self._began[key] = min(report.began_ms, self._began.get(key, report.began_ms))
        if received is None or report.tier in _SEEN:
            return
        session = self._sessions[report.session]
        first = session.first_received
        session.first_received = received if first is None else min(first, received)
        session.last_received = max(session.last_received, received)
        session.settings |= report.settings
        if report.tier is Tier.HEARTBEAT and (report.closed or report.exited):
            ended = session.ended
            session.ended = received if ended is None else min(ended, received)

    def _take_ids(self, report: Report) -> None:
        assert report.ids is not None
        block = self._blocks[report.session, report.topic, report.block]
        block.heard_ms = max(block.heard_ms, report.received_ms or 0)
        bits = bitmap_of(report.ids)
        if report.tier in _SEEN:
            block.seen = block.seen | bits
            return
        if report.tier not in PRODUCER_TIERS or report.received_ms is None:
            return
        one = _Open(report, decode_runs(report.ids), bits, report.received_ms)
        if report.tier is not Tier.SENT:
            block.told = block.told | bits
        if report.tier is Tier.ACKED:
            block.placed = block.placed | bits
            block.promises.append(one)
        elif report.tier is Tier.FAILED and report.errors and _precede_sending(report):
            block.placed = block.placed | bits  # it cannot be in the log
        elif report.tier in _UNPLACED:
            block.unplaced.append(one)

    # -- what to read ---------------------------------------------------------------------------

    def suspects(
        self,
        after_ms: int,
        partitions: Mapping[Place, Bounds],
        lowest_end: Callable[[Place, int | None], int],
    ) -> dict[Place, list[Suspect]]:
        """The ranges to read now, by partition; what has been decided is forgotten.

        An acked id with an offset: from the first offset of its report to a margin behind its own,
        once the report was received before *after_ms* by the time to settle. An id without one:
        every partition, from *lowest_end*, where its log ended when the session began.
        """
        found: dict[Place, list[Suspect]] = defaultdict(list)
        ends = self._session_ends()
        self._waits = []
        for key, block in list(self._blocks.items()):
            session, topic, _ = key
            block.promises = [
                one
                for one in _unique(block.promises)
                if self._promise_is_open(one, block, after_ms, partitions, found)
            ]
            begun = self._begun(session, topic)
            block.unplaced = [
                one
                for one in _unique(block.unplaced)
                if self._unplaced_is_open(
                    one, block, after_ms, partitions, found, (ends.get(session), begun, lowest_end)
                )
            ]
            idle = not block.promises and not block.unplaced
            if idle and block.heard_ms < after_ms - REMEMBERED_MS:
                del self._blocks[key]
        self._forget(after_ms)
        return {place: _merged(listed) for place, listed in found.items() if listed}

    def _promise_is_open(
        self,
        one: _Open,
        block: _Block,
        after_ms: int,
        partitions: Mapping[Place, Bounds],
        found: dict[Place, list[Suspect]],
    ) -> bool:
        missing = one.bits & ~block.seen
        place = (one.report.topic, one.report.partition)
        if not missing.any():
            return False
        bounds = partitions.get(place)
        if bounds is None:
            return True  # its partition could not be asked for now
        if _is_another(one.report.topic_id, bounds.topic_id):
            return False
        open_ranges = [
            suspect
            for first, last in _offsets_of(one.runs, missing)
            if not self.is_covered(suspect := self._around(one, first, last), place, bounds)
        ]
        if after_ms >= one.received_ms + self._settle:
            found[place] += open_ranges
        elif open_ranges:
            self._waits.append(one.received_ms + self._settle)
        return bool(open_ranges)

    def _around(self, one: _Open, first: int, last: int) -> Suspect:
        begin = first - self._margin
        if one.report.first_offset is not None:
            begin = min(begin, one.report.first_offset)
        return Suspect(max(0, begin), last + self._margin, one.received_ms)

    def _unplaced_is_open(
        self,
        one: _Open,
        block: _Block,
        after_ms: int,
        partitions: Mapping[Place, Bounds],
        found: dict[Place, list[Suspect]],
        about: tuple[int | None, int | None, Callable[[Place, int | None], int]],
    ) -> bool:
        ended, begun, lowest_end = about
        known = block.seen | block.placed
        handed_over = one.report.tier is Tier.SENT
        if not (one.bits & ~(known | block.told if handed_over else known)).any():
            return False
        patience = self._sessions[one.report.session].longest_send_ms
        wait = max(self._settle, REPLICA_LAG_MS)
        if not handed_over:
            due = one.received_ms + wait
        elif ended is not None:
            due = max(ended, self._sessions[one.report.session].last_received) + wait
        else:
            due = one.received_ms + patience + wait
        # Of a session that has not ended, a look can find ids, and shows no loss: it stays open.
        is_open = handed_over and ended is None
        for place in _places(one.report, partitions):
            if _is_another(one.report.topic_id, partitions[place].topic_id):
                continue
            if after_ms < due:
                is_open = True
                self._waits.append(due)
                continue
            suspect = Suspect(lowest_end(place, begun), None, due)
            if not self.is_covered(suspect, place, partitions[place]):
                is_open = True
                found[place].append(suspect)
        return is_open

    def is_covered(
        self, suspect: Suspect, place: Place, bounds: Bounds, epoch: int | None = None
    ) -> bool:
        """Whether looks begun late enough (and under *epoch*) have read all that is there of it."""
        at = max(suspect.first_offset, bounds.earliest)
        if suspect.last_offset is not None and suspect.last_offset < bounds.earliest:
            return True  # retention has taken it
        fresh = sorted(
            (
                s
                for s in self._looks.get(place, ())
                if s.after_ms >= suspect.due_ms
                and not _is_another(s.topic_id, bounds.topic_id)
                and (epoch is None or (s.epoch is not None and s.epoch >= epoch))
            ),
            key=lambda s: (s.first, s.end),
        )
        for look in fresh:
            if look.first <= at:
                at = max(at, look.end)
        return (suspect.last_offset is not None and at > suspect.last_offset) or any(
            s.closed and s.end <= at for s in fresh
        )

    # -- what is kept ---------------------------------------------------------------------------

    def waits_for(self) -> int | None:
        """The receipt by which more can be decided, as of the last round; None: nothing waits."""
        return min(self._waits, default=None)

    def settled(self, after_ms: int) -> int:
        """Everything received up to here is decided, or given up."""
        received = (
            one.received_ms
            for block in self._blocks.values()
            for one in (*block.promises, *block.unplaced)
        )
        return max(min(received, default=after_ms + 1) - 1, after_ms - GIVEN_UP_MS)

    def _forget(self, after_ms: int) -> None:
        """Looks and sessions that no open report needs."""
        oldest = self.settled(after_ms)
        for place, looks in self._looks.items():
            self._looks[place] = {s for s in looks if s.after_ms >= oldest - REMEMBERED_MS}
        limit = after_ms - GIVEN_UP_MS
        for name in [n for n, s in self._sessions.items() if s.last_received < limit]:
            del self._sessions[name]
            for key in [k for k in self._began if k[0] == name]:
                del self._began[key]

    def _session_ends(self) -> dict[str, int]:
        """The sessions that have ended, and by which receipt that is proven."""
        ends = {name: s.ended for name, s in self._sessions.items() if s.ended is not None}
        starts: dict[tuple[str, str], list[int]] = defaultdict(list)
        for session in self._sessions.values():
            if session.client is not None and session.first_received is not None:
                starts[session.client].append(session.first_received)
        for name, session in self._sessions.items():
            if name not in ends and session.client is not None:
                later = [ms for ms in starts[session.client] if ms > session.last_received]
                if later:
                    ends[name] = min(later)
        return ends

    def _begun(self, session: str, topic: str) -> int | None:
        about = self._sessions.get(session)
        first = None if about is None else about.first_received
        known = [ms for ms in (self._began.get((session, topic)), first) if ms is not None]
        if about is None or not known:
            return None
        return min(known) - min(about.longest_send_ms, REPORT_DELAY_MS)


def look_of(report: Report) -> Look | None:
    """What a `scanned` report covers; None where it is not known when the scan began."""
    first, last, after = report.first_offset, report.last_offset, report.after_ms
    if first is None or last is None or after is None:
        return None
    return Look(first, last + 1, after, report.closed, report.leader_epoch, report.topic_id)


def _precede_sending(report: Report) -> bool:
    return all(precedes_sending(name) for name in report.errors)


def _is_another(topic_id: str | None, now: str | None) -> bool:
    """Whether it is about a topic of the same name that is no longer there."""
    return bool(topic_id) and bool(now) and topic_id != now


def _unique(listed: list[_Open]) -> Iterator[_Open]:
    """Each report once: rows may be taken more than once."""
    seen = set()
    for one in listed:
        key = (one.report.reporter, one.report.tier, one.report.partition, one.report.part)
        if (*key, one.received_ms, one.report.number) not in seen:
            seen.add((*key, one.received_ms, one.report.number))
            yield one


def _offsets_of(runs: Runs, wanted: Bitmap) -> Iterator[tuple[int, int]]:
    """The offsets of the *wanted* ids of each run, as a range."""
    if runs.offsets is None:
        return
    mask = np.unpackbits(wanted, bitorder="little")
    for start, length, offset in zip(
        runs.starts.tolist(), runs.lengths.tolist(), runs.offsets.tolist(), strict=True
    ):
        ids = np.flatnonzero(mask[start : start + length])
        if ids.size:
            yield offset + int(ids[0]), offset + int(ids[-1])


def _places(report: Report, partitions: Mapping[Place, Bounds]) -> list[Place]:
    if report.partition >= 0:
        place = (report.topic, report.partition)
        return [place] if place in partitions else []
    return [place for place in partitions if place[0] == report.topic]


def _merged(listed: list[Suspect]) -> list[Suspect]:
    """Ranges that touch as one; one without an end takes all behind it."""
    merged: list[Suspect] = []
    for one in sorted(listed, key=lambda s: s.first_offset):
        before = merged[-1] if merged else None
        if before is None or (
            before.last_offset is not None and one.first_offset > before.last_offset + 1
        ):
            merged.append(one)
            continue
        ends = (before.last_offset, one.last_offset)
        last = None if None in ends else max(e for e in ends if e is not None)
        merged[-1] = Suspect(before.first_offset, last, max(before.due_ms, one.due_ms))
    return merged
