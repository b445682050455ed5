"""What audits say of a batch that was being retried: which ids can be its, and what became of them.

No report names a batch. But ids are given in the order of creation, and every id is answered,
well or badly, within the delivery timeout of its creation. So the ids of a batch that was retried
at some moment lie in a range: not those created so long before that their time was over, and not
those created after it. If all of that range went one way, so did the batch; if any id of it has no
outcome yet, or some went either way, nothing is said.

A reporter that sees sends dates them; VerifiableProducer's lines tell of an id only when it is
answered, so it is bounded by its answers alone, and its range is complete only once the time of
every batch of then is over.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from functools import cached_property

import numpy as np
import numpy.typing as npt

from acktrail.audit.intervals import Coverage, Range
from acktrail.audit.wire import BLOCK_BITS, Report, decode_runs
from acktrail.contracts.vocabulary import PRODUCER_TIERS, Tier

LATE_MS = 10_000
"""How long after its time was over a client may be told, at most."""

ACKED = frozenset({Tier.ACKED, Tier.ACKED_NO_OFFSET})
FAILED = frozenset({Tier.FAILED, Tier.INDETERMINATE})
OUTCOMES = frozenset(PRODUCER_TIERS) - {Tier.SENT, Tier.COMMITTED}
SESSION_TIERS = frozenset({*PRODUCER_TIERS, Tier.HEARTBEAT})
"""What is read of a session: the rest is reported by others than its producer."""

_MINUTE_MS = 60_000
_MOST_KEYS = 5


@dataclass(frozen=True)
class Retried:
    """A batch that was being retried at *at_ms*; an empty topic is any, partition -1 unknown."""

    at_ms: int
    timeout_ms: int
    """Every batch of the client is answered within this time of its creation."""
    topic: str = ""
    partition: int = -1

    @property
    def over_ms(self) -> int:
        """By now it is answered, and the client was told."""
        return self.at_ms + self.timeout_ms + LATE_MS

    @property
    def since_ms(self) -> int:
        """What was created before this was over when it was retried."""
        return self.at_ms - self.timeout_ms - LATE_MS


@dataclass(frozen=True)
class Fates:
    """What became of all ids that can be a batch's: records by outcome, and what says so."""

    acked: int = 0
    failed: int = 0
    other: int = 0
    """Neither: sent without asking for an answer, or part of an aborted transaction."""
    until_ms: int = 0
    """The last of them was told by then."""
    evidence: tuple[str, ...] = ()

    def __add__(self, more: Fates) -> Fates:
        return Fates(
            self.acked + more.acked,
            self.failed + more.failed,
            self.other + more.other,
            max(self.until_ms, more.until_ms),
            (*self.evidence, *more.evidence)[:_MOST_KEYS],
        )


class Audits:
    """The reports of one client's sessions; in any order, and however often each came."""

    def __init__(self, reports: Iterable[Report] = ()) -> None:
        by_place: dict[tuple[str, str], list[Report]] = defaultdict(list)
        for report in reports:
            by_place[report.session, report.topic].append(report)
        self._trails = [Trail(by_place[place]) for place in sorted(by_place)]

    def became(self, batch: Retried) -> Fates | None:
        """What became of every id that can be of *batch*; None while that is not known."""
        found = Fates()
        for trail in self._of(batch):
            fates = trail.became(batch)
            if fates is None:
                return None
            found += fates
        return found if found.evidence else None

    def in_doubt(self, batch: Retried, last_ms: int) -> int | None:
        """Records handed over and not answered, by the report next before *last_ms*.

        By the first one after it where there is none since the batch was retried; None where no
        reporter sees sends.
        """
        counts = [trail.in_doubt(batch, last_ms) for trail in self._of(batch)]
        known = [count for count in counts if count is not None]
        return sum(known) if known else None

    def _of(self, batch: Retried) -> list[Trail]:
        """The sessions that were alive then and wrote to the topic."""
        return [t for t in self._trails if batch.topic in ("", t.topic) and t.lived(batch)]


