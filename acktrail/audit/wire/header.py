"""The record header that carries a message's identity: 33 bytes."""

from __future__ import annotations

import struct
from dataclasses import dataclass

HEADER_NAME = "acktrail"
VERSION = 1

_LAYOUT = struct.Struct(">B16sQQ")


@dataclass(frozen=True)
class Header:
    """What the header says: the session (32 hex digits), the number in it, and the create time."""

    session: str
    seq: int
    created_ms: int


def encode_header(header: Header) -> bytes:
    """The header's value: version, session, seq and create time, big endian."""
    session = bytes.fromhex(header.session)
    if len(session) != 16:
        raise ValueError(f"a session is 16 bytes, not {len(session)}")
    return _LAYOUT.pack(VERSION, session, header.seq, header.created_ms)


def decode_header(value: bytes | None) -> Header | None:
    """The header in *value*; None where it is not one of ours (other length or version)."""
    if value is None or len(value) != _LAYOUT.size or value[0] != VERSION:
        return None
    _, session, seq, created_ms = _LAYOUT.unpack(value)
    return Header(session.hex(), seq, created_ms)
