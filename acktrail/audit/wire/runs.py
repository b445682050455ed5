"""Run lists: the ids of one block as runs, with their offsets where they are known.

Ids are nearly contiguous, so a set of them is a short list of runs. Three kinds, told by the first
byte: 0 runs, 1 a bitmap (for sets that are no runs at all), 2 runs with offsets: within a run ids
and offsets both grow by one. All numbers are LEB128 varints. See docs/wire.md.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from acktrail.audit.wire.identity import BLOCK_IDS

BITMAP_BYTES = BLOCK_IDS // 8

Longs = npt.NDArray[np.int64]
Bytes = npt.NDArray[np.uint8]

_RUNS, _BITMAP, _RUNS_AT = 0, 1, 2
_EMPTY: Longs = np.empty(0, np.int64)


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
        listed = np.stack((gaps, runs.lengths - 1), axis=1)
        text = bytes([_RUNS]) + _varints(listed.ravel())
        if len(text) <= BITMAP_BYTES:
            return text
        return bytes([_BITMAP]) + _bitmap(runs).tobytes()
    expected = np.concatenate(([0], (runs.offsets + runs.lengths)[:-1]))
    delta = runs.offsets - expected
    zigzag = (delta << 1) ^ (delta >> 63)
    return bytes([_RUNS_AT]) + _varints(np.stack((gaps, runs.lengths - 1, zigzag), axis=1).ravel())


def encode_bitmap(bitmap: Bytes | bytes) -> bytes:
    """The run list of a *bitmap* of 4,096 bytes."""
    return encode_ids(ids_of(bitmap))


def decode_runs(text: bytes) -> Runs:
    """The runs in *text*; ValueError where it is no run list."""
    if not text:
        raise ValueError("a run list has at least one byte")
    kind, body = text[0], text[1:]
    if kind == _BITMAP:
        if len(body) != BITMAP_BYTES:
            raise ValueError(f"a bitmap has {BITMAP_BYTES} bytes, not {len(body)}")
        return decode_runs(_as_runs(np.frombuffer(body, np.uint8)))
    if kind not in (_RUNS, _RUNS_AT):
        raise ValueError(f"unknown kind of run list: {kind}")
    numbers = _read_varints(body)
    width = 3 if kind == _RUNS_AT else 2
    if numbers.size % width:
        raise ValueError("the run list ends within a run")
    table = numbers.reshape(-1, width)
    lengths = table[:, 1] + 1
    starts = np.cumsum(table[:, 0] + lengths) - lengths
    if starts.size and (starts[-1] + lengths[-1] > BLOCK_IDS or int(table[:, :2].min()) < 0):
        raise ValueError("the run list leaves its block")
    if kind == _RUNS:
        return Runs(starts, lengths)
    zigzag = table[:, 2]
    delta = (zigzag >> 1) ^ -(zigzag & 1)
    offsets = np.cumsum(delta + lengths) - lengths
    return Runs(starts, lengths, offsets)


def bitmap_of(text: bytes) -> Bytes:
    """The ids of a run list as a bitmap; bit i of byte i // 8, lowest first."""
    if text[:1] == bytes([_BITMAP]) and len(text) == 1 + BITMAP_BYTES:
        return np.frombuffer(text, np.uint8, offset=1)
    return _bitmap(decode_runs(text))


def mask_of(runs: Runs) -> npt.NDArray[np.bool_]:
    """The ids of runs, one byte each: 1 where the id is in one of them."""
    ends = runs.starts + runs.lengths
    stretches = np.empty(2 * ends.size + 1, np.int64)  # outside, inside, outside, ...
    stretches[0::2] = np.append(runs.starts, BLOCK_IDS) - np.append(0, ends)
    stretches[1::2] = runs.lengths
    return np.repeat(np.arange(stretches.size) % 2 == 1, stretches)


def ids_of(bitmap: Bytes | bytes) -> Longs:
    """The ids set in a bitmap, in order."""
    raw = np.frombuffer(bitmap, np.uint8) if isinstance(bitmap, bytes) else bitmap
    return np.flatnonzero(np.unpackbits(raw, bitorder="little"))


def _bitmap(runs: Runs) -> Bytes:
    return np.packbits(mask_of(runs), bitorder="little")


def _as_runs(bitmap: Bytes) -> bytes:
    ids = ids_of(bitmap)
    begins = np.flatnonzero(np.diff(ids, prepend=-2) != 1)
    lengths = np.diff(np.append(begins, ids.size))
    starts = ids[begins]
    gaps = starts - np.concatenate(([0], (starts + lengths)[:-1]))
    return bytes([_RUNS]) + _varints(np.stack((gaps, lengths - 1), axis=1).ravel())


def _varints(numbers: Longs) -> bytes:
    """Each number in LEB128: seven bits a byte, lowest first, the high bit: more follow."""
    if not numbers.size:
        return b""
    width = np.maximum(1, (_bit_length(numbers) + 6) // 7)
    position = np.arange(int(width.max()))
    groups = (numbers[:, None] >> (7 * position)[None, :]) & 0x7F
    more = position[None, :] < (width - 1)[:, None]
    kept = position[None, :] < width[:, None]
    encoded: bytes = np.where(more, groups | 0x80, groups)[kept].astype(np.uint8).tobytes()
    return encoded


def _bit_length(numbers: Longs) -> Longs:
    rest, bits = numbers.copy(), np.zeros(numbers.shape, np.int64)
    for step in (32, 16, 8, 4, 2, 1):
        big = rest >> step > 0
        bits[big] += step
        rest[big] >>= step
    return bits + (rest > 0)


def _read_varints(body: bytes) -> Longs:
    raw = np.frombuffer(body, np.uint8)
    if not raw.size:
        return _EMPTY
    last = raw < 0x80
    if not last[-1]:
        raise ValueError("the run list ends within a number")
    begins = np.concatenate(([0], np.flatnonzero(last)[:-1] + 1))
    within = np.arange(raw.size) - np.repeat(begins, np.diff(np.append(begins, raw.size)))
    if within.max() > 8:
        raise ValueError("a number in the run list is too long")
    numbers: Longs = np.add.reduceat((raw & 0x7F).astype(np.int64) << (7 * within), begins)
    return numbers
