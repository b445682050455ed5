"""What an agent writes down of its sources: the table `source_states`.

A row per source when it has changed, and for all of them every ten minutes, so that a process that
is gone is missed. A change of state is written within thirty seconds, other words for the same
state (an error, notes) within five minutes: the table grows by the clock, not with the polls.
"""

from __future__ import annotations

import logging
import socket
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime
from typing import Any

from acktrail.contracts.arrow import rows
from acktrail.contracts.runs import SOURCE_STATES
from acktrail.contracts.vocabulary import SourceState
from acktrail.errors import AcktrailError
from acktrail.lake import Lake
from acktrail.logs.redact import redact
from acktrail.settings.sources import SourceSettings
from ingest.agent.counters import SourceCounts
from ingest.agent.writer import Writer

log = logging.getLogger(__name__)

HEARTBEAT_S = 600.0
STATE_S = 30.0
WORDS_S = 300.0
FIRST_S = 1.0
"""The first commit waits this long, so that it holds all sources."""
_MOST_NOTES = 20
_LONGEST = 500
"""Characters kept of an error or a note."""


@dataclass(frozen=True)
class SourcePlace:
    """What a row says of a source beside its name."""

    cluster: str
    kind: str
    host: str
    """Host whose files it reads; empty for a source that any host can read."""


def place_of(settings: SourceSettings, cluster: str) -> SourcePlace:
    """The place of the source that *settings* describe."""
    host = getattr(settings, "host", None)
    if host is None and hasattr(settings, "paths"):
        host = socket.gethostname()
    return SourcePlace(settings.cluster or cluster, settings.kind, host or "")


class StateLog:
    """Writes the states of an agent's sources, seldom enough; asked from one thread."""

    def __init__(
        self, lake: Lake, places: Mapping[str, SourcePlace], writer: Writer, now: float
    ) -> None:
        self._lake = lake
        self._places = places
        self._writer = writer
        self._known: dict[str, _Told] = {}
        self._next_state = now + FIRST_S
        self._next_words = self._next_heartbeat = now

    def write_due(self, counts: Iterable[SourceCounts], now: float) -> None:
        """Write what has changed, or everything when a heartbeat is due; *now* in seconds."""
        if now < self._next_state:
            return
        found = [_told(c) for c in counts if c.state is not None]
        beats, words = now >= self._next_heartbeat, now >= self._next_words
        due = [told for told in found if beats or self._differs(told, words)]
        if not due:
            return
        self._next_state = now + STATE_S
        if self._write(due):
            self._next_words = now + WORDS_S if words else self._next_words
            self._next_heartbeat = now + HEARTBEAT_S if beats else self._next_heartbeat

    def write_last(self, counts: Iterable[SourceCounts]) -> None:
        """Write how all sources stand at the end: what was up has ended in good order."""
        found = [_told(c) for c in counts if c.state is not None]
        ended = [
            replace(t, state=SourceState.ENDED) if t.state is SourceState.UP else t for t in found
        ]
        if ended:
            self._write(ended)

    def _differs(self, told: _Told, words: bool) -> bool:
        known = self._known.get(told.source)
        if known is None or known.state is not told.state:
            return True
        # An input that is not found now, or is again, is a change that a check waits for.
        if bool(known.unread) != bool(told.unread):
            return True
        return words and known != told

    def _write(self, due: Sequence[_Told]) -> bool:
        at = datetime.now(UTC)
        who = {"agent": self._writer.key, "command": self._writer.command}
        stamp = {**who, "at": at, "day": f"{at:%Y-%m-%d}"}
        made = [{**told.row(), **vars(self._places[told.source]), **stamp} for told in due]
        try:
            self._lake.append(SOURCE_STATES, rows(SOURCE_STATES, made))
        except (AcktrailError, OSError) as error:
            log.warning(
                "The states of the sources were not written; will try again.",
                extra={"error": str(error)},
            )
            return False
        self._known.update((told.source, told) for told in due)
        return True


@dataclass(frozen=True)
class _Told:
    """What a row says; the time of the last commit alone makes no new one."""

    source: str
    state: SourceState
    error: str
    notes: tuple[str, ...]
    unread: tuple[str, ...]
    last_commit_at: float | None = field(compare=False)

    def row(self) -> dict[str, Any]:
        """As `source_states` holds it: short, and without credentials."""
        last = self.last_commit_at
        return {
            "source": self.source,
            "state": self.state.value,
            "error": _kept(self.error) if self.error else None,
            "notes": [_kept(note) for note in self.notes],
            "unread": [_kept(path) for path in self.unread],
            "last_commit_at": None if last is None else datetime.fromtimestamp(last, UTC),
        }


def _told(counts: SourceCounts) -> _Told:
    assert counts.state is not None
    return _Told(
        counts.source,
        counts.state,
        counts.error,
        tuple(counts.health.notes[:_MOST_NOTES]),
        tuple(counts.health.unread[:_MOST_NOTES]),
        counts.last_commit_at,
    )


def _kept(text: str) -> str:
    whole = redact(text)
    return whole if len(whole) <= _LONGEST else whole[: _LONGEST - 1] + "…"
