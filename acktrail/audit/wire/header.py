"""The record header that carries a message's identity: 33 bytes."""

from __future__ import annotations

import struct
from collections.abc import Iterable
from dataclasses import dataclass

HEADER_NAME = "acktrail"
VERSION = 1

_LAYOUT = struct.Struct(">B16sQQ")


@dataclass(frozen=True)
class Header:
    """The session (32 hex digits), the number of the message in it, and its create time."""

    session: str
    seq: int
    created_ms: int


def encode_header(header: Header) -> bytes:
    """The header's value: version, session, seq and create time, big endian."""
    session = bytes.fromhex(header.session)
    if len(session) != 16:
        raise ValueError(f"a session is 16 bytes, not {len(session)}")
    return _LAYOUT.pack(VERSION, session, header.seq, header.created_ms)


def is_header(name: str, value: object) -> bool:
    """Whether a record's header is one of ours: another length or version is somebody else's."""
    return (
        name == HEADER_NAME
        and isinstance(value, bytes)
        and len(value) == _LAYOUT.size
        and value[0] == VERSION
    )


def own_header(headers: Iterable[tuple[str, object]] | None) -> bytes | None:
    """The identity of a record: of several headers of ours the last, which the last hop added.

    Where none is ours, the last of that name; None where there is none.
    """
    ours: bytes | None = None
    other: bytes | None = None
    for name, value in headers or ():
        if name != HEADER_NAME or not isinstance(value, bytes):
            continue
        if is_header(name, value):
            ours = value
        else:
            other = value
    return other if ours is None else ours


def decode_header(value: bytes | None) -> Header | None:
    """The header in *value*; None where it is not one of ours (other length or version)."""
    if value is None or not is_header(HEADER_NAME, value):
        return None
    _, session, seq, created_ms = _LAYOUT.unpack(value)
    return Header(session.hex(), seq, created_ms)
