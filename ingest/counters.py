"""What an agent has done, per source: received = written + dropped{reason}, always.

Counted when a batch is in the lake, never before. The same counts travel in the commit's note, so
that `acktrail agent status` can add them up from the lake alone.
"""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass, field

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
    running: bool = False
    last_commit_at: float | None = None
    health: Health = field(default_factory=Health)

    def add(self, received: int, written: int, dropped: Mapping[str, int], at: float) -> None:
        """A commit is in the lake."""
        self.received += received
        self.written += written
        self.dropped.update(dropped)
        self.commits += 1
        self.last_commit_at = at

    @property
    def balances(self) -> bool:
        """Whether everything received is accounted for."""
        return self.received == self.written + sum(self.dropped.values())


def commit_note(source: str, received: int, written: int, dropped: Mapping[str, int]) -> str:
    """What a commit says of itself."""
    return json.dumps(
        {"source": source, "received": received, "written": written, "dropped": dict(dropped)}
    )
