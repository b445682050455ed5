"""Reading one source into the lake: open, poll, gather, commit, until an error or the end.

While the lake does not answer, the source is not polled: nothing is dropped, nothing piles up.
"""

from __future__ import annotations

import contextlib
import logging
import random
import threading
import time
from dataclasses import dataclass

from acktrail.contracts import Table
from acktrail.contracts.vocabulary import SourceState
from acktrail.crashpoints import crash_point
from acktrail.errors import PositionConflict, TransientError
from acktrail.lake import Lake
from ingest.agent.counters import SourceCounts, commit_note
from ingest.agent.source_log import SourceLog
from ingest.agent.writer import Writer
from ingest.source import Flush, Source

log = logging.getLogger(__name__)

ONCE_ATTEMPTS = 3
ONCE_S = 45.0
"""How often, and for how long, a run with --once tries a source or a lake that fails, before the
scheduler is to try again."""
LONGEST_PAUSE_S = 60.0

Pending = dict[str, Flush]
"""Everything polled and not yet committed, by table."""


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


class LostRace(Exception):
    """Another process has moved the position of a source in *table*."""

    def __init__(self, table: Table) -> None:
        super().__init__(f"another process has moved the position in {table.name}")
        self.table = table


@dataclass(frozen=True)
class SourceReader:
    """One source, and what it takes to read it into the lake."""

    source: Source
    lake: Lake
    pace: Pace
    once: bool
    stopping: threading.Event
    writer: Writer
    counts: SourceCounts
    log: SourceLog
    commit_lock: threading.Lock
    """One commit of the process at a time."""

    def read_until_error(self) -> tuple[Exception, bool] | None:
        """Open and read; the error that ended it, and whether it had committed before; None where
        it was told to end."""
        pending: Pending = {}
        commits = self.counts.commits
        try:
            self._read(pending)
        except Exception as error:
            # Anything, a bug in a source included, must not take the others down.
            progressed = self.counts.commits > commits
            if not isinstance(error, LostRace):
                # What a source gave before it failed is whole: it need not be read again. If this
                # commit fails too, the position has not moved, and it is read again.
                with contextlib.suppress(Exception):
                    self._flush(pending)
            return error, progressed
        finally:
            self._close()
        return None

    def _close(self) -> None:
        """Let go of files and connections; the next `open` makes new ones, whatever this raised."""
        try:
            self.source.close()
        except Exception as error:
            log.warning("%s: could not be closed: %s", self.source.name, error)

    def _read(self, pending: Pending) -> None:
        """Open, poll and commit until told to stop; once, until nothing is new."""
        self.source.open(self.lake)
        while not self.stopping.is_set():
            polled = False
            for batch in self.source.poll(self.pace.poll_s):
                polled = True
                flush = pending.setdefault(batch.table.name, Flush(batch.table, time.monotonic()))
                flush.add(batch)
                if self._due(pending):
                    self._flush(pending)
                if self.stopping.is_set():
                    break
            self.counts.stands(SourceState.UP)
            self.log.worked()
            self._take_health()
            if self._due(pending):
                self._flush(pending)
            if polled:
                continue
            if self.once:
                break
            self.stopping.wait(self.pace.poll_s)
        self._flush(pending)
        self._take_health()

    def _take_health(self) -> None:
        """What the source reports about itself; what a person should know is also in the log."""
        self.counts.health = health = self.source.health()
        last_line = self.once and health.once_fails  # the run ends with it
        notes = dict.fromkeys((*health.unread, *health.notes))
        self.log.notes(n for n in notes if not last_line or n not in health.unread)

    def _due(self, pending: Pending) -> bool:
        """Whether so much is pending, or for so long, that it is committed."""
        if not pending:
            return False
        waited = time.monotonic() - min(flush.since for flush in pending.values())
        size = sum(flush.size for flush in pending.values())
        return size >= self.pace.flush_bytes or waited >= self.pace.flush_s

    def _flush(self, pending: Pending) -> None:
        """Commit what is pending, one table after the other, then count it."""
        for flush in list(pending.values()):
            self._commit(flush)
            del pending[flush.table.name]  # whatever fails from here on: it is in the lake
            crash_point("agent.committed")
            written = sum(rows.num_rows for rows in flush.rows)
            self.counts.add(flush.received, written, flush.dropped, time.time())
            for batch in flush.batches:
                self.source.committed(batch)

    def _commit(self, flush: Flush) -> None:
        """Put *flush* into the lake, however long the lake takes to answer."""
        data = flush.data()
        note = commit_note(
            self.source.name, flush.received, data.num_rows, flush.dropped, self.writer.note()
        )
        failures, began = 0, time.monotonic()
        while True:
            crash_point("agent.commit")
            try:
                with self.commit_lock:
                    self.lake.append(flush.table, data, flush.positions, note)
                return
            except PositionConflict:
                # After an error the commit may have been made all the same.
                if failures and self._is_there(flush):
                    return
                raise LostRace(flush.table) from None
            except TransientError as error:
                failures += 1
                self.counts.failures[type(error).__name__] += 1
                late = time.monotonic() - began >= ONCE_S or failures >= ONCE_ATTEMPTS
                if self.stopping.is_set() or (self.once and late):
                    raise
                self.counts.stands(SourceState.FAILING, str(error))
                self.pause(error, failures)

    def _is_there(self, flush: Flush) -> bool:
        found = self.lake.positions(flush.table, [p.app_id for p in flush.positions])
        return all(found[p.app_id] == p.reached for p in flush.positions)

    def pause(self, error: Exception, failures: int) -> None:
        """Log *error* and wait, the longer the more *failures* there were in a row."""
        longest = min(LONGEST_PAUSE_S, self.pace.first_pause_s * 2 ** min(failures - 1, 10))
        pause = random.uniform(longest / 2, longest)
        self.log.failed(error)
        self.stopping.wait(pause)
