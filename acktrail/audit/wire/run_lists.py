"""Sets of ids of one block: run lists in reports, bitmaps in tables, masks to compute with.

Ids are nearly contiguous, so a set of them is a short list of runs. The first byte of a run list is
its kind: 0 runs, 1 a bitmap (for sets with hardly any runs), 2 runs with offsets: within a run ids
and offsets both grow by one. All numbers are LEB128 varints. See docs/wire.md. A bitmap has a bit
for each id (4 KiB), a mask a byte.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from acktrail.audit.wire.identity import BLOCK_IDS

BITMAP_BYTES = BLOCK_IDS // 8

Longs = npt.NDArray[np.int64]
Bitmap = npt.NDArray[np.uint8]
Mask = npt.NDArray[np.bool_]

_RUNS, _BITMAP, _RUNS_AT = 0, 1, 2
_EMPTY: Longs = np.empty(0, np.int64)
_VARINT_STEPS: Longs = 1 << np.arange(7, 63, 7, dtype=np.int64)
"""From each of these on, a varint is one byte longer."""
_ONES = np.array([byte.bit_count() for byte in range(256)], np.uint8)


@dataclass(frozen=True, eq=False)
class Runs:
    """Runs of ids within a block: *starts*, *lengths*, and *offsets* of their first ids or None."""

    starts: Longs
    lengths: Longs
    offsets: Longs | None = None

    @property
    def count(self) -> int:
        """Ids in all runs."""
        return int(self.lengths.sum())

    def listed(self) -> tuple[Longs, Longs | None]:
        """Every id and, where known, its offset."""
        offsets = None if self.offsets is None else _spread(self.offsets, self.lengths)
        return _spread(self.starts, self.lengths), offsets


def encode_ids(ids: npt.ArrayLike, offsets: npt.ArrayLike | None = None) -> bytes:
    """The run list of *ids* (within the block, any order), with their *offsets* if given.

    An id given twice is kept once, at its first offset in the order given.
    """
    found = np.asarray(ids, np.int64)
    if found.size and (found.min() < 0 or found.max() >= BLOCK_IDS):
        raise ValueError(f"an id within a block is 0 to {BLOCK_IDS - 1}")
    unique, first = np.unique(found, return_index=True)
    at = None if offsets is None else np.asarray(offsets, np.int64)[first]
    breaks = np.diff(unique) != 1
    if at is not None:
        breaks |= np.diff(at) != 1
    begins = np.flatnonzero(np.concatenate(([True], breaks))) if unique.size else _EMPTY
    lengths = np.diff(np.append(begins, unique.size))
    return encode_runs(Runs(unique[begins], lengths, None if at is None else at[begins]))


def encode_runs(runs: Runs) -> bytes:
    """The shortest encoding of *runs*, which are in order and do not overlap."""
    ends = runs.starts + runs.lengths
    gaps = runs.starts - np.concatenate(([0], ends[:-1]))
    if runs.offsets is None:
        text = bytes([_RUNS]) + _varints(np.stack((gaps, runs.lengths - 1), axis=1).ravel())
        if len(text) <= BITMAP_BYTES:
            return text
        return bytes([_BITMAP]) + np.packbits(mask_of(runs), bitorder="little").tobytes()
    expected = np.concatenate(([0], (runs.offsets + runs.lengths)[:-1]))
    delta = runs.offsets - expected
    zigzag = (delta << 1) ^ (delta >> 63)
    return bytes([_RUNS_AT]) + _varints(np.stack((gaps, runs.lengths - 1, zigzag), axis=1).ravel())


def decode_runs(text: bytes) -> Runs:
    """The runs in *text*; ValueError where it is not a run list."""
    if not text:
        raise ValueError("a run list has at least one byte")
    kind, body = text[0], text[1:]
    if kind == _BITMAP:
        if len(body) != BITMAP_BYTES:
            raise ValueError(f"a bitmap has {BITMAP_BYTES} bytes, not {len(body)}")
        ids = ids_of(body)
        begins = np.flatnonzero(np.diff(ids, prepend=-2) != 1)
        return Runs(ids[begins], np.diff(np.append(begins, ids.size)))
    if kind not in (_RUNS, _RUNS_AT):
        raise ValueError(f"unknown kind of run list: {kind}")
    numbers = _read_varints(body)
    width = 3 if kind == _RUNS_AT else 2
    if numbers.size % width:
        raise ValueError("the run list ends within a run")
    table = numbers.reshape(-1, width)
    lengths = table[:, 1] + 1
    starts = np.cumsum(table[:, 0] + lengths) - lengths
    if starts.size and (table[:, :2].max() >= BLOCK_IDS or starts[-1] + lengths[-1] > BLOCK_IDS):
        raise ValueError("the run list leaves its block")
    if kind == _RUNS:
        return Runs(starts, lengths)
    zigzag = table[:, 2]
    delta = (zigzag >> 1) ^ -(zigzag & 1)
    offsets = np.cumsum(delta + lengths) - lengths
    return Runs(starts, lengths, offsets)


def bitmap_of(text: bytes) -> Bitmap:
    """The ids of a run list as a bitmap; bit i of byte i // 8, lowest first."""
    if text[:1] == bytes([_BITMAP]) and len(text) == 1 + BITMAP_BYTES:
        return np.frombuffer(text, np.uint8, offset=1)
    return np.packbits(mask_of(decode_runs(text)), bitorder="little")