class Trail:
    """What was reported of one session and topic."""

    def __init__(self, reports: Sequence[Report]) -> None:
        self.topic = reports[0].topic
        beats = [r for r in reports if r.tier is Tier.HEARTBEAT]
        self._reported: dict[tuple[int, int], tuple[Coverage, Coverage]] = {}
        self._sent = [r for r in reports if r.tier is Tier.SENT and r.ids]
        self._told = [r for r in reports if r.tier in OUTCOMES and r.ids]
        self._beats_ms = sorted({r.reported_ms for r in beats})
        self._closed_ms = min((r.reported_ms for r in beats if r.closed), default=None)
        seeing = {r.reporter for r in self._sent if r.began_ms is not None}
        self._sees_sends = bool(seeing)
        chosen = [r for r in beats if r.reporter in seeing] or beats
        self._minutes = sorted(
            {p for r in chosen for p in zip(r.minutes[::2], r.minutes[1::2], strict=False)}
        )

    def lived(self, batch: Retried) -> bool:
        """Whether the session can have held a batch that was retried then."""
        if not self._beats_ms:
            return False  # nothing says how much of it was reported
        if self._closed_ms is not None:
            return self._closed_ms >= batch.at_ms
        return self._beats_ms[-1] >= batch.since_ms

    def became(self, batch: Retried) -> Fates | None:
        """What became of the ids in this session that can be of *batch*; None: not known."""
        first = self._first_id(batch)
        end = self._first_id_after(batch)
        if first is None or (end is None and not self._knows_all(batch)):
            return None
        last = self._known if end is None else end - 1
        if self._settled.missing(first, last):
            return None
        parts = self._outcomes
        here = (parts.highest >= first) & (parts.lowest <= last) & (parts.ended >= batch.at_ms)
        if batch.partition >= 0:
            here &= (parts.partition < 0) | (parts.partition == batch.partition)
        return parts.fates(here)

    def in_doubt(self, batch: Retried, last_ms: int) -> int | None:
        """Ids handed over and not answered, as reported; None where sends are not seen."""
        first = self._first_id(batch)
        within = [ms for ms in self._beats_ms if batch.at_ms <= ms <= batch.over_ms]
        if not self._sees_sends or first is None or not within:
            return None
        asked = max((ms for ms in within if ms <= last_ms), default=within[0])
        told, sent = self._as_reported(asked, batch.partition)
        ranges = zip(sent.firsts.tolist(), sent.lasts.tolist(), strict=True)
        return sum(told.missing(max(first, begin), last) for begin, last in ranges)

    def _as_reported(self, asked_ms: int, partition: int) -> tuple[Coverage, Coverage]:
        """The ids answered, and those handed over (to *partition*, where known), by then."""
        key = (asked_ms, partition)
        if key not in self._reported:
            told = _ranges(r for r in self._told if r.reported_ms <= asked_ms)
            sent = _ranges(
                r
                for r in self._sent
                if r.reported_ms <= asked_ms
                and (-1 in (partition, r.partition) or partition == r.partition)
            )
            self._reported[key] = (Coverage(told), Coverage(sent))
        return self._reported[key]

    def _knows_all(self, batch: Retried) -> bool:
        """Whether every id that was created by then must have been reported."""
        if self._closed_ms is not None:
            return True
        needed = batch.at_ms if self._sees_sends else batch.over_ms
        return self._beats_ms[-1] > needed

    def _first_id(self, batch: Retried) -> int | None:
        """The lowest id that may still have been open then."""
        before = [
            seq for minute, seq in self._minutes if (minute + 1) * _MINUTE_MS <= batch.since_ms
        ]
        if before:
            return max(before)
        return min((seq for _, seq in self._minutes), default=None)

    def _first_id_after(self, batch: Retried) -> int | None:
        """The lowest id known to be created after the batch was retried."""
        after = self._outcomes.begun_after(batch.over_ms)
        if self._sees_sends:
            after += self._sends.begun_after(batch.at_ms)
            after += [seq for minute, seq in self._minutes if minute * _MINUTE_MS > batch.at_ms]
        return min(after, default=None)

    @cached_property
    def _outcomes(self) -> _Parts:
        """The newest report of each part that has outcomes."""
        newest: dict[tuple[object, ...], Report] = {}
        for r in self._told:
            place = (r.reporter, r.tier, r.partition, r.block, r.part)
            if place not in newest or newest[place].number < r.number:
                newest[place] = r
        return _Parts(newest.values())

    @cached_property
    def _sends(self) -> _Parts:
        return _Parts(self._sent)

    @cached_property
    def _settled(self) -> Coverage:
        return Coverage(_ranges(self._told))

    @cached_property
    def _known(self) -> int:
        """The highest id ever named: all below it were handed over."""
        first_of_minutes = [seq for _, seq in self._minutes]
        return max(self._outcomes.known, self._sends.known, *first_of_minutes, -1)


