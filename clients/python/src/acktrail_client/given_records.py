"""Many records at once: unbroken runs of offsets, and the ids in headers.

A record's share of the reporter's time is small where whole lists pass through C.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from itertools import groupby
from struct import Struct
from typing import Any

from acktrail_client.identity import (
    BLOCK_BITS,
    BLOCK_IDS,
    HEADER_LENGTH,
    HEADER_NAME,
    VERSION,
    own_header,
)
from acktrail_client.read_offsets import Place, Seen

_ids_of = Struct(">17sQ8x").iter_unpack
_IN_BLOCK = BLOCK_IDS - 1
_OVERHEAD = 400
Ids = dict[tuple[bytes, int], Seen]


def runs_of(places: Sequence[Place], offsets: Sequence[int]) -> Iterator[tuple[Place, int, int]]:
    """Records of one place without a gap: the place, and from and to which record."""
    count = len(offsets)
    whole = range(offsets[0], offsets[0] + count)
    if places.count(places[0]) == count and list(whole) == offsets:
        yield places[0], 0, count
        return
    first = 0
    for at in range(1, count + 1):
        if at == count or places[at] != places[first] or offsets[at] != offsets[at - 1] + 1:
            yield places[first], first, at
            first = at


def note_ids(
    ids: Ids, headers: Sequence[Any], offsets: Sequence[int], epoch: int | None = None
) -> int:
    """Add the ids in *headers* of the records at *offsets* to *ids*; how many there were.

    *epoch*: the leader epoch of the last record, which is the highest.
    """
    values = [_value_of(each) for each in headers]
    if None in values:
        offsets = [at for value, at in zip(values, offsets, strict=True) if value is not None]
    found = list(_ids_of(b"".join([value for value in values if value is not None])))
    blocks = [(prefix, seq >> BLOCK_BITS) for prefix, seq in found]
    first = 0
    for (prefix, block), same in groupby(blocks):
        end = first + sum(1 for _ in same)
        seen = ids.get((prefix[1:], block))
        if seen is None:
            seen = ids[prefix[1:], block] = Seen()
        seen.ids.extend([seq & _IN_BLOCK for _, seq in found[first:end]])
        seen.offsets.extend(offsets[first:end])
        if epoch is not None:
            seen.epoch = epoch if seen.epoch is None else max(seen.epoch, epoch)
        first = end
    return first


def _value_of(headers: Any) -> bytes | None:
    """The value of the id's header: mostly the last one; None where a record has no id."""
    if not headers:
        return None
    name, value = headers[-1]
    if name == HEADER_NAME and value and len(value) == HEADER_LENGTH and value[0] == VERSION:
        return value  # type: ignore[no-any-return]
    return own_header(headers)  # something on the way added headers of its own


def size_of(message: Any) -> int:
    """About how much memory a message takes."""
    content = [message.value(), message.key(), *(value for _, value in message.headers() or ())]
    return _OVERHEAD + sum(len(one) for one in content if isinstance(one, bytes | str))
