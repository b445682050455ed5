"""What a member of a group was given, per partition: ranges of offsets, and ids with offsets.

The parts of one assignment are all reported again with each later one: a report that is lost makes
no gap that the application never jumped over. After many parts the assignment counts as another.
"""

from __future__ import annotations

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
class ReadPartition:
    """One partition while it is assigned."""

    assignment: int
    ranges: list[Range] = field(default_factory=list)
    ids: dict[tuple[bytes, int], list[tuple[int, int]]] = field(default_factory=dict)
    """By session and block: id within the block, and offset."""
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

    def read(self, place: Place, offset: int, epoch: int | None, now_ms: int) -> ReadPartition:
        """One record was given to the application."""
        found = self.places.get(place)
        if found is None:
            self.assigned([place])
            found = self.places[place]
        ranges = found.ranges
        found.changed = True
        if ranges and ranges[-1].last + 1 == offset:
            last = ranges[-1]
            last.last, last.records, last.ended_ms = offset, last.records + 1, now_ms
            if epoch is not None:
                last.epoch = epoch
            return found
        if len(ranges) >= MOST_PARTS:
            self.assigned([place])
            found = self.places[place]
            found.changed = True
        self._part += 1
        found.ranges.append(Range(self._part, offset, offset, 1, epoch, now_ms, now_ms))
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
            for (session, block), pairs in ids.items():
                rows += self._delivered(place, session.hex(), block, pairs, now_ms)
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
        self, place: Place, session: str, block: int, pairs: list[tuple[int, int]], now_ms: int
    ) -> list[Row]:
        """One row; a further one for ids that came again at another offset."""
        rows: list[Row] = []
        layers: list[dict[int, int]] = []
        records = len(pairs)
        for seq, offset in pairs:
            for layer in layers:
                known = layer.get(seq)
                if known is None or known == offset:
                    layer[seq] = offset
                    break
            else:
                layers.append({seq: offset})
        for layer in layers:
            self._part += 1
            ordered = sorted(layer.items())
            rows.append(
                {
                    "tier": "delivered",
                    "topic": place[0],
                    "partition": place[1],
                    "group": self._group,
                    "session": session,
                    "block": block,
                    "part": self._part,
                    "ids": encode64(encode_offsets(ordered)),
                    "records": records if layer is layers[0] else len(layer),
                    "first_offset": min(layer.values()),
                    "last_offset": max(layer.values()),
                    "began_ms": now_ms,
                    "ended_ms": now_ms,
                }
            )
        return rows
