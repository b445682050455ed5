"""One block of one session and topic: its parts at every tier, and what is still in the log."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from functools import cached_property

import numpy as np

from acktrail.audit.bitmaps import Longs, Mask, empty, union
from acktrail.audit.log_end import proven_end
from acktrail.audit.parts import Part
from acktrail.audit.topic_evidence import PartitionEvidence, TopicEvidence
from acktrail.audit.wire.identity import BLOCK_IDS
from acktrail.contracts.vocabulary import Tier


@dataclass(frozen=True)
class Placed:
    """A part and the partition it speaks of."""

    partition: int
    part: Part


@dataclass(frozen=True)
class Block:
    """The parts of one block; *implied*: ids below it were handed over, for a higher one was."""

    number: int
    tiers: Mapping[tuple[Tier, str], tuple[Placed, ...]]
    implied: int = 0

    def placed(self, tier: Tier, group: str = "") -> tuple[Placed, ...]:
        """The parts of one tier (and group)."""
        return self.tiers.get((tier, group), ())

    def mask(self, tier: Tier, group: str = "") -> Mask:
        """The ids of one tier (and group); not to be changed."""
        found = self._masks.get((tier, group))
        if found is None:
            found = union(p.part.mask for p in self.placed(tier, group))
            self._masks[tier, group] = found
        return found

    @cached_property
    def _masks(self) -> dict[tuple[Tier, str], Mask]:
        return {}

    @property
    def groups(self) -> set[str]:
        """Groups that have received ids of the block."""
        return {group for tier, group in self.tiers if tier is Tier.DELIVERED}

    @cached_property
    def universe(self) -> Mask:
        """Every id that is known to exist."""
        known = union(self.mask(tier, group) for tier, group in self.tiers)
        known[: self.implied] = True
        return known

    def top(self) -> int:
        """The highest id within the block, plus one; 0 for none."""
        ids = np.flatnonzero(self.universe)
        return int(ids[-1]) + 1 if ids.size else 0


class Places:
    """Where ids lie: partition, and the lowest and highest offset each may have; -1 unknown."""

    def __init__(self, count: int) -> None:
        self.partition, self.low, self.high = np.full((3, count), -1, np.int64)

    def put(self, partition: int, at: Longs, low: Longs, high: Longs) -> None:
        """Note places; later ones replace earlier ones."""
        self.partition[at], self.low[at], self.high[at] = partition, low, high


class Presence:
    """Which ids are in the log: seen there by a scan or a group, and not cut off since."""

    def __init__(self, block: Block, topic: TopicEvidence) -> None:
        self._block, self._topic = block, topic
        self._kept: list[tuple[Placed, Mask | None]] = []
        self.mask = empty()
        for placed in self._sightings():
            void = self._void(placed)
            self._kept.append((placed, void))
            self.mask |= placed.part.mask if void is None else placed.part.mask & ~void

    def _sightings(self) -> Iterator[Placed]:
        for (tier, _group), parts in self._block.tiers.items():
            if tier in (Tier.IN_LOG, Tier.DELIVERED):
                yield from parts

    def _void(self, placed: Placed) -> Mask | None:
        """Ids of the part that a later epoch or a later scan shows to be gone; None for none."""
        partition = self._topic.partitions.get(placed.partition)
        part = placed.part
        if partition is None or part.ended_ms is None or part.last_offset is None:
            return None
        gone = None
        if _may_be_cut(partition, part):
            end = proven_end(partition, part.ended_ms, part.leader_epoch, None, part.topic_id)
            ids, low, _ = part.places()
            gone = _marked(gone, ids[low >= end.offset])
        if not self._topic.compacted and any(s.began_ms > part.ended_ms for s in partition.scans):
            seen_later = self._seen_by_scans_after(placed.partition, part.ended_ms)
            ids, low, high = part.places()
            reread = partition.covered_after(part.ended_ms + 1).covers(low, high)
            gone = _marked(gone, ids[reread & ~seen_later[ids]])
        return gone

    def _seen_by_scans_after(self, partition: int, ms: int) -> Mask:
        return union(
            p.part.mask
            for p in self._block.placed(Tier.IN_LOG)
            if p.partition == partition and p.part.began_ms is not None and p.part.began_ms > ms
        )

    @cached_property
    def places(self) -> Places:
        """Where the ids that are in the log lie, for the whole block."""
        found = Places(BLOCK_IDS)
        self.locate(np.arange(BLOCK_IDS), found)
        return found

    def locate(self, ids: Longs, places: Places) -> None:
        """Note where those of *ids* lie that are in the log; what a scan saw outranks a group."""
        for placed, void in sorted(self._kept, key=lambda kept: kept[0].part.began_ms or 0):
            at, low, high = placed.part.find(ids)
            kept = slice(None) if void is None else ~void[ids[at]]
            places.put(placed.partition, at[kept], low[kept], high[kept])

    def each_once(self, placed: tuple[Placed, ...], group: str) -> bool:
        """Whether all of *placed* still counts, no id is in two parts, and offsets are known."""
        if not placed or any(p.part.runs.offsets is None for p in placed):
            return False
        mine = {id(p.part) for p in placed}
        if not group and any(
            void is not None for kept, void in self._kept if id(kept.part) in mine
        ):
            return False
        listed = sum(p.part.runs.count for p in placed)
        return listed == int(np.count_nonzero(union(p.part.mask for p in placed)))

    def offsets(self, tier: Tier, group: str = "") -> dict[int, tuple[Longs, Longs]]:
        """Per partition, ids and offsets, each offset once, in order.

        For the log, of the records still there; for a group, of all it received.
        """
        wanted = {id(p.part) for p in self._block.placed(tier, group)}
        listed: dict[int, list[tuple[Longs, Longs]]] = {}
        for placed, void in self._kept:
            if id(placed.part) in wanted and placed.part.runs.offsets is not None:
                ids, low, _ = placed.part.places()
                kept = slice(None) if void is None or group else ~void[ids]
                listed.setdefault(placed.partition, []).append((ids[kept], low[kept]))
        return {partition: in_offset_order(found) for partition, found in listed.items()}

    def received(self, group: str) -> dict[int, Longs]:
        """Per partition, the offsets that *group* received and that are still in the log."""
        listed: dict[int, list[Longs]] = {}
        wanted = {id(p.part) for p in self._block.placed(Tier.DELIVERED, group)}
        for placed, void in self._kept:
            if id(placed.part) not in wanted:
                continue
            ids, low, _ = placed.part.places()
            if placed.part.runs.offsets is None:  # where a scan found them
                low = np.where(
                    self.places.partition[ids] == placed.partition, self.places.low[ids], -1
                )
            kept = low >= 0 if void is None else (low >= 0) & ~void[ids]
            listed.setdefault(placed.partition, []).append(low[kept])
        return {number: np.concatenate(found) for number, found in listed.items()}


def steps_back_of_runs(placed: tuple[Placed, ...]) -> int:
    """Steps back in offset order, from runs whose offsets are known and do not overlap."""
    steps = 0
    for number in {p.partition for p in placed}:
        runs = [p.part.runs for p in placed if p.partition == number]
        starts = np.concatenate([r.starts for r in runs])
        lasts = starts + np.concatenate([r.lengths for r in runs]) - 1
        order = np.argsort(np.concatenate([r.offsets for r in runs if r.offsets is not None]))
        steps += int((starts[order][1:] < lasts[order][:-1]).sum())
    return steps


def in_offset_order(found: list[tuple[Longs, Longs]]) -> tuple[Longs, Longs]:
    """Ids and offsets, each offset once, in the order of offsets."""
    ids = np.concatenate([f[0] for f in found])
    offsets = np.concatenate([f[1] for f in found])
    unique, first = np.unique(offsets, return_index=True)
    return ids[first], unique


def _may_be_cut(partition: PartitionEvidence, part: Part) -> bool:
    """Whether any later answer ends at or below the part's last offset: cheap, and rarely so."""
    after, last = part.ended_ms or 0, part.last_offset or 0
    return any(
        s.latest is not None and s.latest <= last and s.at_ms >= after for s in partition.states
    )


def _marked(gone: Mask | None, ids: Longs) -> Mask | None:
    if not ids.size:
        return gone
    result = empty() if gone is None else gone
    result[ids] = True
    return result
