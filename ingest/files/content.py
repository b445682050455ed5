"""The bytes of a file at any position, plain or compressed."""

from __future__ import annotations

import contextlib
import os
import zlib
from typing import Protocol

_CHUNK = 8 * 1024
"""Compressed bytes taken at a time: text can grow a thousandfold."""
_GZIP_MAGIC = b"\x1f\x8b"


class Content(Protocol):
    """Bytes by position. Positions count the decompressed content."""

    def read_at(self, position: int, size: int) -> bytes:
        """Up to *size* bytes from *position*; fewer, or none, at the end."""

    def size(self) -> int | None:
        """Bytes there are now; None where only reading it shows (compressed)."""

    def close(self) -> None:
        """Let go of the file."""


def open_content(path: str) -> tuple[Content, os.stat_result]:
    """The file's content, and the status of exactly the file that was opened."""
    descriptor = os.open(path, os.O_RDONLY | os.O_CLOEXEC | os.O_NONBLOCK)
    status = os.fstat(descriptor)
    if os.pread(descriptor, 2, 0) == _GZIP_MAGIC:
        return GzipContent(descriptor), status
    return PlainContent(descriptor), status


class PlainContent:
    """A file as it is."""

    def __init__(self, descriptor: int) -> None:
        self.descriptor = descriptor

    def read_at(self, position: int, size: int) -> bytes:
        """Up to *size* bytes from *position*."""
        return os.pread(self.descriptor, size, position)

    def size(self) -> int | None:
        """Bytes there are now."""
        return os.fstat(self.descriptor).st_size

    def close(self) -> None:
        """Close the file."""
        with contextlib.suppress(OSError):
            os.close(self.descriptor)


class GzipContent:
    """A compressed file, read forwards; going back starts from its beginning.

    A file that ends too early gives what can be decompressed, then nothing, and is not `complete`:
    it may still be written. One whose bytes are wrong says so in `damaged`.
    """

    def __init__(self, descriptor: int) -> None:
        self.descriptor = descriptor
        self.damaged = ""
        self._restart()

    def _restart(self) -> None:
        self._raw = 0
        self._at = 0
        self._ready = b""
        self._decoder = zlib.decompressobj(wbits=31)
        self.complete = False

    def read_at(self, position: int, size: int) -> bytes:
        """Up to *size* decompressed bytes from *position*."""
        if position < self._at:
            self._restart()
        self._forget_before(position)
        while self._at + len(self._ready) < position + size and self._more():
            self._forget_before(position)
        return self._ready[:size] if self._at == position else b""

    def _forget_before(self, position: int) -> None:
        passed = min(len(self._ready), position - self._at)
        self._ready = self._ready[passed:]
        self._at += passed

    def _more(self) -> bool:
        """Decompress one more piece; False where there is none now."""
        raw = os.pread(self.descriptor, _CHUNK, self._raw)
        if not raw or self.damaged:
            return False
        try:
            self._ready += self._decoder.decompress(raw)
        except zlib.error as error:
            self.damaged = str(error)
            return False
        self._raw += len(raw)
        self.complete = self._decoder.eof
        if self._decoder.eof:
            self._raw -= len(self._decoder.unused_data)
            self._decoder = zlib.decompressobj(wbits=31)
            if os.pread(self.descriptor, 2, self._raw) != _GZIP_MAGIC:
                self._raw = os.fstat(self.descriptor).st_size  # padding after the last member
        return True

    def size(self) -> int | None:
        """Unknown until read."""
        return None

    def close(self) -> None:
        """Close the file."""
        with contextlib.suppress(OSError):
            os.close(self.descriptor)
