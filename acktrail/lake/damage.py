"""Tell a damaged table from a sound one, and name the file and the remedy.

Delta readers trust each entry of the log. An entry that a full disk or a power cut has shortened
at a line end, or that an old backup has replaced, still reads as a commit: rows would be missing
behind a position that says they were read. So every entry since the last checkpoint is checked
once: it is there, whole (as many files and positions as it says of itself), and follows the entry
it was written on.
"""

from __future__ import annotations

import json
from collections.abc import Sequence
from pathlib import Path

from acktrail.contracts import Table
from acktrail.errors import AcktrailError, LakeDamaged, SourceUnavailable
from acktrail.lake.access import access_error
from acktrail.lake.entries import MADE_ANEW, Action, entry_path

FOLLOWS = "follows"
"""In our commits: the version the commit was written on."""
POSITIONS = "positions"
"""In our commits: how many positions it moves."""
FILES = "files"
"""In our commits: how many files it adds."""

_UNREACHABLE = ("Permission denied", "timed out", "connection", "Connection", "dns error")


def commit_seal(follows: int, positions: int, files: int) -> dict[str, str]:
    """What a commit carries so that it can be told from a shortened or replaced one."""
    return {FOLLOWS: str(follows), POSITIONS: str(positions), FILES: str(files)}


def first_to_check(path: str) -> int:
    """The first version behind the last checkpoint; 0 where there is none."""
    log = Path(path) / "_delta_log"
    try:
        return int(json.loads((log / "_last_checkpoint").read_text("utf-8"))["version"]) + 1
    except (OSError, ValueError, KeyError, TypeError):
        found = [int(file.name[:20]) for file in log.glob("*.checkpoint.parquet")]
        return max(found, default=-1) + 1


def is_left_behind(path: str, version: int) -> bool:
    """Whether a checkpoint made the entry of *version* needless: logs are shortened up to one."""
    return "://" not in path and version < first_to_check(path)


def check_entry(
    table: Table, path: str, version: int, newest: int, actions: Sequence[Action] | None
) -> None:
    """LakeDamaged where the log entry of *version* is missing, shortened or replaced."""
    wrong = "is missing" if actions is None else _what_is_wrong(version, actions)
    if wrong is None:
        return
    entry = entry_path(path, version)
    if table.layer == "silver":
        remedy = MADE_ANEW
    elif version == newest and actions is not None:
        remedy = (
            "Move this file away: the table then stands one commit earlier, and the agents read "
            "again what the commit held."
        )
    else:
        remedy = (
            "Restore this file from a backup. Without one, move the table's directory away: "
            "agents read again what their sources still have."
        )
    raise LakeDamaged(f"{table.name}: the log entry {entry} {wrong}.\n{remedy}")


def _what_is_wrong(version: int, actions: Sequence[Action]) -> str | None:
    infos = [action for kind, action in actions if kind == "commitInfo"]
    if not infos:
        return "is cut short: it does not say what it did"
    info = infos[0]
    if version and info.get("operation") == "CREATE TABLE":
        return "is another commit's: it creates the table"
    wanted = _number(info.get(FILES))
    added = sum(1 for kind, _ in actions if kind == "add")
    if wanted is not None and added != wanted:
        return f"is cut short: it adds {added} files of {wanted}"
    moved = sum(1 for kind, _ in actions if kind == "txn")
    positions = _number(info.get(POSITIONS))
    if positions is not None and moved != positions:
        return f"is cut short: it moves {moved} positions of {positions}"
    follows = _number(info.get(FOLLOWS))
    if follows is not None and follows != version - 1:
        return f"is another commit's: it was written as version {follows + 1}"
    return None


def _number(value: object) -> int | None:
    try:
        return int(str(value))
    except ValueError:
        return None


def refuse_damaged_log(table: Table, path: str) -> None:
    """A directory with data but without a usable log is damage, not an empty table.

    OSError where the directory cannot be looked at: it is not empty either.
    """
    if "://" in path:
        return
    directory = Path(path)
    try:
        directory.stat()
    except FileNotFoundError:
        return
    log = directory / "_delta_log"
    if (log.is_dir() and any(log.iterdir())) or (
        directory.is_dir() and any(directory.rglob("*.parquet"))
    ):
        raise LakeDamaged(
            f"{table.name}: {directory} holds files but no readable _delta_log.\n"
            "Restore the directory from a backup, or move it away to start the table anew."
        )


def explained(table: Table, path: str, error: Exception) -> AcktrailError:
    """Our error for one of delta-rs or the file system: no access, not reachable, or damaged."""
    refused = access_error(path, error)
    if refused is not None:
        return refused
    text = str(error)
    if any(sign in text for sign in _UNREACHABLE):
        return SourceUnavailable(f"{table.name}: the lake at {path} did not answer: {text}")
    if table.layer in ("silver", "gold"):
        remedy = MADE_ANEW
    else:
        remedy = (
            "Restore the named file from a backup. Without one, move the table's directory away: "
            "agents read again what their sources still have."
        )
    return LakeDamaged(f"{table.name}: {path} cannot be read: {text}\n{remedy}")
