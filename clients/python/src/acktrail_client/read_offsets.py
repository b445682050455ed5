"""What a member of a group was given, per partition: ranges of offsets, and ids with offsets.

The parts of one assignment are all reported again with each later one: a report that is lost makes
no gap that the application never jumped over. After many parts the assignment counts as another.
"""

from __future__ import annotations

from array import array
from collections.abc import Sequence
from dataclasses import dataclass, field

from acktrail_client.rows import Row, encode64
from acktrail_client.run_lists import encode_offsets

MOST_PARTS = 32
Place = tuple[str, int]


@dataclass
class Range:
    """Offsets that were read without a jump."""

    part: int
    first: int
    last: int
    records: int
    epoch: int | None
    began_ms: int
    ended_ms: int


@dataclass
class Seen:
    """Ids of one session and block, and their offsets, in the order in which they came."""

    ids: array[int] = field(default_factory=lambda: array("H"))
    offsets: array[int] = field(default_factory=lambda: array("q"))
    epoch: int | None = None
    """The highest leader epoch of these records."""


@dataclass
class ReadPartition:
    """One partition while it is assigned."""

    assignment: int
    ranges: list[Range] = field(default_factory=list)
    ids: dict[tuple[bytes, int], Seen] = field(default_factory=dict)
    """By session and block."""
    changed: bool = False


class ReadOffsets:
    """All partitions of one consumer. Used by the application's thread and the reporter in turn."""

    def __init__(self, group: str) -> None:
        self._group = group
        self.places: dict[Place, ReadPartition] = {}
        self.topics: set[str] = set()
        self._left: list[tuple[Place, ReadPartition]] = []
        """Assignments that are over, and not reported to their end."""
        self._assignment = 0
        self._part = 0

    def assigned(self, places: list[Place]) -> None:
        """These partitions are this member's from now on, or once more."""
        self._assignment += 1
        for place in places:
            left = self.places.get(place)
            self.places[place] = ReadPartition(self._assignment)
            self.topics.add(place[0])
            if left is not None:
                self._left.append((place, left))

    def revoked(self, places: list[Place]) -> None:
        """These partitions are somebody else's."""
        for place in places:
            left = self.places.pop(place, None)
            if left is not None:
                self._left.append((place, left))

    def read(
        self, place: Place, first: int, last: int, epoch: int | None, now_ms: int
    ) -> ReadPartition:
        """Records at *first* to *last* were given to the application, none left out."""
        found = self.places.get(place)
        if found is None:
            self.assigned([place])
            found = self.places[place]
        ranges = found.ranges
        found.changed = True
        count = last - first + 1
        if ranges and ranges[-1].last + 1 == first:
            newest = ranges[-1]
            newest.last, newest.ended_ms, newest.epoch = last, now_ms, epoch
            newest.records += count
            return found
        if len(ranges) >= MOST_PARTS:
            self.assigned([place])
            found = self.places[place]
            found.changed = True
        self._part += 1
        found.ranges.append(Range(self._part, first, last, count, epoch, now_ms, now_ms))
        return found

    def take(self, now_ms: int) -> list[Row]:
        """The rows of what was read since the last report."""
        left, self._left = self._left, []
        rows: list[Row] = []
        for place, found in [*left, *self.places.items()]:
            if found.changed:
                found.changed = False
                rows += [self._range(place, found.assignment, one) for one in found.ranges]
        for place, found in [*left, *self.places.items()]:
            ids, found.ids = found.ids, {}
            for (session, block), seen in ids.items():
                rows += self._delivered(place, session.hex(), block, seen, now_ms)
        return rows

    def _range(self, place: Place, assignment: int, one: Range) -> Row:
        row: Row = {
            "tier": "consumed",
            "topic": place[0],
            "partition": place[1],
            "group": self._group,
            "part": one.part,
            "assignment": assignment,
            "first_offset": one.first,
            "last_offset": one.last,
            "records": one.records,
            "began_ms": one.began_ms,
            "ended_ms": one.ended_ms,
        }
        return row if one.epoch is None else {**row, "leader_epoch": one.epoch}

    def _delivered(
        self, place: Place, session: str, block: int, seen: Seen, now_ms: int
    ) -> list[Row]:
        """One row; a further one for ids that came again at another offset."""
        records = len(seen.ids)
        rows: list[Row] = []
        for ids, offsets in _layers(seen):
            self._part += 1
            rows.append(
                {
                    "tier": "delivered",
                    "topic": place[0],
                    "partition": place[1],
                    "group": self._group,
                    "session": session,
                    "block": block,
                    "part": self._part,
                    "ids": encode64(encode_offsets(ids, offsets)),
                    "records": len(ids) if rows else records,
                    "first_offset": min(offsets),
                    "last_offset": max(offsets),
                    "began_ms": now_ms,
                    "ended_ms": now_ms,
                }
            )
            if seen.epoch is not None:
                rows[-1]["leader_epoch"] = seen.epoch
        return rows


def _layers(seen: Seen) -> list[tuple[Sequence[int], Sequence[int]]]:
    """Ids in order, each once, with offsets; what came again at another offset in a next layer."""
    ids = seen.ids.tolist()
    if sorted(set(ids)) == ids:
        return [(ids, seen.offsets.tolist())]
    layers: list[dict[int, int]] = []
    for seq, offset in zip(ids, seen.offsets, strict=True):
        for layer in layers:
            if layer.setdefault(seq, offset) == offset:
                break
        else:
            layers.append({seq: offset})
    in_order = [sorted(layer.items()) for layer in layers]
    return [([seq for seq, _ in layer], [at for _, at in layer]) for layer in in_order]
