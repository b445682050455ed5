"""Parts: what one reporter said of one block at one place, kept until a newer report of it."""

from __future__ import annotations

import struct
from collections.abc import Iterable
from dataclasses import dataclass
from functools import cached_property

import numpy as np

from acktrail.audit.bitmaps import Longs, Mask, listed
from acktrail.audit.wire.runs import Runs, decode_runs, mask_of

_FIXED = struct.Struct("<qqqqqqqqqqqq")
_LENGTHS = struct.Struct("<HHHI")
_NONE = -(1 << 63)


@dataclass(frozen=True)
class Part:
    """One part. Times are milliseconds since the epoch; None where the reporter did not say."""

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
        ids, offsets = listed(self.runs)
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


def newest(parts: Iterable[Part]) -> list[Part]:
    """The newest report of each part, whatever order and however often they came."""
    kept: dict[tuple[str, int], Part] = {}
    for part in parts:
        key = (part.reporter, part.part)
        if key not in kept or _age(part) > _age(kept[key]):
            kept[key] = part
    return [kept[key] for key in sorted(kept)]


def _age(part: Part) -> tuple[int, int, int, bytes]:
    """The report number decides; the rest only makes equal numbers come out the same."""
    return part.number, part.ended_ms or 0, part.records, part.ids


def pack_parts(parts: Iterable[Part]) -> bytes:
    """*parts* as bytes, for `audit_blocks.parts`."""
    out = []
    for p in parts:
        numbers = (
            *(p.part, p.number, p.records, p.leader_epoch, p.first_offset, p.last_offset),
            *(p.began_ms, p.ended_ms, p.steps_back),
            *(p.latency_p50_ms, p.latency_p99_ms, p.latency_max_ms),
        )
        texts = [p.reporter.encode(), p.error.encode()[:60000], p.topic_id.encode(), p.ids]
        out.append(_FIXED.pack(*(_NONE if n is None else n for n in numbers)))
        out.append(_LENGTHS.pack(*(len(t) for t in texts)))
        out.extend(texts)
    return b"".join(out)


def unpack_parts(text: bytes) -> list[Part]:
    """The parts in *text*."""
    found, at = [], 0
    while at < len(text):
        numbers = [None if n == _NONE else n for n in _FIXED.unpack_from(text, at)]
        at += _FIXED.size
        lengths = _LENGTHS.unpack_from(text, at)
        at += _LENGTHS.size
        texts = []
        for length in lengths:
            texts.append(text[at : at + length])
            at += length
        part, number, records, epoch, first, last, began, ended, back, p50, p99, top = numbers
        found.append(
            Part(
                reporter=texts[0].decode(),
                part=part or 0,
                number=number or 0,
                ids=texts[3],
                records=records or 0,
                leader_epoch=epoch,
                first_offset=first,
                last_offset=last,
                began_ms=began,
                ended_ms=ended,
                steps_back=back,
                latency_p50_ms=p50,
                latency_p99_ms=p99,
                latency_max_ms=top,
                error=texts[1].decode(errors="replace"),
                topic_id=texts[2].decode(),
            )
        )
    return found
