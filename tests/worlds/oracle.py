"""A naive judge: one message at a time, in plain Python, straight from the rules' text."""
# ruff: noqa: PLR0911

from __future__ import annotations

from dataclasses import dataclass
from functools import cache

from acktrail.audit.wire import Report
from acktrail.contracts.vocabulary import Tier
from tests.worlds.world import LAG_MS, CommitRow, Evidence, StateRow

TIMEOUT_MS = 8_000


@dataclass(frozen=True)
class Seen:
    """One id in one part."""

    tier: Tier
    group: str
    partition: int
    offset: int | None
    began: int
    ended: int
    epoch: int | None
    first_offset: int | None
    part: tuple[str, int]


def decoded(text: bytes) -> list[tuple[int, int | None]]:
    """Ids and offsets of a run list, one byte after the other."""
    numbers, value, shift = [], 0, 0
    for byte in text[1:]:
        value |= (byte & 0x7F) << shift
        shift += 7
        if byte < 0x80:
            numbers.append(value)
            value = shift = 0
    found: list[tuple[int, int | None]] = []
    at = offset = 0
    width = 3 if text[0] == 2 else 2
    for i in range(0, len(numbers), width):
        at += numbers[i]
        if width == 3:
            zigzag = numbers[i + 2]
            offset += (zigzag >> 1) if zigzag % 2 == 0 else -((zigzag + 1) >> 1)
        for _ in range(numbers[i + 1] + 1):
            found.append((at, offset if width == 3 else None))
            at += 1
            offset += 1
    return found


