"""Entries of a table's log: one file per commit, one action per line; and a job's note in one."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from functools import partial
from typing import Any

from acktrail.contracts import Table
from acktrail.errors import LakeDamaged
from acktrail.lake.refusal import refusal
from acktrail.lake.store import Store

LOG = "_delta_log"
"""The directory of a table's log, below the table."""

RECOMPUTE = "Move the table's directory away: `acktrail run` recomputes it from bronze."
"""The remedy for what jobs have made."""

MIGRATED = "migrated"
"""In the note of a commit that migrated columns: their names."""

_AT_ONCE = 8
"""Requests to a store that wait for an answer at the same time."""

Action = tuple[str, dict[str, Any]]
"""Kind (add, remove, txn, commitInfo ...) and content."""


@dataclass(frozen=True)
class Note:
    """What a job's commit says beside its rows."""

    version: int
    """The version it made."""
    consumed: dict[str, int]
    """Table to the version that was read."""


def entry_name(version: int) -> str:
    """The file, below a table, that holds the commit of *version*."""
    return f"{LOG}/{version:020d}.json"


def actions_of(table: Table, store: Store, version: int) -> list[Action] | None:
    """The actions of one commit to the table at *store*, or None where its file is gone."""
    entry = entry_name(version)
    try:
        text = store.read_text(entry)
    except FileNotFoundError:
        return None
    except OSError as error:
        raise refusal(store.path, error) or error from error
    actions = _read(text)
    if actions is None:
        raise LakeDamaged(
            f"{table.name}: the log entry {store.path}/{entry} is cut short or overwritten.\n"
            + ("Restore this file from a backup." if table.layer != "silver" else RECOMPUTE)
        )
    return actions


def entries_of(
    table: Table, store: Store, versions: Sequence[int]
) -> Iterator[tuple[int, list[Action] | None]]:
    """Each of *versions* with its actions, as `actions_of`; in a store several are read at once."""
    if not store.is_remote or len(versions) < 2:
        yield from ((version, actions_of(table, store, version)) for version in versions)
        return
    with ThreadPoolExecutor(_AT_ONCE) as pool:
        found = pool.map(partial(actions_of, table, store), versions)
        yield from zip(versions, found, strict=True)


def noted(metadata: str | None) -> dict[str, Any]:
    """What a job wrote beside its commit (`userMetadata`); empty for commits of others."""
    try:
        found = json.loads(metadata or "{}")
    except ValueError:
        return {}
    return found if isinstance(found, dict) else {}


def last_note(
    newest: int, job: str, entry: Callable[[int], Sequence[Action] | None]
) -> Note | None:
    """The note of the last commit of *job* up to the version *newest*; None where there is none.

    *entry* reads one log entry. Nearly always it is one of the newest.
    """
    for version in range(newest, -1, -1):
        actions = entry(version)
        if actions is None:  # the log was shortened up to here
            return None
        for info in (content for kind, content in actions if kind == "commitInfo"):
            said = noted(info.get("userMetadata"))
            if said.get("job") == job:
                consumed = {str(k): int(v) for k, v in said.get("consumed", {}).items()}
                return Note(version, consumed)
    return None


def is_migration(actions: Sequence[Action]) -> bool:
    """Whether a commit rewrote the table's rows in a newer form, and changed nothing they say."""
    infos = (content for kind, content in actions if kind == "commitInfo")
    return any(MIGRATED in noted(info.get("userMetadata")) for info in infos)


def _read(text: str) -> list[Action] | None:
    """The actions of a log entry; None where it is not what was written."""
    actions: list[Action] = []
    for line in text.split("\n"):  # not splitlines: values may hold other line ends
        if not line.strip():
            continue
        try:
            found = json.loads(line)
        except ValueError:
            return None
        if not isinstance(found, Mapping):
            return None
        actions.extend(found.items())
    return actions
