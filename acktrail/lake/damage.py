"""Find out whether a table is damaged, and name the file and the remedy.

Delta readers trust each entry of the log. An entry that a full disk or a power cut has shortened
at a line end, or that an old backup has replaced, still reads as a commit: rows would be missing
behind a position that says they were read. So every entry since the last checkpoint is checked
once: it is there, whole (as many files and positions as it says of itself), and follows the entry
it was written on.
"""

from __future__ import annotations

import contextlib
import json
from collections.abc import Iterator, Sequence

from deltalake.exceptions import DeltaError

from acktrail.contracts import Table
from acktrail.errors import AcktrailError, LakeDamaged, SourceUnavailable
from acktrail.lake.entries import LOG, RECOMPUTE, Action, entry_name
from acktrail.lake.refusal import refusal
from acktrail.lake.store import Store

FOLLOWS = "follows"
"""In our commits: the version the commit was written on."""
POSITIONS = "positions"
"""In our commits: how many positions it moves."""
FILES = "files"
"""In our commits: how many files it adds."""
REMOVED = "removedFiles"
"""In our commits: how many files it removes."""

_COUNTED = (
    (FILES, "add", "adds {} files"),
    (REMOVED, "remove", "removes {} files"),
    (POSITIONS, "txn", "moves {} positions"),
)
"""What a commit says how many it has of: its name there, the kind of action, the sentence."""
_UNREACHABLE = ("Permission denied", "timed out", "connection", "Connection")


def commit_seal(follows: int, positions: int, files: int, removed: int = 0) -> dict[str, str]:
    """What a commit carries so that a shortened or replaced one is recognized."""
    return {
        FOLLOWS: str(follows),
        POSITIONS: str(positions),
        FILES: str(files),
        REMOVED: str(removed),
    }


def first_to_check(store: Store) -> int:
    """The first version behind the last checkpoint; 0 where there is none."""
    try:
        return int(json.loads(store.read_text(f"{LOG}/_last_checkpoint"))["version"]) + 1
    except (FileNotFoundError, ValueError, KeyError, TypeError):
        names = store.names(LOG)
        found = [int(name[:20]) for name in names if name.endswith(".checkpoint.parquet")]
        return max(found, default=-1) + 1


def is_left_behind(store: Store, version: int) -> bool:
    """Whether a checkpoint made the entry of *version* needless: logs are shortened up to one."""
    return version < first_to_check(store)


def check_entry(
    table: Table, store: Store, version: int, newest: int, actions: Sequence[Action] | None
) -> None:
    """LakeDamaged where the log entry of *version* is missing, shortened or replaced."""
    wrong = "is missing" if actions is None else _what_is_wrong(version, actions)
    if wrong is None:
        return
    entry = f"{store.path}/{entry_name(version)}"
    if table.layer == "silver":
        remedy = RECOMPUTE
    elif version == newest and actions is not None:
        remedy = (
            "Move this file away: the table is then one commit older, and the agents read the "
            "evidence of that commit again."
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
        return "is cut short: its commit information is missing"
    info = infos[0]
    if version and info.get("operation") == "CREATE TABLE":
        return "is another commit's: it creates the table"
    for name, kind, said in _COUNTED:
        wanted, found = _number(info.get(name)), sum(1 for k, _ in actions if k == kind)
        if wanted is not None and found != wanted:
            return f"is cut short: it {said.format(found)} of {wanted}"
    follows = _number(info.get(FOLLOWS))
    if follows is not None and follows != version - 1:
        return f"is another commit's: it was written as version {follows + 1}"
    return None


def _number(value: object) -> int | None:
    try:
        return int(str(value))
    except ValueError:
        return None


def refuse_damaged_log(table: Table, store: Store) -> None:
    """A directory with data but without a usable log is damage, not an empty table.

    OSError where the directory cannot be looked at: it is not empty either.
    """
    names = store.names(below=True)
    if any(name.endswith(".parquet") or name.startswith(f"{LOG}/") for name in names):
        raise LakeDamaged(
            f"{table.name}: {store.path} holds files but no readable _delta_log.\n"
            "Restore the directory from a backup, or move it away to start the table again."
        )


@contextlib.contextmanager
def explaining(table: Table, path: str) -> Iterator[None]:
    """Errors of delta-rs and of the file system inside are raised as ours."""
    try:
        yield
    except (DeltaError, OSError) as error:
        raise explained(table, path, error) from error


def explained(table: Table, path: str, error: Exception) -> AcktrailError:
    """Our error for one of delta-rs or the file system: no access, not reachable, or damaged."""
    refused = refusal(path, error)
    if refused is not None:
        return refused
    text = str(error)
    if any(sign in text for sign in _UNREACHABLE):
        return SourceUnavailable(f"{table.name}: the lake at {path} did not answer: {text}")
    if table.layer in ("silver", "gold"):
        remedy = RECOMPUTE
    else:
        remedy = (
            "Restore the named file from a backup. Without one, move the table's directory away: "
            "agents read again what their sources still have."
        )
    return LakeDamaged(f"{table.name}: {path} cannot be read: {text}\n{remedy}")
