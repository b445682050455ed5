"""One file on disk, and how far the text it carries has been read."""

from __future__ import annotations

import os
from dataclasses import dataclass

from ingest.files.content import GzipContent, open_content
from ingest.files.file_identity import WIDEST, WINDOW, window_of

Key = tuple[int, int]
"""Device and inode."""
BLOCK = 1024 * 1024
"""Bytes read of a file at a time."""


@dataclass
class Track:
    """How far one text has been read, whatever file carries it now."""

    app_id: str
    file_id: str
    began: int | None
    """Where the lake stands, batches handed over included: the next batch begins here."""
    read_to: int
    committed: int | None = None
    """Where the lake stands for sure."""
    settled: bool = True
    """False while the text is too short to be known by its first bytes."""
    promoted_from: Track | None = None
    """The track under which this text was known while it was short; moved in the next commit."""


class Stream:
    """One file. Its name may change; device and inode say that it is the same."""

    def __init__(self, path: str, now: float) -> None:
        self.content, status = open_content(path)
        self.path = path
        self.key: Key = (status.st_dev, status.st_ino)
        self.track: Track | None = None
        self.head = b""
        self.vanished = False
        self.exhausted = False
        """Compressed, and read to its end."""
        self.seen_size = 0
        self.scanned_size = -1
        self.scanned_closed = False
        self.skip_to: int | None = None
        """Inside a line too long to keep: how far its end has been looked for."""
        self._signature = (status.st_size, status.st_mtime_ns)
        self.changed_at = min(now, status.st_mtime)
        self.refresh_head()

    @property
    def compressed(self) -> bool:
        """Whether positions count decompressed bytes."""
        return isinstance(self.content, GzipContent)

    @property
    def complete(self) -> bool:
        """Compressed, and its end was seen: nothing will be added."""
        return isinstance(self.content, GzipContent) and self.content.complete

    @property
    def damaged(self) -> str:
        """Why a compressed file cannot be read further; empty where it can."""
        return self.content.damaged if isinstance(self.content, GzipContent) else ""

    def changed(self, status: os.stat_result, now: float) -> bool:
        """Whether the file is not as it was at the last look."""
        signature = (status.st_size, status.st_mtime_ns)
        if signature == self._signature:
            return False
        self._signature = signature
        self.changed_at = now
        self.exhausted = False
        if self.compressed:
            self.reopen()
        return True

    def reopen(self) -> None:
        """Open the file again by its name: a compressed one was still being written."""
        try:
            content, status = open_content(self.path)
        except OSError:
            return
        if (status.st_dev, status.st_ino) != self.key:
            content.close()
            return
        self.content.close()
        self.content = content

    def refresh_head(self) -> bool:
        """Read the first bytes again; False where they are not those known before."""
        before = self.head
        head = self.content.read_at(0, WINDOW)
        size = WINDOW
        while len(head) == size and window_of(head) is None and size < WIDEST:
            size *= 4
            head = self.content.read_at(0, size)
        if len(head) == WIDEST and not head.strip(b"\0"):
            head = self._behind_zeros()
        self.head = head
        return head[: len(before)] == before

    def _behind_zeros(self) -> bytes:
        """The first bytes behind a hole of zeros; nothing while there are too few to tell."""
        at, piece = 0, b""
        while not piece:
            read = self.content.read_at(at, 16 * WIDEST)
            if not read:
                return b""
            piece = read.lstrip(b"\0")
            at += len(read) - len(piece)
        head = self.content.read_at(at, WIDEST)
        return head if window_of(head) is not None else b""

    def read(self, size: int) -> bytes:
        """Up to *size* bytes from where its text has been read to."""
        assert self.track is not None, "only identified files are read"
        if not self.track.settled:
            # Beyond the known first bytes the text gets another identity: not in one commit.
            size = min(size, len(self.head) - self.track.read_to)
        return self.content.read_at(self.track.read_to, size) if size > 0 else b""

    def idle_s(self, now: float) -> float:
        """Seconds since the file last changed."""
        return now - self.changed_at
