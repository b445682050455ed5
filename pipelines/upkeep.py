"""Compaction of a table, as far as every job that reads it has read."""

from __future__ import annotations

from collections.abc import Sequence

from acktrail.contracts import Table
from acktrail.lake import Lake, Values, housekeeping
from pipelines.job import Job


def optimize(lake: Lake, table: Table, jobs: Sequence[Job]) -> dict[str, int]:
    """Put small files together where all of *jobs* have read them, and shorten the table's log.

    The rows stay as they are.
    """
    done = housekeeping.compact(lake, table, settled(lake, table, jobs))
    removed = housekeeping.shorten_log(lake, table, needed(lake, table, jobs))
    return done | {"log_entries_removed": removed}


def needed(lake: Lake, table: Table, jobs: Sequence[Job]) -> int | None:
    """The first version of the table's log that a job still asks for; None where none does.

    A reader asks for all since it read last; a writer for its own last note.
    """
    asked = [lake.note(job.output, job.name) for job in jobs if table in job.inputs]
    versions = [note.consumed.get(table.name) for note in asked if note is not None]
    written = [lake.note(table, job.name) for job in jobs if job.output == table]
    versions += [note.version for note in written if note is not None]
    return min((version for version in versions if version is not None), default=None)


def settled(lake: Lake, table: Table, jobs: Sequence[Job]) -> frozenset[str]:
    """The files in those partitions of the table that every job has read.

    A file put together with others does not say what in it is new: a job that had not read it would
    have to recompute its whole table. So files are named, not partitions: a file that an agent adds
    to one of these partitions after this is not among them.
    """
    files = lake.files(table)
    unread: set[str | None] = set()
    for job in jobs:
        if table in job.inputs:
            since = (lake.consumed(job.output, job.name) or {}).get(table.name)
            added = lake.added(table, since) if since is not None else None
            if added is not None:
                unread |= {_partition(values) for values in added.partitions}
    return frozenset(path for path, values in files.items() if _partition(values) not in unread)


def _partition(values: Values) -> str | None:
    """A table has one partition column at most; None for one without."""
    return next(iter(values.values()), None)
