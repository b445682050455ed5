"""Which file is this? Decided by its first bytes, so that a name may change and a copy is known.

A file is known by a hash of its first 1,024 bytes. Where these hold no clock time (a banner that
every start prints alike) the window grows, up to 64 KiB, until they do: else two files would be
taken for one, and the second never be read.

A file that does not fill its window yet goes by device, inode and first line; how far it has been
read is also noted under a hash of the very bytes read (a mark), so that its copy or its compressed
successor, which have another inode, are continued and not doubled.
"""

from __future__ import annotations

import hashlib
import re

WINDOW = 1_024
WIDEST = 64 * 1_024
FIRST_LINE = 256
"""A first line longer than this is known by its first bytes alone."""

_CLOCK = re.compile(rb"\d\d:\d\d:\d\d|\b1\d{9}(?:\d{3})?\b")


def window_of(head: bytes) -> int | None:
    """How many of the first bytes make the identity; None while there are too few."""
    size = WINDOW
    while size <= WIDEST:
        if len(head) < size:
            return None
        if size == WIDEST or _CLOCK.search(head, 0, size):
            return size
        size *= 4
    return None


def settled_identity(head: bytes) -> str | None:
    """The identity of a file with these first bytes; None while they do not fill the window.

    Once a file has one, it never changes again.
    """
    size = window_of(head)
    return None if size is None else _digest(head[:size])


def passing_identity(head: bytes, device: int, inode: int) -> str | None:
    """The identity of a shorter file; None while its first line is not complete."""
    end = head.find(b"\n", 0, FIRST_LINE)
    if end < 0 and len(head) < FIRST_LINE:
        return None
    first = head[: end + 1] if end >= 0 else head[:FIRST_LINE]
    return f"{device:x}-{inode:x}-{_digest(first)[:12]}"


def marks(head: bytes, family: str) -> dict[str, int]:
    """For every line end in *head*: the mark under which a reading up to there was noted."""
    running = hashlib.sha256(f"{family}\0".encode())
    found: dict[str, int] = {}
    start = 0
    while (end := head.find(b"\n", start)) >= 0:
        running.update(head[start : end + 1])
        start = end + 1
        found["mark-" + running.copy().hexdigest()[:32]] = start
    if start < len(head):
        running.update(head[start:])
        found["mark-" + running.hexdigest()[:32]] = len(head)
    return found


def mark(read: bytes, family: str) -> str:
    """The mark that says: a file of this family was read exactly this far."""
    return "mark-" + hashlib.sha256(f"{family}\0".encode() + read).hexdigest()[:32]


def _digest(text: bytes) -> str:
    return hashlib.sha256(text).hexdigest()[:32]
