"""Join lines that reach one partition mixed, from many files, into records.

Each file's lines are joined apart. A record is over when its file sends a line that opens the next
one, or nothing for a while. The position never passes the first line of a record that may go on:
what lies behind it is decided, what lies before it is read again after a crash.
"""

from __future__ import annotations

import heapq
from dataclasses import dataclass, field
from datetime import datetime

from acktrail.logs.prefilter import may_be_evidence
from acktrail.logs.records import MAX_RECORD_BYTES, Joiner
from ingest.sources.shipped_lines import ShippedLine

Origin = tuple[str | None, str | None]
"""Host and path."""


@dataclass
class Open:
    """A record that may go on."""

    offset: int
    origin: Origin
    shipped_at: datetime | None
    heard_at: float
    """When its last line reached us."""
    stamp: float
    """When its last line reached the log."""
    last: int = 0
    """Offset of its last line so far."""
    lines: list[bytes] = field(default_factory=list)


@dataclass(frozen=True, order=True)
class Joined:
    """A record that is over. *lines* is how many messages it came in."""

    offset: int
    last: int = field(compare=False)
    text: bytes = field(compare=False)
    lines: int = field(compare=False)
    host: str | None = field(compare=False)
    path: str | None = field(compare=False)
    shipped_at: datetime | None = field(compare=False)

    @property
    def evidence(self) -> bool:
        """Whether it may be evidence."""
        return may_be_evidence(self.text)


class PartitionLines:
    """The lines of one partition, in order of their offsets."""

    def __init__(self, began: int | None, start: int) -> None:
        self.began = began
        """Where the lake stands, batches handed over included."""
        self.next = start
        """The next offset to come."""
        self.poison: list[int] = []
        """Offsets of messages that hold no line, not yet handed over."""
        self.size = 0
        """Bytes held."""
        self.at_end = False
        """Whether everything in the log has come."""
        self._newest = 0.0
        self._joiners: dict[Origin, Joiner] = {}
        self._open: dict[Origin, Open] = {}
        self._over: list[Joined] = []

    def add(self, offset: int, line: ShippedLine | None, now: float, stamp: float) -> None:
        """The message at *offset*, in the log since *stamp*, came *now*; *line* may be missing."""
        self.next = offset + 1
        self.at_end = False
        self._newest = max(self._newest, stamp)
        if line is None:
            self.poison.append(offset)
            return
        origin = (line.host, line.path)
        text = line.text.encode("utf-8", "replace")[:MAX_RECORD_BYTES]
        joiner = self._joiners.setdefault(origin, Joiner())
        if joiner.opens(text) or origin not in self._open:
            self._close(origin)
            self._open[origin] = Open(offset, origin, line.shipped_at, now, stamp)
        record = self._open[origin]
        record.lines.append(text)
        record.heard_at, record.stamp = now, stamp
        record.last = offset
        self.size += len(text)

    def take(self, now: float, idle_s: float) -> tuple[list[Joined], list[int], int]:
        """Records and poison that are decided, and the position they end at."""
        for origin, record in list(self._open.items()):
            # While we lag, only the log's own time tells a silent file from a slow reader.
            silent_s = now - record.heard_at if self.at_end else self._newest - record.stamp
            if silent_s >= idle_s:
                self._close(origin)
                del self._joiners[origin]
        reached = self._decided()
        taken = []
        while self._over and self._over[0].offset < reached:
            taken.append(heapq.heappop(self._over))
        self.size -= sum(len(record.text) for record in taken)
        poison = [offset for offset in self.poison if offset < reached]
        self.poison = [offset for offset in self.poison if offset >= reached]
        return taken, poison, reached

    def _decided(self) -> int:
        """The highest offset that cuts no record in two: not one that is open, nor one that is over
        and has lines on both sides."""
        reached = min((record.offset for record in self._open.values()), default=self.next)
        for record in sorted(self._over, reverse=True):
            if record.offset < reached <= record.last:
                reached = record.offset
        return reached

    def _close(self, origin: Origin) -> None:
        record = self._open.pop(origin, None)
        if record is None:
            return
        text = b"\n".join(record.lines)
        self.size += len(text) - sum(len(line) for line in record.lines)
        heapq.heappush(
            self._over,
            Joined(record.offset, record.last, text, len(record.lines), *origin, record.shipped_at),
        )
