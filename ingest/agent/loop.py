"""The loop: every source in a thread of its own, and what is done when one fails.

A source that fails is closed, opened again after a pause and continued from the position in the
lake; the others go on. Where another process reads the same source, the one that lost a race reads
on from the lake's position; the later one waits if that goes on. Only an error that trying again
cannot cure stops a source.
"""

from __future__ import annotations

import random
import threading
import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta

from acktrail.contracts import Table
from acktrail.contracts.vocabulary import SourceState
from acktrail.errors import (
    AcktrailError,
    PositionConflict,
    SourceHeld,
    SourceUnavailable,
    TerminalError,
    TransientError,
)
from acktrail.lake import Lake
from ingest.agent.counters import SourceCounts
from ingest.agent.reading import ONCE_ATTEMPTS, ONCE_S, LostRace, Pace, SourceReader
from ingest.agent.source_log import SourceLog
from ingest.agent.states import SourcePlace, StateLog
from ingest.agent.writer import OtherCommit, Races, Writer, other_commit, this_process
from ingest.source import Source

LOOK_S = 0.5
"""How often the agent looks whether a state is to be written down."""


@dataclass
class Agent:
    """Sources read together into one lake."""

    lake: Lake
    sources: Sequence[Source]
    pace: Pace = field(default_factory=Pace)
    once: bool = False
    stopping: threading.Event = field(default_factory=threading.Event)
    writer: Writer = field(default_factory=lambda: this_process("agent"))
    places: Mapping[str, SourcePlace] = field(default_factory=dict)
    """Of every source by name, for `source_states`; empty: nothing is written there."""

    def __post_init__(self) -> None:
        self.counts = {source.name: SourceCounts(source.name) for source in self.sources}
        self._logs = {source.name: SourceLog(source.name) for source in self.sources}
        self._commit_lock = threading.Lock()
        self._errors: dict[str, AcktrailError] = {}

    def run(self) -> None:
        """Read until told to stop (or, once, until nothing is new); then raise the worst error."""
        threads = [
            threading.Thread(target=self._keep_reading, args=(source,), name=source.name)
            for source in self.sources
        ]
        states = StateLog(self.lake, self.places, self.writer, time.monotonic())
        for thread in threads:
            thread.start()
        for thread in threads:
            while thread.is_alive():
                thread.join(LOOK_S)
                if self.places and not self.once:
                    states.write_due(self.counts.values(), time.monotonic())
        if self.places:
            states.write_last(self.counts.values())
        if self._errors:
            raise _together(self._errors)

    def stop(self) -> None:
        """Commit what was read and end."""
        self.stopping.set()

    # -- one source -----------------------------------------------------------------------------

    def _keep_reading(self, source: Source) -> None:
        """The life of one source's thread: read, and after an error try again or give up."""
        counts, races = self.counts[source.name], Races()
        reader = self._reader(source)
        failures, began = 0, time.monotonic()
        while not self.stopping.is_set():
            ended = reader.read_until_error()
            if ended is None:
                self._require_complete(source, counts)
                return
            error, progressed = ended
            if isinstance(error, LostRace):
                if not self._after_lost_race(source, counts, races, error):
                    return
                continue
            counts.failures[type(error).__name__] += 1
            failures = 1 if progressed else failures + 1
            late = not progressed and time.monotonic() - began >= ONCE_S
            last = self.once and (late or failures >= ONCE_ATTEMPTS)
            if isinstance(error, TerminalError) or last:
                self._give_up(source, counts, _as_ours(source, error))
                return
            counts.stands(SourceState.FAILING, str(_as_ours(source, error)))
            reader.pause(error, failures)

    def _reader(self, source: Source) -> SourceReader:
        return SourceReader(
            source=source,
            lake=self.lake,
            pace=self.pace,
            once=self.once,
            stopping=self.stopping,
            writer=self.writer,
            counts=self.counts[source.name],
            log=self._logs[source.name],
            commit_lock=self._commit_lock,
        )

    def _require_complete(self, source: Source, counts: SourceCounts) -> None:
        """A run with --once that was to read what is not there has not done its work."""
        health = counts.health
        if self.once and health.unread and health.once_fails:
            counts.failures[SourceUnavailable.__name__] += 1
            self._give_up(source, counts, SourceUnavailable(" ".join(health.unread)))

    def _give_up(self, source: Source, counts: SourceCounts, error: AcktrailError) -> None:
        """Leave the source for good, or, with --once, for this run."""
        self._errors[source.name] = error
        if isinstance(error, TerminalError):
            counts.stands(SourceState.STOPPED, str(error))
        else:
            held = isinstance(error, SourceHeld)
            counts.stands(SourceState.HELD if held else SourceState.FAILING, str(error))
        if not self.once:  # a run with --once ends now, and its last line says it
            self._logs[source.name].stopped(error)

    def _after_lost_race(
        self, source: Source, counts: SourceCounts, races: Races, lost: LostRace
    ) -> bool:
        """Read on from the lake's position, or wait for a process that was first; False: end."""
        counts.failures[PositionConflict.__name__] += 1
        other = self._other(source, lost.table)
        often = races.lost(time.monotonic())
        if not often or not self.writer.yields_to(other.writer if other else None):
            self._logs[source.name].overtaken(_named(other))
            self.stopping.wait(random.uniform(0, self.pace.first_pause_s))
            return True
        error = SourceHeld(
            f"Another process reads this source: {_named(other)}. Nothing was "
            "written twice. Stop one of the two, or remove the source from its settings."
        )
        if self.once:
            self._give_up(source, counts, error)
            return False
        self._wait_for(source, counts, lost.table, error)
        return True

    def _wait_for(
        self, source: Source, counts: SourceCounts, table: Table, error: SourceHeld
    ) -> None:
        """Wait until the other process has committed nothing for a while."""
        counts.stands(SourceState.HELD, str(error))
        self._logs[source.name].held(error)
        quiet = timedelta(seconds=self.pace.held_quiet_s)
        while not self.stopping.wait(self.pace.held_s):
            other = self._other(source, table)
            if other is None or datetime.now(UTC) - other.at >= quiet:
                return

    def _other(self, source: Source, table: Table) -> OtherCommit | None:
        try:
            return other_commit(self.lake, table, source.name, self.writer)
        except AcktrailError:
            return None  # it is only a name for the message


def _named(other: OtherCommit | None) -> str:
    if other is None or other.writer is None:
        return "a process that does not name itself"
    return str(other.writer)


def _as_ours(source: Source, error: Exception) -> AcktrailError:
    if isinstance(error, AcktrailError):
        return error
    return TransientError(f"The source {source.name} failed: {type(error).__name__}: {error}")


def _together(errors: Mapping[str, AcktrailError]) -> AcktrailError:
    """All of *errors* (by source) as one: as one that trying again cannot cure, if one is."""
    sources: dict[str, list[str]] = {}
    for source, error in errors.items():
        sources.setdefault(str(error), []).append(source)
    said = [f"{', '.join(names)}: {text}" for text, names in sources.items()]
    worst = next((e for e in errors.values() if isinstance(e, TerminalError)), None)
    kind = type(worst or next(iter(errors.values())))
    return kind("\n  ".join(["these sources failed:", *said] if len(said) > 1 else said))
