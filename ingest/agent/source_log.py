"""What an agent's log says about one source: one line for each change of its state.

The first failure is a line, with its reason. While the failure lasts there is a reminder every few
minutes, with a count; then one line when the source works again. Notes are said the same way.
"""

from __future__ import annotations

import logging
import time
from collections.abc import Callable, Iterable
from textwrap import shorten

from acktrail.errors import AcktrailError

log = logging.getLogger(__name__)

REMIND_S = 300.0
"""A failure that lasts, and a note that comes and goes, is said again after so long."""
OTHER_REASON_S = 60.0
"""A failure that lasts for another reason than the one said last is said after so long."""
_LONGEST = 500
"""Characters of an error on its line."""


class SourceLog:
    """The lines about one source."""

    def __init__(self, source: str, clock: Callable[[], float] = time.monotonic) -> None:
        self._about = {"source": source}
        self._clock = clock
        self._failures = 0
        self._began = 0.0
        self._said_at = 0.0
        self._said = ""
        self._notes: set[str] = set()
        self._noted_at: dict[str, float] = {}
        self._open_notes: set[str] = set()
        """Notes that were said and still hold."""

    def failed(self, error: Exception) -> None:
        """The source failed, and will be tried again."""
        now, said = self._clock(), sentence(error)
        self._failures += 1
        first = self._failures == 1
        if first:
            self._began = now
        elif now - self._said_at < (REMIND_S if said == self._said else OTHER_REASON_S):
            return
        self._said_at, self._said = now, said
        expected = isinstance(error, AcktrailError | OSError)
        count = "" if first else f"Still failing, {self._count(now)}: "
        log.warning(
            *("%s%s Will try again.", count, said),
            extra=self._about,
            exc_info=None if expected else error,
        )

    def worked(self) -> None:
        """The source was read: one line if it had failed before."""
        if self._failures:
            log.info("Works again after %s.", self._count(self._clock()), extra=self._about)
        self._failures = 0

    def stopped(self, error: Exception) -> None:
        """The source failed in a way that trying again cannot cure."""
        log.error("%s This source has stopped.", sentence(error), extra=self._about)

    def overtaken(self, other: str) -> None:
        """Another process has read the source further."""
        log.info("Read further by %s; reading on from there.", other, extra=self._about)

    def held(self, error: Exception) -> None:
        """Another process reads the source, and was there first."""
        log.error("%s Waiting until that one is gone.", sentence(error), extra=self._about)

    def notes(self, notes: Iterable[str]) -> None:
        """What a person should know about the source now."""
        now, current = self._clock(), set(notes)
        for note in sorted(current - self._notes):
            if now - self._noted_at.get(note, -REMIND_S) >= REMIND_S:
                log.warning("%s", _sentence(note), extra=self._about)
                self._noted_at[note] = now
                self._open_notes.add(note)
        for note in sorted(self._open_notes - current):
            log.info("No longer so: %s", _sentence(note), extra=self._about)
        self._open_notes &= current
        self._noted_at = {n: at for n, at in self._noted_at.items() if now - at < REMIND_S}
        self._notes = current

    def _count(self, now: float) -> str:
        times = "1 failure" if self._failures == 1 else f"{self._failures} failures"
        return f"{times} in {_duration(now - self._began)}"


def sentence(error: Exception) -> str:
    """*error* as one sentence on one line: its kind too where nobody expected it."""
    if isinstance(error, OSError) and error.strerror:
        where = f"{error.filename}: " if error.filename else ""
        return _sentence(f"{where}{error.strerror}")
    text = shorten(str(error), _LONGEST, placeholder=" ...")
    if isinstance(error, AcktrailError) and text:
        return _sentence(text)
    return _sentence(f"{type(error).__name__}: {text}".rstrip(": "))


def _sentence(text: str) -> str:
    return text if text.endswith((".", "?", "!")) else f"{text}."


def _duration(seconds: float) -> str:
    return f"{seconds:.0f} s" if seconds < 120 else f"{seconds / 60:.0f} min"