def mask_of(runs: Runs) -> Mask:
    """The ids of runs, one byte each: 1 where the id is in one of them."""
    if runs.starts.size > 64 and 4 * runs.starts.size > runs.count:
        # Many short runs: their ids one by one are faster.
        mask = no_ids()
        mask[_spread(runs.starts, runs.lengths)] = True
        return mask
    ends = runs.starts + runs.lengths
    stretches = np.empty(2 * ends.size + 1, np.int64)  # outside, inside, outside, ...
    stretches[0::2] = np.append(runs.starts, BLOCK_IDS) - np.append(0, ends)
    stretches[1::2] = runs.lengths
    return np.repeat(np.arange(stretches.size) % 2 == 1, stretches)


def no_ids() -> Mask:
    """The empty set, as a mask of its own."""
    return np.zeros(BLOCK_IDS, bool)


def union(masks: Iterable[Mask]) -> Mask:
    """Ids in any of the sets."""
    result = no_ids()
    for mask in masks:
        result |= mask
    return result


def ids_of(bitmap: Bitmap | bytes) -> Longs:
    """The ids set in a bitmap, in order."""
    raw = np.frombuffer(bitmap, np.uint8) if isinstance(bitmap, bytes) else bitmap
    return np.flatnonzero(np.unpackbits(raw, bitorder="little"))


def popcount(bitmap: Bitmap) -> int:
    """How many ids are set in a bitmap."""
    return int(_ONES[bitmap].sum(dtype=np.int64))


def _spread(firsts: Longs, lengths: Longs) -> Longs:
    """The numbers of runs one by one: each run grows by one from its first."""
    before = np.cumsum(lengths) - lengths
    return np.repeat(firsts - before, lengths) + np.arange(int(lengths.sum()))


def _varints(numbers: Longs) -> bytes:
    """Each number in LEB128: seven bits a byte, lowest first, the high bit: more follow."""
    if not numbers.size:
        return b""
    width = 1 + np.searchsorted(_VARINT_STEPS, numbers, "right")
    position = np.arange(int(width.max()))
    groups = (numbers[:, None] >> (7 * position)[None, :]) & 0x7F
    more = position[None, :] < (width - 1)[:, None]
    kept = position[None, :] < width[:, None]
    encoded: bytes = np.where(more, groups | 0x80, groups)[kept].astype(np.uint8).tobytes()
    return encoded


def _read_varints(body: bytes) -> Longs:
    raw = np.frombuffer(body, np.uint8)
    if not raw.size:
        return _EMPTY
    ends = (raw < 0x80).nonzero()[0]
    if not ends.size or ends[-1] != raw.size - 1:
        raise ValueError("the run list ends within a number")
    if ends.size == raw.size:
        return raw.astype(np.int64)
    begins = np.zeros_like(ends)
    begins[1:] = ends[:-1] + 1
    more = ends - begins
    if more.max() > 8:
        raise ValueError("a number in the run list is too long")
    bits = (raw & 0x7F).astype(np.int64)
    numbers: Longs = bits[begins]
    longer, at = more.nonzero()[0], 1
    while longer.size:
        numbers[longer] |= bits[begins[longer] + at] << (7 * at)
        longer = longer[more[longer] > at]
        at += 1
    return numbers
