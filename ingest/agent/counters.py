"""What an agent has done, per source: received = written + dropped{reason}, always.

Counted when a batch is in the lake, never before. The same counts travel in the commit's note, so
that `acktrail agent status` can add them up from the lake alone.
"""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from acktrail.contracts.vocabulary import SourceState
from ingest.source import Health


@dataclass
class SourceCounts:
    """The account of one source."""

    source: str
    received: int = 0
    written: int = 0
    dropped: Counter[str] = field(default_factory=Counter)
    commits: int = 0
    failures: Counter[str] = field(default_factory=Counter)
    """Errors by class name; each is followed by another try, or by the source's stop."""
    state: SourceState | None = None
    """None until it was first read or failed."""
    error: str = ""
    """Why it is not up."""
    last_commit_at: float | None = None
    health: Health = field(default_factory=Health)

    def add(self, received: int, written: int, dropped: Mapping[str, int], at: float) -> None:
        """A commit is in the lake."""
        self.received += received
        self.written += written
        self.dropped.update(dropped)
        self.commits += 1
        self.last_commit_at = at

    def stands(self, state: SourceState, error: str = "") -> None:
        """From now on the source is in *state*."""
        self.state, self.error = state, error

    @property
    def running(self) -> bool:
        """Whether the source is read."""
        return self.state is SourceState.UP

    @property
    def balances(self) -> bool:
        """Whether everything received is accounted for."""
        return self.received == self.written + sum(self.dropped.values())


def commit_note(
    source: str,
    received: int,
    written: int,
    dropped: Mapping[str, int],
    writer: Mapping[str, Any] | None = None,
) -> str:
    """What a commit says of itself: its account, and the process that made it."""
    account = {"source": source, "received": received, "written": written, "dropped": dict(dropped)}
    return json.dumps(account if writer is None else {**account, "writer": dict(writer)})


def read_note(text: object) -> dict[str, Any] | None:
    """What *commit_note* wrote; None for commits of others."""
    if not isinstance(text, str):
        return None
    try:
        note = json.loads(text)
    except ValueError:
        return None
    wanted = {"source", "received", "written", "dropped"}
    return note if isinstance(note, dict) and wanted <= set(note) else None