class Oracle:
    """Judges every id of one session."""

    def __init__(self, evidence: Evidence, session: str) -> None:
        self.evidence = evidence
        newest: dict[tuple, Report] = {}
        for r in evidence.reports:
            key = (r.reporter, r.session, r.partition, r.tier, r.group, r.block, r.part)
            if key not in newest or r.number > newest[key].number:
                newest[key] = r
        self.rows = list(newest.values())
        self.beats = [
            r for r in evidence.reports if r.tier is Tier.HEARTBEAT and r.session == session
        ]
        self.scans = [r for r in self.rows if r.tier is Tier.SCANNED]
        self.seen: dict[int, list[Seen]] = {}
        self.parts = [r for r in self.rows if r.session == session and r.ids is not None]
        for r in self.parts:
            for seq, offset in decoded(r.ids):
                self.seen.setdefault(seq, []).append(
                    Seen(
                        r.tier, r.group, r.partition, offset, r.began_ms, r.ended_ms,
                        r.leader_epoch, r.first_offset, (r.reporter, r.part),
                    )
                )  # fmt: skip
        self.partitions = sorted(
            {s.partition for s in evidence.states} | {r.partition for r in self.scans}
        )
        self.closed = any(b.closed for b in self.beats)
        self.timeout = 0 if self.closed else (TIMEOUT_MS if self.beats else 120_000)
        self.longest = TIMEOUT_MS if self.beats else 120_000
        began = min((r.began_ms for r in self.parts), default=None)
        self.stored_after = None if began is None else began - self.longest
        producer = (Tier.IN_LOG, Tier.DELIVERED)
        times = [r.ended_ms for r in self.parts if r.tier not in producer]
        times += [b.reported_ms for b in self.beats]
        self.last = max(times, default=None)

    def states(self, partition: int) -> list[StateRow]:
        found = [s for s in self.evidence.states if s.partition == partition]
        return sorted(found, key=lambda s: (s.at_ms, s.epoch, s.latest))

    def ids(self) -> range:
        return range(max(self.seen, default=-1) + 1)

    # -- is it in the log? -----------------------------------------------------------------------

    def in_log(self, seq: int) -> list[Seen]:
        kinds = (Tier.IN_LOG, Tier.DELIVERED)
        return [s for s in self.seen.get(seq, []) if s.tier in kinds and not self.void(seq, s)]

    def void(self, seq: int, s: Seen) -> bool:
        later = [a for a in self.states(s.partition) if a.at_ms >= s.ended]
        if later:
            bound = later[0].epoch if s.epoch is None else s.epoch
            if any(a.epoch > bound and a.latest <= s.offset for a in later):
                return True
        if self.evidence.compacted:
            return False
        reread = any(
            r.began_ms > s.ended and r.first_offset <= s.offset <= r.last_offset
            for r in self.scans
            if r.partition == s.partition
        )
        again = any(
            o.tier is Tier.IN_LOG and o.partition == s.partition and o.began > s.ended
            for o in self.seen[seq]
        )
        return reread and not again

    # -- if not, why? ----------------------------------------------------------------------------

    @cache  # noqa: B019
    def log_state(self, seq: int) -> str:
        if self.in_log(seq):
            return "delivered"
        mine = self.seen.get(seq, [])
        acked = [s for s in mine if s.tier is Tier.ACKED]
        if acked:
            grounds = [self.acked_ground(s) for s in acked]
            for still_open in ("inconclusive", "pending"):
                if still_open in grounds:
                    return still_open
            return "lost_after_ack"
        for tier, state in (
            (Tier.ACKED_NO_OFFSET, "lost_after_ack"),
            (Tier.SENT_UNACKED, "lost_unacked"),
        ):
            found = [s for s in mine if s.tier is tier]
            if found:
                return self.sought(found[0].partition, found[0].ended, state, self.stored_after)
        if any(s.tier is Tier.FAILED for s in mine):
            return "rejected"
        found = [s for s in mine if s.tier is Tier.INDETERMINATE]
        if found:
            told = found[0]
            return self.sought(told.partition, told.ended, "lost_indeterminate", self.stored_after)
        if self.last is None:
            return "pending"
        state = "unaccounted" if self.closed else "lost_in_crash"
        return self.sought(-1, self.last, state, self.sent_after(self.first_without_outcome()))

    def first_without_outcome(self) -> int:
        """All ids that nobody reported are judged as one: by the lowest of them."""
        told = (Tier.ACKED, Tier.ACKED_NO_OFFSET, Tier.SENT_UNACKED, Tier.FAILED)
        kinds = (*told, Tier.INDETERMINATE)
        return next(
            seq
            for seq in self.ids()
            if not self.in_log(seq) and not any(s.tier in kinds for s in self.seen.get(seq, []))
        )

    def sent_after(self, seq: int) -> int | None:
        pairs = {p for b in self.beats for p in zip(b.minutes[::2], b.minutes[1::2], strict=True)}
        known = [minute for minute, first in pairs if first <= seq]
        return max(known) * 60_000 - self.longest if known else None

    def acked_ground(self, s: Seen) -> str:
        if s.partition not in self.partitions:
            return "inconclusive" if self.evidence.compacted else "pending"
        if self.evidence.compacted:
            return "inconclusive"
        end = self.proven_end(s.partition, s.ended)
        read = lambda o: any(  # noqa: E731
            r.began_ms >= s.ended and r.first_offset <= o <= r.last_offset
            for r in self.scans
            if r.partition == s.partition
        )
        if all(
            read(o) or (end is not None and o >= end) for o in range(s.first_offset, s.offset + 1)
        ):
            return "lost"
        earliest = max((a.earliest for a in self.states(s.partition)), default=0)
        return "inconclusive" if s.offset < earliest else "pending"

    def proven_end(self, partition: int, after: int) -> int | None:
        later = [a for a in self.states(partition) if a.at_ms >= after]
        ends = [a.latest for a in later if a.epoch > later[0].epoch]
        for a in later:
            for b in later:
                if a.epoch == b.epoch and b.at_ms - a.at_ms >= 2 * LAG_MS:
                    ends.append(max(a.latest, b.latest))
        return min(ends, default=None)

    def sought(self, partition: int, since: int, state: str, stored_after: int | None) -> str:
        if self.evidence.compacted:
            return "inconclusive"
        late = since + LAG_MS + self.timeout
        looks = [
            self.read_whole(p, late, stored_after)
            for p in ([partition] if partition >= 0 else self.partitions)
        ]
        if "inconclusive" in looks:
            return "inconclusive"
        if not looks or "pending" in looks:
            return "pending"
        return state

    def read_whole(self, partition: int, late: int, stored_after: int | None) -> str:
        scans = [r for r in self.scans if r.partition == partition and r.began_ms >= late]
        if not scans:
            return "pending"
        end = max(r.last_offset for r in scans)
        states = self.states(partition)
        base = 0
        before = [a for a in states if stored_after is not None and a.at_ms < stored_after]
        if before:
            base = min(a.latest for a in states if a.at_ms >= before[-1].at_ms)
        read = lambda o: any(r.first_offset <= o <= r.last_offset for r in scans)  # noqa: E731
        if all(read(o) for o in range(base, end + 1)):
            return "read"
        earliest = max((a.earliest for a in states), default=0)
        if earliest > base and all(read(o) for o in range(earliest, end + 1)):
            return "inconclusive"
        return "pending"

    # -- and for a group? ------------------------------------------------------------------------

    def readers(self) -> set[str]:
        """Groups that reported which ranges they read, or received an id of the session."""
        kinds = (Tier.CONSUMED, Tier.DELIVERED)
        own = [r for r in self.rows if r.tier is Tier.CONSUMED or r in self.parts]
        return {r.group for r in own if r.tier in kinds}

    @cache  # noqa: B019 (an oracle lives as long as its test)
    def received(self, group: str, partition: int) -> list[int]:
        """Offsets of the session's records that the group received and that are still there."""
        return [
            s.offset
            for seq, mine in self.seen.items()
            for s in mine
            if s.tier is Tier.DELIVERED and (s.group, s.partition) == (group, partition)
            if not self.void(seq, s)
        ]

    def group_state(self, seq: int, group: str) -> str:
        if any(s.tier is Tier.DELIVERED and s.group == group for s in self.seen.get(seq, [])):
            return "delivered"
        if self.log_state(seq) != "delivered":
            return self.log_state(seq)
        there = max(self.in_log(seq), key=lambda s: (s.began, s.part))
        p, o = there.partition, there.offset
        reads = [
            r
            for r in self.rows
            if r.tier is Tier.CONSUMED and r.group == group and r.partition == p
        ]
        commits = [c for c in self.evidence.commits if c.group == group and c.partition == p]
        received = self.received(group, p)
        firsts = [r.first_offset for r in reads] + [c.offset for c in commits] + received
        if firsts and o < min(firsts):
            return "not_owed"
        if any(r.first_offset <= o <= r.last_offset and not self.cut(r, o) for r in reads):
            return "delivered"
        done = [int(c.metadata.split("=")[1]) for c in commits if c.metadata]
        if any(o < processed for processed in done):
            return "delivered"
        if self.jumped(o, reads, commits):
            return "skipped_by_consumer"
        if commits:
            newest = max(commits, key=lambda c: (c.at_ms, c.offset, c.metadata))
            if newest.metadata and int(newest.metadata.split("=")[1]) <= o < newest.offset:
                return "skipped_by_consumer"
        if any(o < c.offset for c in commits):
            return "inconclusive"
        if firsts and o < max((a.earliest for a in self.states(p)), default=0):
            return "expired_before_read"
        read = [
            n for r in reads for n in range(r.first_offset, r.last_offset + 1) if not self.cut(r, n)
        ]
        if any(n > o for n in received + read):
            return "inconclusive"
        return "pending"

    def cut(self, read: Report, offset: int) -> bool:
        """Whether the log is known to have lost *offset* after the reading."""
        later = [a for a in self.states(read.partition) if a.at_ms >= read.ended_ms]
        return any(a.epoch > later[0].epoch and a.latest <= offset for a in later)

    def jumped(self, offset: int, reads: list[Report], commits: list[CommitRow]) -> bool:
        """Whether one member read before and then after it, while the partition was its own."""
        for before in reads:
            mine = [
                r
                for r in reads
                if r.assignment is not None
                and (r.reporter, r.assignment) == (before.reporter, before.assignment)
            ]
            after = [r for r in mine if r.part > before.part]
            if not after:
                continue
            following = min(after, key=lambda r: r.part)
            began = min(r.began_ms for r in mine)
            earlier = any(c.at_ms <= began and offset < c.offset for c in commits)
            between = before.last_offset < offset < following.first_offset
            if between and not earlier and not self.cut(before, offset):
                return True
        return False
