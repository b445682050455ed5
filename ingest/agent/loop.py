"""The loop: every source in a thread of its own, rows and position in one commit.

A source that fails is let go, opened again after a pause and continued where the lake says; the
others go on. While the lake does not answer, a source is not polled: nothing is dropped, nothing
piles up. Where another process reads the same source, the one that lost a race reads on from the
lake's position; the later one waits if that goes on. Only an error that trying again cannot cure
stops a source.
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
from acktrail.crashpoints import crash_point
from acktrail.errors import (
    AcktrailError,
    PositionConflict,
    SourceHeld,
    SourceUnavailable,
    TerminalError,
    TransientError,
)
from acktrail.lake import Lake
from ingest.agent.counters import SourceCounts, commit_note
from ingest.agent.flush import Flush, FlushBuffer
from ingest.agent.source_log import SourceLog
from ingest.agent.states import SourcePlace, StateLog
from ingest.agent.writer import OtherCommit, Races, Writer, other_commit, this_process
from ingest.source import Source

ONCE_ATTEMPTS = 3
"""How often a run with --once tries a source that fails, before the scheduler is to try again."""
LONGEST_PAUSE_S = 60.0
LOOK_S = 0.5
"""How often the agent looks whether a state is to be written down."""


@dataclass(frozen=True)
class Pace:
    """How the loop spends its time."""

    flush_s: float = 30.0
    flush_bytes: int = 64 * 1024 * 1024
    poll_s: float = 1.0
    """How long a poll may wait, and the pause after one that gave nothing."""
    first_pause_s: float = 1.0
    """Pause after a first failure; doubled each time, up to a minute."""
    held_s: float = 60.0
    """How often a process that waits for another one looks whether that one still commits."""
    held_quiet_s: float = 300.0
    """How long the other one must have committed nothing to be taken for gone."""


class _LostRace(Exception):
    """Another process has moved the position of a source in *table*."""

    def __init__(self, table: Table) -> None:
        super().__init__(f"another process has moved the position in {table.name}")
        self.table = table


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
        counts, races = self.counts[source.name], Races()
        failures = 0
        while not self.stopping.is_set():
            ended = self._read_until_error(source, counts)
            if ended is None:
                self._require_complete(source, counts)
                return
            error, progressed = ended
            if isinstance(error, _LostRace):
                if not self._after_lost_race(source, counts, races, error):
                    return
                continue
            counts.failures[type(error).__name__] += 1
            failures = 1 if progressed else failures + 1
            last = self.once and failures >= ONCE_ATTEMPTS
            if isinstance(error, TerminalError) or last:
                self._give_up(source, counts, _as_ours(source, error))
                return
            counts.stands(SourceState.FAILING, str(_as_ours(source, error)))
            self._pause(source, error, failures)

    def _read_until_error(
        self, source: Source, counts: SourceCounts
    ) -> tuple[Exception, bool] | None:
        """Open and read; the error that ended it, and whether it had committed before; None where
        it was told to end."""
        pending, commits = FlushBuffer(), counts.commits
        try:
            self._read(source, counts, pending)
        except Exception as error:
            # Anything, a bug in a source included, must not take the others down.
            progressed = counts.commits > commits
            if not isinstance(error, _LostRace):
                self._commit_rest(source, counts, pending)
            return error, progressed
        finally:
            source.close()
        return None

    def _require_complete(self, source: Source, counts: SourceCounts) -> None:
        """A run with --once that was to read what is not there has not done its work."""
        health = counts.health
        if self.once and health.unread and health.once_fails:
            counts.failures[SourceUnavailable.__name__] += 1
            self._give_up(source, counts, SourceUnavailable(" ".join(health.unread)))

    def _commit_rest(self, source: Source, counts: SourceCounts, pending: FlushBuffer) -> None:
        """What a source gave before it failed is whole: it need not be read again."""
        try:
            self._flush(source, counts, pending)
        except Exception:
            return  # then it is read again: the position has not moved

    def _read(self, source: Source, counts: SourceCounts, pending: FlushBuffer) -> None:
        source.open(self.lake)
        while not self.stopping.is_set():
            polled = self._poll(source, counts, pending)
            counts.stands(SourceState.UP)
            self._logs[source.name].worked()
            self._take_health(source, counts)
            if self._due(pending):
                self._flush(source, counts, pending)
            if polled:
                continue
            if self.once:
                break
            self.stopping.wait(self.pace.poll_s)
        self._flush(source, counts, pending)
        self._take_health(source, counts)

    def _take_health(self, source: Source, counts: SourceCounts) -> None:
        """What the source reports about itself; what a person should know is also in the log."""
        counts.health = health = source.health()
        last_line = self.once and health.once_fails  # the run ends with it
        notes = dict.fromkeys((*health.unread, *health.notes))
        self._logs[source.name].notes(n for n in notes if not last_line or n not in health.unread)

    def _poll(self, source: Source, counts: SourceCounts, pending: FlushBuffer) -> bool:
        polled = False
        for batch in source.poll(self.pace.poll_s):
            polled = True
            pending.add(batch, time.monotonic())
            if self._due(pending):
                self._flush(source, counts, pending)
            if self.stopping.is_set():
                break
        return polled

    def _due(self, pending: FlushBuffer) -> bool:
        if pending.since is None:
            return False
        waited = time.monotonic() - pending.since
        return pending.size >= self.pace.flush_bytes or waited >= self.pace.flush_s

    def _flush(self, source: Source, counts: SourceCounts, pending: FlushBuffer) -> None:
        for flush in pending.flushes():
            self._commit(source, flush)
            crash_point("agent.committed")
            for batch in flush.batches:
                source.committed(batch)
            data_rows = sum(rows.num_rows for rows in flush.rows)
            counts.add(flush.received, data_rows, flush.dropped, time.time())
            pending.done(flush)

    def _commit(self, source: Source, flush: Flush) -> None:
        """Put *flush* into the lake, however long the lake takes to answer."""
        data = flush.data()
        note = commit_note(
            source.name, flush.received, data.num_rows, flush.dropped, self.writer.note()
        )
        failures = 0
        while True:
            crash_point("agent.commit")
            try:
                with self._commit_lock:
                    self.lake.append(flush.table, data, flush.positions, note)
                return
            except PositionConflict:
                # After an error the commit may have been made all the same.
                if failures and self._is_there(flush):
                    return
                raise _LostRace(flush.table) from None
            except TransientError as error:
                failures += 1
                counts = self.counts[source.name]
                counts.failures[type(error).__name__] += 1
                if self.stopping.is_set() or (self.once and failures >= ONCE_ATTEMPTS):
                    raise
                counts.stands(SourceState.FAILING, str(error))
                self._pause(source, error, failures)

    def _is_there(self, flush: Flush) -> bool:
        found = self.lake.positions(flush.table, [p.app_id for p in flush.positions])
        return all(found[p.app_id] == p.reached for p in flush.positions)

    # -- what failed ----------------------------------------------------------------------------

    def _pause(self, source: Source, error: Exception, failures: int) -> None:
        longest = min(LONGEST_PAUSE_S, self.pace.first_pause_s * 2 ** min(failures - 1, 10))
        pause = random.uniform(longest / 2, longest)
        self._logs[source.name].failed(error)
        self.stopping.wait(pause)

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
        self, source: Source, counts: SourceCounts, races: Races, lost: _LostRace
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