class _Parts:
    """Reports with ids as columns: one row for each, by the time they end."""

    def __init__(self, reports: Iterable[Report]) -> None:
        ordered = sorted(reports, key=lambda r: (_ended_ms(r), key_of(r)))
        spans = [(r, found) for r in ordered if (found := _ranges([r]))]
        self._reports = [r for r, _ in spans]
        self.lowest = _longs(min(first for first, _ in found) for _, found in spans)
        self.highest = _longs(max(last for _, last in found) for _, found in spans)
        self.partition = _longs(r.partition for r in self._reports)
        self.began = _longs(-1 if r.began_ms is None else r.began_ms for r in self._reports)
        self.ended = _longs(_ended_ms(r) for r in self._reports)
        self._count = _longs(sum(last - first + 1 for first, last in f) for _, f in spans)
        self._acked = np.array([r.tier in ACKED for r in self._reports], bool)
        self._failed = np.array([r.tier in FAILED for r in self._reports], bool)

    @property
    def known(self) -> int:
        """The highest id named; -1 for none."""
        return int(self.highest.max(initial=-1))

    def begun_after(self, ms: int) -> list[int]:
        """The lowest id of all that began after *ms*, if there is any."""
        found = self.lowest[self.began > ms]
        return [int(found.min())] if found.size else []

    def fates(self, here: npt.NDArray[np.bool_]) -> Fates:
        """The parts chosen, summed up."""
        acked, failed = here & self._acked, here & self._failed
        latest = np.flatnonzero(here)[-_MOST_KEYS:].tolist()
        return Fates(
            acked=int(self._count[acked].sum()),
            failed=int(self._count[failed].sum()),
            other=int(self._count[here & ~acked & ~failed].sum()),
            until_ms=int(self.ended[here].max(initial=0)),
            evidence=tuple(key_of(self._reports[n]) for n in latest),
        )


def key_of(report: Report) -> str:
    """What a report is called as evidence."""
    place = f"{report.topic}-{report.partition}/{report.tier.value}"
    return f"audit/{report.session}/{place}/{report.block}.{report.part}.{report.number}"


def _ranges(reports: Iterable[Report]) -> list[Range]:
    """The ids of *reports*, as numbers of the session; what is not a run list is left out."""
    found = []
    for report in reports:
        try:
            runs = decode_runs(report.ids or b"")
        except ValueError:
            continue
        firsts = runs.starts + (report.block << BLOCK_BITS)
        lasts = firsts + runs.lengths - 1
        found += list(zip(firsts.tolist(), lasts.tolist(), strict=True))
    return found


def _ended_ms(report: Report) -> int:
    return report.reported_ms if report.ended_ms is None else report.ended_ms


def _longs(values: Iterable[int]) -> npt.NDArray[np.int64]:
    return np.array(list(values), np.int64)
