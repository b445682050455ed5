"""Sets of ids of one block: packed in tables (4 KiB), unpacked (one byte an id) to reckon with."""

from __future__ import annotations

from collections.abc import Iterable

import numpy as np
import numpy.typing as npt

from acktrail.audit.wire.identity import BLOCK_IDS
from acktrail.audit.wire.runs import Runs

Mask = npt.NDArray[np.bool_]
Packed = npt.NDArray[np.uint8]
Longs = npt.NDArray[np.int64]

_ONES = np.array([bin(byte).count("1") for byte in range(256)], np.uint8)


def empty() -> Mask:
    """No id."""
    return np.zeros(BLOCK_IDS, bool)


def unpack(bitmap: bytes) -> Mask:
    """The set in a packed bitmap."""
    return np.unpackbits(np.frombuffer(bitmap, np.uint8), bitorder="little").view(bool)


def pack(mask: Mask) -> bytes:
    """The packed bitmap of a set."""
    packed: bytes = np.packbits(mask, bitorder="little").tobytes()
    return packed


def popcount(bitmap: Packed) -> int:
    """Bits set in a packed bitmap."""
    return int(_ONES[bitmap].sum(dtype=np.int64))


def union(masks: Iterable[Mask]) -> Mask:
    """Ids in any of the sets."""
    result = empty()
    for mask in masks:
        result |= mask
    return result


def listed(runs: Runs) -> tuple[Longs, Longs | None]:
    """Every id of a run list and, where known, its offset."""
    within = np.arange(runs.count) - np.repeat(np.cumsum(runs.lengths) - runs.lengths, runs.lengths)
    ids = np.repeat(runs.starts, runs.lengths) + within
    if runs.offsets is None:
        return ids, None
    return ids, np.repeat(runs.offsets, runs.lengths) + within
