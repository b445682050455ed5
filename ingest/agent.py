"""The loop: every source in a thread of its own, rows and position in one commit.

A source that fails is let go, opened again after a pause and continued where the lake says; the
others go on. While the lake does not answer, a source is not polled: nothing is dropped, nothing
piles up. Only an error that trying again cannot cure stops a source.
"""

from __future__ import annotations

import logging
import random
import threading
import time
from collections.abc import Sequence
from dataclasses import dataclass, field

from acktrail.crashpoints import crash_point
from acktrail.errors import AcktrailError, PositionConflict, TerminalError, TransientError
from acktrail.lake import Lake
from ingest.counters import SourceCounts, commit_note
from ingest.pending import Flush, Pending
from ingest.source import Source

log = logging.getLogger(__name__)

ONCE_ATTEMPTS = 3
"""How often a run with --once tries a source that fails, before the scheduler is to try again."""
LONGEST_PAUSE_S = 60.0


@dataclass(frozen=True)
class Pace:
    """How the loop spends its time."""

    flush_s: float = 30.0
    flush_bytes: int = 64 * 1024 * 1024
    poll_s: float = 1.0
    """How long a poll may wait, and the pause after one that gave nothing."""
    first_pause_s: float = 1.0
    """Pause after a first failure; doubled each time, up to a minute."""


@dataclass
class Agent:
    """Sources read together into one lake."""

    lake: Lake
    sources: Sequence[Source]
    pace: Pace = field(default_factory=Pace)
    once: bool = False
    stopping: threading.Event = field(default_factory=threading.Event)

    def __post_init__(self) -> None:
        self.counts = {source.name: SourceCounts(source.name) for source in self.sources}
        self._commit_lock = threading.Lock()
        self._errors: dict[str, AcktrailError] = {}

    def run(self) -> None:
        """Read until told to stop (or, once, until nothing is new); then raise the worst error."""
        threads = [
            threading.Thread(target=self._keep_reading, args=(source,), name=source.name)
            for source in self.sources
        ]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        if self._errors:
            raise _worst(list(self._errors.values()))

    def stop(self) -> None:
        """Commit what was read and end."""
        self.stopping.set()

    # -- one source -----------------------------------------------------------------------------

    def _keep_reading(self, source: Source) -> None:
        counts = self.counts[source.name]
        failures = 0
        while not self.stopping.is_set():
            commits = counts.commits
            try:
                self._read(source, counts)
                break
            except TerminalError as error:
                self._stopped(source, counts, error)
                break
            except Exception as error:
                # Anything else, a bug in a source included, must not take the others down.
                counts.failures[type(error).__name__] += 1
                failures = 1 if counts.commits > commits else failures + 1
                if self.once and failures >= ONCE_ATTEMPTS:
                    self._stopped(source, counts, _as_ours(source, error))
                    break
                self._pause(source, error, failures)
            finally:
                counts.running = False
                source.close()

    def _read(self, source: Source, counts: SourceCounts) -> None:
        source.open(self.lake)
        counts.running = True
        pending = Pending()
        while not self.stopping.is_set():
            polled = self._poll(source, counts, pending)
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
        """What the source says of itself; what a person should know is also said in the log."""
        known, counts.health = counts.health.notes, source.health()
        for note in counts.health.notes:
            if note not in known:
                log.warning("A person should know.", extra={"source": source.name, "note": note})

    def _poll(self, source: Source, counts: SourceCounts, pending: Pending) -> bool:
        polled = False
        for batch in source.poll(self.pace.poll_s):
            polled = True
            pending.add(batch, time.monotonic())
            if self._due(pending):
                self._flush(source, counts, pending)
            if self.stopping.is_set():
                break
        return polled

    def _due(self, pending: Pending) -> bool:
        if pending.since is None:
            return False
        waited = time.monotonic() - pending.since
        return pending.size >= self.pace.flush_bytes or waited >= self.pace.flush_s

    def _flush(self, source: Source, counts: SourceCounts, pending: Pending) -> None:
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
        note = commit_note(source.name, flush.received, data.num_rows, flush.dropped)
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
                raise
            except TransientError as error:
                failures += 1
                self.counts[source.name].failures[type(error).__name__] += 1
                if self.stopping.is_set() or (self.once and failures >= ONCE_ATTEMPTS):
                    raise
                self._pause(source, error, failures)

    def _is_there(self, flush: Flush) -> bool:
        found = self.lake.positions(flush.table, [p.app_id for p in flush.positions])
        return all(found[p.app_id] == p.reached for p in flush.positions)

    def _pause(self, source: Source, error: Exception, failures: int) -> None:
        longest = min(LONGEST_PAUSE_S, self.pace.first_pause_s * 2 ** min(failures - 1, 10))
        pause = random.uniform(longest / 2, longest)
        known = isinstance(error, AcktrailError)
        log.warning(
            "Source failed; will try again.",
            extra={"source": source.name, "error": str(error), "pause_s": round(pause, 1)},
            exc_info=None if known else error,
        )
        self.stopping.wait(pause)

    def _stopped(self, source: Source, counts: SourceCounts, error: AcktrailError) -> None:
        counts.failures[type(error).__name__] += 1
        self._errors[source.name] = error
        log.error(
            "Source stopped; trying again would not help.",
            extra={"source": source.name, "error": str(error)},
        )


def _as_ours(source: Source, error: Exception) -> AcktrailError:
    if isinstance(error, AcktrailError):
        return error
    return TransientError(f"The source {source.name} failed: {type(error).__name__}: {error}")


def _worst(errors: list[AcktrailError]) -> AcktrailError:
    """One that trying again cannot cure, if there is one."""
    return next((e for e in errors if isinstance(e, TerminalError)), errors[0])
