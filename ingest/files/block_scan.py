"""Find the records that may be evidence in a block of log text, at memory speed.

RE2 (through Arrow) looks for any of the evidence literals in pieces of some 16 KiB that end at a
line end; only pieces with a hit are looked at line by line, and only records around a hit are
joined. The rest is counted and forgotten.
"""

from __future__ import annotations

import bisect
import re
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from acktrail.logs.prefilter import EVIDENCE
from acktrail.logs.records import (
    MAX_LINE_BYTES,
    MAX_RECORD_BYTES,
    MAX_RECORD_LINES,
    Joiner,
)
from acktrail.logs.wrapping import has_header, unwrap

_PIECE = 16 * 1024
_NEAR = 8
"""A hit not further from the last record than this many lines is reached by joining on."""
_ANY = "|".join(re.escape(literal.decode("ascii")) for literal in EVIDENCE)

Indices = npt.NDArray[np.int64]


@dataclass(frozen=True, slots=True)
class Kept:
    """A record that may be evidence."""

    position: int
    """Its first byte, counted from the block's start."""
    line: int
    """Its first line, counted from the block's start, from 0."""
    text: bytes
    """Its lines joined with a newline, each cut at the longest line that is kept."""
    truncated: bool


@dataclass(frozen=True, slots=True)
class BlockScan:
    """What a block held."""

    kept: tuple[Kept, ...]
    settled: int
    """Bytes that are decided: the next block starts here, at the first line of a record."""
    lines: int
    """Lines in the settled bytes."""
    skipped: int
    """Of these, lines that belong to no kept record."""


def scan_block(block: bytes, *, closed: bool) -> BlockScan:
    """Scan *block*, which starts at a record's first line.

    Unless *closed*, the last record may go on in text not yet seen, and is left for later.
    A last line without an end is a line only where *closed*.
    """
    text = _Lines(block, closed)
    if not text.count:
        return BlockScan((), 0, 0, 0)
    last = text.count if closed else _start_of_last_record(text)
    kept: list[Kept] = []
    taken = 0
    for start, lines in _records_with_hits(text, last):
        truncated = any(len(line) > MAX_LINE_BYTES for line in lines)
        joined = b"\n".join([line[:MAX_LINE_BYTES] for line in lines])
        kept.append(Kept(text.start(start), start, joined, truncated))
        taken += len(lines)
    return BlockScan(tuple(kept), text.start(last), last, last - taken)


class _Lines:
    """A block's lines, by number, without copying the block."""

    def __init__(self, block: bytes, closed: bool) -> None:
        self.block = block
        ends: Indices = np.flatnonzero(np.frombuffer(block, np.uint8) == 10) + 1
        if closed and block and not block.endswith(b"\n"):
            ends = np.append(ends, len(block))
        self.ends = ends
        self._bounds: list[int] = []
        self.count = len(ends)
        self._headers: dict[int, bool] = {}

    def start(self, number: int) -> int:
        if self._bounds:
            return self._bounds[number]
        return int(self.ends[number - 1]) if number else 0

    def line(self, number: int) -> bytes:
        """The line without its end."""
        return self.block[self.start(number) : self.start(number + 1)].rstrip(b"\r\n")

    def headed(self, number: int) -> bool:
        found = self._headers.get(number)
        if found is None:
            found = self._headers[number] = has_header(unwrap(self.line(number)[:MAX_LINE_BYTES]))
        return found

    def hits(self) -> Indices:
        """Numbers of the lines that hold a literal."""
        borders = np.searchsorted(self.ends, np.arange(_PIECE, self.ends[-1], _PIECE))
        ends = np.unique(np.append(borders, self.count - 1))
        pieces = _match(self.block, np.append(0, self.ends[ends]))
        if not len(pieces):
            return pieces
        self._bounds = [0, *self.ends.tolist()]
        firsts = np.append(0, ends[:-1] + 1)
        numbers = np.concatenate([np.arange(firsts[p], ends[p] + 1) for p in pieces])
        found = self._matching_lines(numbers)
        return numbers[found]

    def _matching_lines(self, numbers: Indices) -> Indices:
        """Which of the lines *numbers* hold a literal in the part of them that is read."""
        starts = np.where(numbers == 0, 0, self.ends[numbers - 1])
        ends = np.minimum(self.ends[numbers], starts + MAX_LINE_BYTES)
        if len(numbers) == numbers[-1] - numbers[0] + 1 and bool((ends[:-1] == starts[1:]).all()):
            return _match(self.block, np.append(starts, ends[-1]))
        texts = [self.block[s:e] for s, e in zip(starts.tolist(), ends.tolist(), strict=True)]
        return _matching(pa.array(texts, pa.binary()))


def _match(block: bytes, offsets: Indices) -> Indices:
    """Numbers of the texts between neighbouring *offsets* that hold a literal."""
    buffers = [None, pa.py_buffer(offsets.astype(np.int32).data), pa.py_buffer(block)]
    texts = pa.BinaryArray.from_buffers(pa.binary(), len(offsets) - 1, buffers)
    return _matching(texts)


def _matching(texts: Any) -> Indices:
    found = pc.indices_nonzero(pc.match_substring_regex(texts, _ANY))
    return np.array(found.to_pylist(), np.int64)


def _walk_back(text: _Lines, number: int, floor: int) -> int:
    """The line to start joining from, so that line *number* lands in its whole record."""
    lowest = max(floor, number - MAX_RECORD_LINES)
    limit = text.start(number) - MAX_RECORD_BYTES
    first = number
    for candidate in range(number, lowest - 1, -1):
        if text.start(candidate) < limit:
            break
        first = candidate
        if text.headed(candidate):
            break
    return first


def _start_of_last_record(text: _Lines) -> int:
    """Number of the line that opens the last record, which may go on beyond the block."""
    last = text.count - 1
    joiner, start = Joiner(), 0
    for number in range(_walk_back(text, last, 0), last + 1):
        if joiner.opens(text.line(number)):
            start = number
    return start


def _records_with_hits(text: _Lines, last: int) -> Iterator[tuple[int, list[bytes]]]:
    """First line's number and lines of every record before line *last* that holds a hit."""
    hits = [number for number in text.hits().tolist() if number < last]
    at = done = 0
    while at < len(hits):
        joiner = Joiner()
        start = number = _walk_back(text, hits[at], done)
        lines: list[bytes] = []
        while True:
            line = text.line(number) if number < last else b""
            if number == last or (joiner.opens(line) and lines):
                beyond = bisect.bisect_left(hits, number, at)
                if beyond > at:
                    yield start, lines
                start, lines, at, held = number, [], beyond, beyond > at
                if at == len(hits):
                    return
                if held and hits[at] - number > _NEAR:
                    break
            lines.append(line)
            number += 1
        done = start
