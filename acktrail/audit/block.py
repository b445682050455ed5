"""One block of one session and topic: its parts at every tier, and what is still in the log."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any

import numpy as np

from acktrail.audit.log_end import proven_end
from acktrail.audit.topic_evidence import LogScan, PartitionEvidence, TopicEvidence
from acktrail.audit.wire.identity import BLOCK_IDS
from acktrail.audit.wire.run_lists import Longs, Mask, Runs, decode_runs, mask_of, no_ids, union
from acktrail.contracts.silver import AUDIT_BLOCKS
from acktrail.contracts.vocabulary import Tier

FIELDS = tuple(field.name for field in AUDIT_BLOCKS.column("parts").fields)
"""The fields of a part in `audit_blocks.parts`; `audit_parts` has columns of the same names."""


def newest_parts(rows: Iterable[Mapping[str, Any]]) -> list[Mapping[str, Any]]:
    """The newest report of each part, whatever order and however often they came.

    The report number decides, and of one that came twice the first receipt; the rest only makes
    equal numbers come out the same.
    """
    kept: dict[tuple[str, int], tuple[tuple[Any, ...], Mapping[str, Any]]] = {}
    for row in rows:
        key = (row["reporter"], row["part"])
        age = (
            *(row["number"], -1 if row["ended_ms"] is None else row["ended_ms"]),
            *(row["records"], row["ids"]),
            -(row.get("received_ms") or 0),
        )
        if key not in kept or age > kept[key][0]:
            kept[key] = (age, row)
    return [kept[key][1] for key in sorted(kept)]


@dataclass(frozen=True)
class Part:
    """What one reporter saw of a block in one partition (-1: unknown) and at most ten seconds.

    Times are milliseconds since the epoch; None where the reporter gave none.
    """

    reporter: str
    part: int
    number: int
    ids: bytes
    records: int = 0
    leader_epoch: int | None = None
    first_offset: int | None = None
    last_offset: int | None = None
    began_ms: int | None = None
    ended_ms: int | None = None
    steps_back: int | None = None
    latency_p50_ms: int | None = None
    latency_p99_ms: int | None = None
    latency_max_ms: int | None = None
    error: str = ""
    topic_id: str = ""
    after_ms: int | None = None
    """For what a scan saw: receipts up to this one were in the lake when it began."""
    received_ms: int | None = None
    """When an agent received it. Receipts of one cluster have an order; clocks of hosts do not."""
    partition: int = -1

    @cached_property
    def runs(self) -> Runs:
        """The ids as runs."""
        return decode_runs(self.ids)

    @cached_property
    def mask(self) -> Mask:
        """The ids as a set."""
        return mask_of(self.runs)

    def places(self) -> tuple[Longs, Longs, Longs]:
        """Every id with the lowest and highest offset it may have; the same where known."""
        ids, offsets = self.runs.listed()
        return (ids, *self._between(ids.size)) if offsets is None else (ids, offsets, offsets)

    def find(self, ids: Longs) -> tuple[Longs, Longs, Longs]:
        """Which of *ids* (by index) are in the part, with the offsets they may have, as above."""
        runs = self.runs
        at = np.flatnonzero(self.mask[ids])
        if runs.offsets is None:
            return (at, *self._between(at.size))
        run = np.searchsorted(runs.starts, ids[at], "right") - 1
        offsets = runs.offsets[run] + ids[at] - runs.starts[run]
        return at, offsets, offsets

    def _between(self, count: int) -> tuple[Longs, Longs]:
        low = -1 if self.first_offset is None else self.first_offset
        high = -1 if self.last_offset is None else self.last_offset
        return np.full(count, low, np.int64), np.full(count, high, np.int64)


@dataclass(frozen=True)
class Block:
    """The parts of one block; *implied*: ids below it were handed over, for a higher one was."""

    number: int
    tiers: Mapping[tuple[Tier, str], tuple[Part, ...]]
    implied: int = 0
    _masks: dict[tuple[Tier, str], Mask] = field(default_factory=dict, repr=False, compare=False)

    def parts(self, tier: Tier, group: str = "") -> tuple[Part, ...]:
        """The parts of one tier (and group)."""
        return self.tiers.get((tier, group), ())

    def mask(self, tier: Tier, group: str = "") -> Mask:
        """The ids of one tier (and group); not to be changed."""
        found = self._masks.get((tier, group))
        if found is None:
            found = union(part.mask for part in self.parts(tier, group))
            self._masks[tier, group] = found
        return found

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

    def put(self, part: Part, ids: Longs, gone: Mask | None = None) -> None:
        """Note where those of *ids* lie that are in *part*, without what is *gone* from it.

        Later notes replace earlier ones.
        """
        at, low, high = part.find(ids)
        kept = slice(None) if gone is None else ~gone[ids[at]]
        self.partition[at[kept]], self.low[at[kept]] = part.partition, low[kept]
        self.high[at[kept]] = high[kept]


class Presence:
    """Which ids are in the log: seen there by a scan or a group, and not known to be gone since."""

    def __init__(self, block: Block, topic: TopicEvidence) -> None:
        self._block, self._topic = block, topic
        self._found: dict[tuple[str, int, int], Mask] = {}
        self.sightings = [
            (part, self._gone(part))
            for (tier, _group), parts in block.tiers.items()
            if tier in (Tier.IN_LOG, Tier.DELIVERED)
            for part in parts
        ]
        """What scans and groups saw in the log, each with the ids that are gone since."""
        self.mask = union(p.mask if gone is None else p.mask & ~gone for p, gone in self.sightings)

    def _gone(self, part: Part) -> Mask | None:
        """Ids of the part that a higher epoch or a later scan shows to be gone; None for none."""
        partition = self._topic.partitions.get(part.partition)
        if partition is None or part.last_offset is None:
            return None
        end = proven_end(partition, part.received_ms, _epoch_there(part, partition), part.topic_id)
        refuting = self._scans_after(part, partition)
        if end > part.last_offset and not refuting:
            return None
        ids, low, high = part.places()
        gone = no_ids()
        gone[ids[low >= end]] = True
        for scan in refuting:
            again = self._found_by(scan, part.partition)
            read = (low >= scan.first) & (high <= scan.last) & ~np.isin(low, scan.without_id)
            gone[ids[read & ~again[ids]]] = True
        return gone if gone.any() else None

    def _scans_after(self, part: Part, partition: PartitionEvidence) -> list[LogScan]:
        """Scans begun after the part was received that have read some of its offsets again."""
        if part.received_ms is None or part.last_offset is None:
            return []
        first = part.last_offset if part.first_offset is None else part.first_offset
        compactable = self._topic.compacted is not False
        later = partition.scans_after(part.received_ms, part.topic_id, compactable)
        return later.touching(first, part.last_offset)

    def _found_by(self, scan: LogScan, partition: int) -> Mask:
        """The ids of the block that *scan* itself has found in the partition."""
        key = (scan.reporter, scan.number, partition)
        found = self._found.get(key)
        if found is None:
            found = self._found[key] = union(
                part.mask
                for part in self._block.parts(Tier.IN_LOG)
                if (part.reporter, part.number, part.partition) == key
            )
        return found

    @cached_property
    def places(self) -> Places:
        """Where the ids that are in the log lie, for the whole block."""
        found = Places(BLOCK_IDS)
        self.locate(np.arange(BLOCK_IDS), found)
        return found

    def locate(self, ids: Longs, places: Places) -> None:
        """Note where those of *ids* lie that are in the log; what a scan saw outranks a group."""
        for part, gone in sorted(self.sightings, key=lambda seen: _receipt(seen[0])):
            places.put(part, ids, gone)

    def each_once(self, parts: tuple[Part, ...], group: str) -> bool:
        """Whether all of *parts* still counts, no id is in two of them, and offsets are known."""
        if not parts or any(part.runs.offsets is None for part in parts):
            return False
        mine = {id(part) for part in parts}
        if not group and any(gone is not None for part, gone in self.sightings if id(part) in mine):
            return False
        listed = sum(part.runs.count for part in parts)
        return listed == int(np.count_nonzero(union(part.mask for part in parts)))

    def offsets(self, tier: Tier, group: str = "") -> dict[int, tuple[Longs, Longs]]:
        """Per partition, ids and offsets, each offset once, in order.

        For the log, of the records still there; for a group, of all it received.
        """
        wanted = {id(part) for part in self._block.parts(tier, group)}
        listed: dict[int, list[tuple[Longs, Longs]]] = {}
        for part, gone in self.sightings:
            if id(part) in wanted and part.runs.offsets is not None:
                ids, low, _ = part.places()
                kept = slice(None) if gone is None or group else ~gone[ids]
                listed.setdefault(part.partition, []).append((ids[kept], low[kept]))
        return {partition: in_offset_order(found) for partition, found in listed.items()}

    def received(self, group: str) -> dict[int, Longs]:
        """Per partition, the offsets that *group* received and that are still in the log."""
        listed: dict[int, list[Longs]] = {}
        wanted = {id(part) for part in self._block.parts(Tier.DELIVERED, group)}
        for part, gone in self.sightings:
            if id(part) not in wanted:
                continue
            ids, low, _ = part.places()
            if part.runs.offsets is None:  # where a scan found them
                here = self.places.partition[ids] == part.partition
                low = np.where(here, self.places.low[ids], -1)
            kept = low >= 0 if gone is None else (low >= 0) & ~gone[ids]
            listed.setdefault(part.partition, []).append(low[kept])
        return {number: np.concatenate(found) for number, found in listed.items()}


def _epoch_there(part: Part, partition: PartitionEvidence) -> int | None:
    """What the part saw was in the log under this leader epoch: a log that was cut may come back.

    That of the scan which saw it, if it is higher than those of the records.
    """
    read = partition.scan_epochs.get((part.reporter, part.number))
    known = [epoch for epoch in (part.leader_epoch, read) if epoch is not None]
    return max(known, default=None)


def _receipt(part: Part) -> tuple[int, str, int]:
    return (part.received_ms or 0, part.reporter, part.part)


def in_offset_order(found: list[tuple[Longs, Longs]]) -> tuple[Longs, Longs]:
    """Ids and offsets, each offset once, in the order of offsets."""
    ids = np.concatenate([f[0] for f in found])
    offsets = np.concatenate([f[1] for f in found])
    unique, first = np.unique(offsets, return_index=True)
    return ids[first], unique
