"""Run lists: sets of ids of one block, with offsets where known; see docs/wire.md of acktrail.

In plain Python: an application needs nothing but confluent-kafka.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from acktrail_client.identity import BLOCK_IDS

_BITMAP_BYTES = BLOCK_IDS // 8


def encode_ids(ids: Iterable[int]) -> bytes:
    """The run list of *ids*, which are in order and each there once."""
    out = bytearray(b"\x00")
    end, first, last = 0, -1, -2
    for number in ids:
        if number != last + 1:
            if first >= 0:
                _put(out, first - end)
                _put(out, last - first)
                end = last + 1
            first = number
        last = number
    if first >= 0:
        _put(out, first - end)
        _put(out, last - first)
    if len(out) <= _BITMAP_BYTES:
        return bytes(out)
    return b"\x01" + _bitmap(ids)


def encode_range(first: int, last: int) -> bytes:
    """The run list of all ids from *first* to *last*."""
    out = bytearray(b"\x00")
    _put(out, first)
    _put(out, last - first)
    return bytes(out)


def encode_offsets(ids: Sequence[int], offsets: Sequence[int]) -> bytes:
    """The run list of *ids* and their *offsets*, in the order of ids, each id once."""
    out = bytearray(b"\x02")
    if not ids:
        return bytes(out)
    end = after = 0
    first, offset = ids[0], offsets[0]
    number, at = first - 1, offset - 1  # of the run so far, the last
    for number_now, at_now in zip(ids, offsets, strict=True):
        if number_now == number + 1 and at_now == at + 1:
            number, at = number_now, at_now
            continue
        _put_run(out, first - end, number - first, offset - after)
        end, after = number + 1, at + 1
        first = number = number_now
        offset = at = at_now
    _put_run(out, first - end, number - first, offset - after)
    return bytes(out)


def _put_run(out: bytearray, gap: int, length: int, delta: int) -> None:
    zigzag = delta << 1 if delta >= 0 else -delta * 2 - 1
    if (gap | length | zigzag) < 0x80:
        out += bytes((gap, length, zigzag))
    else:
        _put(out, gap)
        _put(out, length)
        _put(out, zigzag)


def _put(out: bytearray, number: int) -> None:
    """One number in LEB128: seven bits a byte, lowest first, the high bit: more follow."""
    while number > 0x7F:
        out.append(number & 0x7F | 0x80)
        number >>= 7
    out.append(number)


def _bitmap(ids: Iterable[int]) -> bytes:
    bits = bytearray(_BITMAP_BYTES)
    for number in ids:
        bits[number >> 3] |= 1 << (number & 7)
    return bytes(bits)


def ids_without_offsets(text: bytes) -> bytes:
    """A run list with offsets as one without them."""
    numbers: list[int] = []
    value = shift = 0
    for byte in text[1:]:
        value |= (byte & 0x7F) << shift
        shift += 7
        if byte < 0x80:
            numbers.append(value)
            value = shift = 0
    ids: list[int] = []
    end = 0
    for gap, length in zip(numbers[0::3], numbers[1::3], strict=True):
        first = end + gap
        end = first + length + 1
        ids += range(first, end)
    return encode_ids(ids)
