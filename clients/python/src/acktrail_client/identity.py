"""Who a message is: a session and a number in it; see docs/wire.md of acktrail."""

from __future__ import annotations

import secrets
import struct
import time
from collections.abc import Iterable, Sequence

HEADER_NAME = "acktrail"
BLOCK_BITS = 15
BLOCK_IDS = 1 << BLOCK_BITS
VERSION = 1
_TAIL = struct.Struct(">QQ")
_HEADER = struct.Struct(">17sQQ")
HEADER_LENGTH = 17 + _TAIL.size
pack_header = _HEADER.pack

HeaderValue = str | bytes | None
Header = tuple[str, HeaderValue]
Headers = dict[str, HeaderValue] | Sequence[Header]


def new_session() -> str:
    """A session id that carries its start: 48 bits of time, the rest random (as UUIDv7), as hex."""
    random_bits = secrets.randbits(74)
    now_ms = int(time.time() * 1000)
    high = (now_ms & (1 << 48) - 1) << 16 | 0x7000 | random_bits >> 62
    low = 0b10 << 62 | random_bits & (1 << 62) - 1
    return f"{high:016x}{low:016x}"


def header_prefix(session: str) -> bytes:
    """What all headers of *session* begin with; `pack_header` adds number and create time."""
    return bytes([VERSION]) + bytes.fromhex(session)


def read_header(value: object) -> tuple[str, int, int] | None:
    """Session, number and create time in a header's value; None where it is not one of ours."""
    if not isinstance(value, bytes) or len(value) != HEADER_LENGTH or value[0] != VERSION:
        return None
    seq, created_ms = _TAIL.unpack_from(value, 17)
    return value[1:17].hex(), seq, created_ms


def with_header(headers: Headers, own: Header) -> list[Header]:
    """*headers*, which stay as they are, and *own*; of ids of earlier hops only the first."""
    pairs = headers.items() if isinstance(headers, dict) else headers
    kept, origin = [], True
    for pair in pairs:
        if pair[0] == HEADER_NAME:
            if not origin:
                continue
            origin = False
        kept.append(pair)
    kept.append(own)
    return kept


def own_header(headers: Iterable[tuple[str, HeaderValue]] | None) -> bytes | None:
    """The last header of ours: the id that the last hop gave."""
    found = None
    for name, value in headers or ():
        if name == HEADER_NAME and isinstance(value, bytes) and read_header(value) is not None:
            found = value
    return found
