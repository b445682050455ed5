"""Which process wrote a commit, and which of two processes on one source goes on.

Every commit of an agent names its writer in the note. A process that lost a race for a source reads
on from where the other one came to. If it keeps losing against a process that started earlier, it
waits until that one is gone.
"""

from __future__ import annotations

import os
import socket
from collections import deque
from collections.abc import Mapping
from dataclasses import asdict, dataclass
from datetime import UTC, datetime
from typing import Any

from acktrail.contracts import Table
from acktrail.lake import Lake
from ingest.agent.counters import read_note

RACES = 3
"""Races lost within *_WITHIN_S* after which the later process yields."""
_WITHIN_S = 600.0
_LOOKED_AT = 50
"""Newest commits of a table in which the other writer is looked for."""


@dataclass(frozen=True)
class Writer:
    """A process that reads sources into the lake."""

    host: str
    pid: int
    command: str
    """`agent`, `agent --once` or `watch`; never its arguments, which may hold secrets."""
    since: str
    """When it started, in ISO 8601, UTC."""

    def __str__(self) -> str:
        return f"`acktrail {self.command}` on {self.host}, process {self.pid}, since {self.since}"

    @property
    def key(self) -> str:
        """Names the process in `source_states`."""
        return f"{self.host}:{self.pid}:{self.since}"

    def note(self) -> dict[str, Any]:
        """As it stands in the note of a commit."""
        return asdict(self)

    def yields_to(self, other: Writer | None) -> bool:
        """Whether *other* was there first; one that does not name itself counts as first."""
        if other is None:
            return True
        return (other.since, other.host, other.pid) < (self.since, self.host, self.pid)


def this_process(command: str) -> Writer:
    """This process, running `acktrail` *command*, started now."""
    now = datetime.now(UTC).isoformat(timespec="milliseconds").replace("+00:00", "Z")
    return Writer(socket.gethostname(), os.getpid(), command, now)


@dataclass(frozen=True)
class OtherCommit:
    """The newest commit of another process for a source."""

    writer: Writer | None
    """None where the note does not name it."""
    at: datetime


def other_commit(lake: Lake, table: Table, source: str, me: Writer) -> OtherCommit | None:
    """The newest commit for *source* in *table* that was not ours; None where none is found."""
    delta = lake.open(table)
    for commit in delta.history(_LOOKED_AT) if delta is not None else ():
        note = read_note(commit.get("note"))
        if note is None or note["source"] != source:
            continue
        writer = _writer(note.get("writer"))
        if writer != me:
            return OtherCommit(writer, datetime.fromtimestamp(commit["timestamp"] / 1000, UTC))
    return None


def _writer(noted: object) -> Writer | None:
    if not isinstance(noted, Mapping):
        return None
    try:
        return Writer(**noted)
    except TypeError:
        return None


class Races:
    """The races that one source has lost against other processes."""

    def __init__(self) -> None:
        self._lost: deque[float] = deque()

    def lost(self, now: float) -> bool:
        """One more at *now* (seconds); whether that is too many to be chance."""
        self._lost.append(now)
        while self._lost[0] < now - _WITHIN_S:
            self._lost.popleft()
        return len(self._lost) >= RACES
