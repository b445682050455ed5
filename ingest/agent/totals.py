"""The accounts of every source, added up from the notes of the lake's own commits.

There is no other state: what an agent received, wrote and dropped stands in the commit that wrote
it, so a crash can neither lose nor double a count. Commits that housekeeping has cleaned from the
log (after 30 days) no longer count; `since` says how far back the accounts reach.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta

from acktrail.contracts import Table
from acktrail.lake import Lake
from ingest.agent.counters import read_note

RATE_WINDOW = timedelta(hours=1)


@dataclass
class Account:
    """What one source has brought, by the lake's log."""

    source: str
    received: int = 0
    written: int = 0
    dropped: Counter[str] = field(default_factory=Counter)
    commits: int = 0
    lately: int = 0
    """Received within the last hour."""
    since: datetime | None = None
    last_commit_at: datetime | None = None

    @property
    def balances(self) -> bool:
        """Whether everything received is accounted for."""
        return self.received == self.written + sum(self.dropped.values())

    def add(self, note: dict[str, object], at: datetime, as_of: datetime) -> None:
        """One commit's note."""
        received, written, dropped = note["received"], note["written"], note["dropped"]
        assert isinstance(received, int)
        assert isinstance(written, int)
        assert isinstance(dropped, dict)
        self.received += received
        self.written += written
        self.dropped.update(dropped)
        self.commits += 1
        if as_of - at <= RATE_WINDOW:
            self.lately += received
        self.since = at if self.since is None else min(self.since, at)
        self.last_commit_at = at if self.last_commit_at is None else max(self.last_commit_at, at)


def accounts(lake: Lake, tables: Iterable[Table], as_of: datetime) -> dict[str, Account]:
    """Every source that the commits of *tables* name."""
    found: dict[str, Account] = {}
    for table in tables:
        delta = lake.open(table)
        for commit in delta.history() if delta is not None else ():
            note = read_note(commit.get("note"))
            if note is None:
                continue
            source = str(note["source"])
            at = datetime.fromtimestamp(commit["timestamp"] / 1000, UTC)
            found.setdefault(source, Account(source)).add(note, at, as_of)
    return found
