"""Which offsets are worth a look: those around ids that were promised and that nobody has seen.

Pure: from rows of `audit_reports` to ranges.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from acktrail.audit.wire import BLOCK_IDS, Report, bitmap_of, decode_runs, report_of_row
from acktrail.contracts.vocabulary import Tier
from acktrail.kafka_defaults import DELIVERY_TIMEOUT_MS, REPLICA_LAG_MS

_SEEN = (Tier.IN_LOG, Tier.DELIVERED)
_UNPLACED = (Tier.ACKED_NO_OFFSET, Tier.INDETERMINATE, Tier.SENT_UNACKED, Tier.SENT, Tier.FAILED)
_DELIVERY_TIMEOUTS = ("delivery.timeout.ms", "message.timeout.ms")

Place = tuple[str, int]
"""Topic and partition."""
COLUMNS = (
    *("reporter", "session", "topic", "partition", "tier", "group", "block", "part", "number"),
    *("first_offset", "last_offset", "records", "ids", "began_at", "ended_at", "closed"),
    *("settings", "reported_at"),
)
"""What is read of `audit_reports` to decide."""


@dataclass(frozen=True)
class Suspect:
    """A range to read, and since when its ids are due: only a look begun later decides."""

    first_offset: int
    last_offset: int | None
    """None: to the end of the log."""
    due_ms: int


@dataclass
class _Block:
    """All that is known of one block of ids of one session and topic."""

    seen: Any = field(default_factory=lambda: np.zeros(BLOCK_IDS, bool))
    placed: Any = field(default_factory=lambda: np.zeros(BLOCK_IDS, bool))
    promises: list[Report] = field(default_factory=list)
    unplaced: list[Report] = field(default_factory=list)


@dataclass
class _Gathered:
    blocks: dict[tuple[str, str, int], _Block] = field(default_factory=lambda: defaultdict(_Block))
    scans: dict[Place, list[Report]] = field(default_factory=lambda: defaultdict(list))
    began: dict[tuple[str, str], int] = field(default_factory=dict)
    patience: dict[str, int] = field(default_factory=dict)
    """Delivery timeout by session, where its settings say."""


def suspects(
    rows: Iterable[Mapping[str, Any]],
    ends: Mapping[Place, Sequence[tuple[int, int]]],
    now_ms: int,
    settle_ms: int,
    margin: int,
) -> dict[Place, list[Suspect]]:
    """The ranges to read now, by partition.

    An acked id with an offset: from the first offset of its report to *margin* behind its own. An
    id without one: every partition, from where it ended when the session began. Only what has
    settled, and only what no scan begun after that has covered. *ends* are the partitions of the
    topics, with (time, end of the log) as the cluster told them.
    """
    got = _gather(report_of_row(row) for row in rows)
    found: dict[Place, list[Suspect]] = defaultdict(list)
    for (session, topic, _), block in got.blocks.items():
        for report in block.promises:
            due = _told_at(report) + settle_ms
            for first, last in _missing_offsets(report, block) if due <= now_ms else ():
                begin = min(first - margin, report.first_offset or 0)
                found[topic, report.partition].append(Suspect(max(0, begin), last + margin, due))
        patience = got.patience.get(session, DELIVERY_TIMEOUT_MS) + REPLICA_LAG_MS
        for report in block.unplaced:
            due = _told_at(report) + max(settle_ms, patience)
            if due > now_ms or not _is_missing(report, block):
                continue
            for place in _places(report, ends):
                begin = _lowest_offset(ends[place], got.began.get((session, topic)))
                found[place].append(Suspect(begin, None, due))
    return {
        place: merged
        for place, listed in found.items()
        if (merged := _merged([s for s in listed if not _covered(s, got.scans[place])]))
    }


def _gather(reports: Iterable[Report]) -> _Gathered:
    got = _Gathered()
    for report in reports:
        if report.tier is Tier.SCANNED:
            got.scans[report.topic, report.partition].append(report)
        elif report.ids is not None:
            _take(report, got.blocks[report.session, report.topic, report.block])
            if report.began_ms is not None:
                key = (report.session, report.topic)
                got.began[key] = min(report.began_ms, got.began.get(key, report.began_ms))
        elif report.tier is Tier.HEARTBEAT:
            for name in _DELIVERY_TIMEOUTS:
                if report.settings.get(name, "").isdigit():
                    got.patience[report.session] = int(report.settings[name])
    return got


def _take(report: Report, block: _Block) -> None:
    if report.tier in _SEEN:
        block.seen |= _bits(report)
    elif report.tier is Tier.ACKED:
        block.placed |= _bits(report)
        block.promises.append(report)
    elif report.tier in _UNPLACED:
        block.unplaced.append(report)


def _bits(report: Report) -> Any:
    assert report.ids is not None
    return np.unpackbits(bitmap_of(report.ids), bitorder="little").astype(bool)


def _told_at(report: Report) -> int:
    return report.reported_ms if report.ended_ms is None else report.ended_ms


def _missing_offsets(report: Report, block: _Block) -> Iterable[tuple[int, int]]:
    """Offsets of the ids in *report* that nobody has seen, as ranges."""
    assert report.ids is not None
    runs = decode_runs(report.ids)
    if runs.offsets is None:
        return
    for start, length, offset in zip(
        runs.starts.tolist(), runs.lengths.tolist(), runs.offsets.tolist(), strict=True
    ):
        unseen = np.flatnonzero(~block.seen[start : start + length])
        if unseen.size:
            yield offset + int(unseen[0]), offset + int(unseen[-1])


def _is_missing(report: Report, block: _Block) -> bool:
    return bool((_bits(report) & ~block.seen & ~block.placed).any())


def _places(report: Report, ends: Mapping[Place, Any]) -> list[Place]:
    if report.partition >= 0:
        return (
            [(report.topic, report.partition)] if (report.topic, report.partition) in ends else []
        )
    return [place for place in ends if place[0] == report.topic]


def _lowest_offset(told: Sequence[tuple[int, int]], began_ms: int | None) -> int:
    """No record of a session lies below the log's end when it began, or a lower end since."""
    before = [at for at, _ in told if began_ms is not None and at < began_ms]
    if not before:
        return 0
    return min(end for at, end in told if at >= max(before))


def _covered(suspect: Suspect, scans: Iterable[Report]) -> bool:
    """Whether scans begun after it was due have read all of it, without a gap."""
    at, to_the_end = suspect.first_offset, False
    fresh = [s for s in scans if (s.began_ms or 0) >= suspect.due_ms]
    for scan in sorted(fresh, key=lambda s: (s.first_offset or 0, s.last_offset or 0)):
        first, last = scan.first_offset, scan.last_offset
        if first is None or last is None or first > at:
            continue
        at = max(at, last + 1)
        to_the_end = to_the_end or scan.closed
    return to_the_end or (suspect.last_offset is not None and at > suspect.last_offset)


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
