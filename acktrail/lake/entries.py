"""Entries of a table's log: one file per commit, one action per line."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from acktrail.contracts import Table
from acktrail.errors import LakeDamaged

MADE_ANEW = "Move the table's directory away: `acktrail run` makes it anew from bronze."
"""The remedy for what jobs have made."""

MIGRATED = "migrated"
"""In the note of a commit that migrated columns: their names."""

Action = tuple[str, dict[str, Any]]
"""Kind (add, remove, txn, commitInfo ...) and content."""


def entry_path(path: str, version: int) -> str:
    """The file that holds the commit of *version* to the table at *path*."""
    return f"{path}/_delta_log/{version:020d}.json"


def actions_of(table: Table, path: str, version: int) -> list[Action] | None:
    """The actions of one commit, or None where its file is gone."""
    entry = entry_path(path, version)
    try:
        text = _text(entry)
    except FileNotFoundError:
        return None
    actions = _read(text)
    if actions is None:
        raise LakeDamaged(
            f"{table.name}: the log entry {entry} is cut short or overwritten.\n"
            + ("Restore this file from a backup." if table.layer != "silver" else MADE_ANEW)
        )
    return actions


def noted(metadata: str | None) -> dict[str, Any]:
    """What a job wrote beside its commit (`userMetadata`); empty for commits of others."""
    try:
        found = json.loads(metadata or "{}")
    except ValueError:
        return {}
    return found if isinstance(found, dict) else {}


def is_migration(actions: Sequence[Action]) -> bool:
    """Whether a commit rewrote the table's rows in a newer form, and changed nothing they say."""
    infos = (content for kind, content in actions if kind == "commitInfo")
    return any(MIGRATED in noted(info.get("userMetadata")) for info in infos)


def _text(entry: str) -> str:
    if "://" not in entry:
        return Path(entry).read_text(encoding="utf-8")
    from pyarrow import fs

    filesystem, inner = fs.FileSystem.from_uri(entry)
    with filesystem.open_input_stream(inner) as stream:
        return bytes(stream.read()).decode()


def _read(text: str) -> list[Action] | None:
    """The actions of a log entry; None where it is not what was written."""
    actions: list[Action] = []
    for line in text.splitlines():
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
