"""When a recorder received the bytes of growing files: the order of evidence in a recording.

A recording's `receipts.jsonl` has one line per look at which a file had grown:
`{"at_ms": 1794814464082, "sizes": {"verifiable/producer-pay.jsonl": 51200}}`. The sizes were taken
before the time: all those bytes were there at that time.
"""

from __future__ import annotations

import json
import re
from bisect import bisect_left
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

FILE = "receipts.jsonl"
TIMED = re.compile(rb'("(?:timestamp|time_ms)":\s*)(\d+)')
"""The time of a line that a client printed, in milliseconds, by the client's clock."""


@dataclass(frozen=True)
class Mark:
    """At *at_ms* a file had *size* bytes."""

    at_ms: int
    size: int


@dataclass(frozen=True)
class ReceivedPiece:
    """Whole lines of a file, bytes *start* to *end*, that were received together."""

    start: int
    end: int
    received_ms: int


class Receipts:
    """The marks of all files of a recording, by name."""

    def __init__(self, marks: Mapping[str, Sequence[Mark]]) -> None:
        self.marks = {
            name: sorted(of, key=lambda m: (m.at_ms, m.size)) for name, of in marks.items()
        }
        self._times = sorted({mark.at_ms for of in self.marks.values() for mark in of})

    @classmethod
    def of_rows(cls, rows: Iterable[Mapping[str, Any]]) -> Receipts:
        """From the lines of `receipts.jsonl`."""
        marks: dict[str, list[Mark]] = {}
        for row in rows:
            for name, size in row["sizes"].items():
                marks.setdefault(str(name), []).append(Mark(int(row["at_ms"]), int(size)))
        return cls(marks)

    @classmethod
    def of_texts(cls, texts: Mapping[str, bytes]) -> Receipts:
        """From the times within the files, for a recording that kept no receipts.

        It was made on one machine with one clock, and a line is written soon after its time: it
        was there when its second was over.
        """
        return cls({name: list(_marks_of(text)) for name, text in texts.items()})

    @property
    def first_ms(self) -> int | None:
        """The first receipt; None where nothing was received."""
        return self._times[0] if self._times else None

    def newest_before(self, at_ms: int) -> int | None:
        """The newest receipt before *at_ms*; None where there is none."""
        found = bisect_left(self._times, at_ms)
        return self._times[found - 1] if found else None

    def pieces(self, name: str, text: bytes, rest_ms: int) -> Iterator[ReceivedPiece]:
        """The pieces of the file *name*; what no mark covers was received at *rest_ms*, or later.

        A line that was torn at a mark belongs to the next piece.
        """
        start, last_ms = 0, rest_ms
        for mark in self.marks.get(name, ()):
            last_ms = max(last_ms, mark.at_ms + 1)
            end = text.rfind(b"\n", start, mark.size) + 1
            if end > start:
                yield ReceivedPiece(start, end, mark.at_ms)
                start = end
        if start < len(text):
            yield ReceivedPiece(start, len(text), last_ms)

    def rows(self) -> list[dict[str, Any]]:
        """As lines of `receipts.jsonl`, in order."""
        by_time: dict[int, dict[str, int]] = {}
        for name, marks in self.marks.items():
            for mark in marks:
                by_time.setdefault(mark.at_ms, {})[name] = mark.size
        return [{"at_ms": at_ms, "sizes": by_time[at_ms]} for at_ms in sorted(by_time)]

    def text(self) -> str:
        """The content of `receipts.jsonl`."""
        return "".join(json.dumps(row) + "\n" for row in self.rows())


def _marks_of(text: bytes) -> Iterator[Mark]:
    newest, size = 0, 0
    mark: Mark | None = None
    for line in text.splitlines(keepends=True):
        size += len(line)
        found = TIMED.search(line)
        if found is not None:
            newest = max(newest, int(found[2]))
        if not newest:
            continue
        received = (newest // 1000 + 1) * 1000
        if mark is not None and mark.at_ms != received:
            yield mark
        mark = Mark(received, size)
    if mark is not None:
        yield mark
