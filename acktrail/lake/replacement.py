"""Which files of a table a commit replaces, and whether another commit has come in between.

delta-rs would try a lost race again by itself, and get it wrong: rows that a compaction has moved
would be doubled, and rows that another writer has appended would survive inside a replaced
partition. So every attempt of ours names the files it removes from the version it is written on,
and a replacement is given up when what it replaces has changed since it was computed.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass

from acktrail.lake.entries import Action

Values = Mapping[str, str | None]
"""Partition values of a file."""


@dataclass(frozen=True)
class ReplaceNothing:
    """Add files; every file of the table stays."""

    def covers(self, _values: Values) -> bool:
        """No partition is replaced."""
        return False


@dataclass(frozen=True)
class ReplaceAll:
    """Every file of the table goes."""

    def covers(self, _values: Values) -> bool:
        """Every partition is replaced."""
        return True


@dataclass(frozen=True)
class ReplacePartitions:
    """The files of the named partitions go; none are named: every file stays."""

    names: frozenset[str]

    def covers(self, values: Values) -> bool:
        """Whether a file with these partition values goes."""
        return _partition(values) in self.names


@dataclass(frozen=True)
class ReplaceRange:
    """The files of the partitions from *first* to *last* go."""

    first: str
    last: str

    def covers(self, values: Values) -> bool:
        """Whether a file with these partition values goes."""
        name = _partition(values)
        return name is not None and self.first <= name <= self.last


@dataclass(frozen=True)
class ReplaceBefore:
    """The files of all partitions before *limit* go."""

    limit: str

    def covers(self, values: Values) -> bool:
        """Whether a file with these partition values goes."""
        name = _partition(values)
        return name is not None and name < self.limit


@dataclass(frozen=True)
class RewriteFiles:
    """Exactly these files go: their rows are in the files that come (compaction)."""

    paths: frozenset[str]


ReplaceRows = ReplaceAll | ReplacePartitions | ReplaceRange | ReplaceBefore
Replacement = ReplaceNothing | ReplaceRows | RewriteFiles
NOTHING_REPLACED = ReplaceNothing()


def replaced_files(replacement: Replacement, current: Mapping[str, Values]) -> list[str]:
    """The files of *current* (path to partition values) that *replacement* removes."""
    if isinstance(replacement, RewriteFiles):
        return sorted(replacement.paths & current.keys())
    return sorted(path for path, values in current.items() if replacement.covers(values))


def is_overtaken(
    replacement: Replacement,
    current: Mapping[str, Values],
    entries: Iterable[Sequence[Action] | None],
) -> bool:
    """Whether rows that *replacement* stands for have changed since it was computed.

    *entries* are the commits since then; None stands for one that the log no longer has.
    Compactions move rows and change none, so they do not count, unless the files to be rewritten
    are gone.
    """
    if isinstance(replacement, RewriteFiles):
        return not replacement.paths <= current.keys()
    if isinstance(replacement, ReplaceNothing):
        return False
    return any(entry is None or _changes(entry, replacement) for entry in entries)


def _changes(entry: Sequence[Action], replacement: ReplaceRows) -> bool:
    return any(
        kind in ("add", "remove")
        and action.get("dataChange", True)
        and replacement.covers(action.get("partitionValues") or {})
        for kind, action in entry
    )


def _partition(values: Values) -> str | None:
    """The partition's text: a table has one partition column at most."""
    return next(iter(values.values()), None)
