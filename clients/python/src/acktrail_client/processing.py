"""How far a member has processed a partition: the lowest offset that it has still to deal with."""

from __future__ import annotations

from collections import deque

Place = tuple[str, int]
METADATA = "acktrail:processed="


class Progress:
    """One partition: what was given to the application, and what of it is done."""

    def __init__(self) -> None:
        self._given: deque[int] = deque()
        self._done: set[int] = set()
        self.next: int | None = None
        """The next offset to process; None while nothing was given."""
        self.dirty = False

    def give(self, offset: int) -> None:
        """The application was given the record at *offset*; going back begins again there."""
        if self._given and offset <= self._given[-1]:
            self._given = deque(at for at in self._given if at < offset)
            self._done = {at for at in self._done if at < offset}
        if not self._given:
            self.next = offset
        self._given.append(offset)

    def done(self, offset: int) -> None:
        """The record at *offset* needs nothing more."""
        if not self._given or offset < self._given[0]:
            return  # of an earlier assignment, or said before
        self._done.add(offset)
        while self._given and self._given[0] in self._done:
            at = self._given.popleft()
            self._done.discard(at)
            self.next = self._given[0] if self._given else at + 1
            self.dirty = True

    def all_done(self) -> None:
        """Everything that was given needs nothing more."""
        if self._given:
            self.next = self._given[-1] + 1
            self._given.clear()
            self._done.clear()
            self.dirty = True
