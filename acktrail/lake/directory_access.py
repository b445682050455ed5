"""Why a lake's directory cannot be used, from the error of the operating system: who, where, what.

A table that this user may not write is not damaged: the remedy is a right or a disk, not a backup.
"""

from __future__ import annotations

import errno
import os
import pwd
import re
import stat
from pathlib import Path

from acktrail.errors import AcktrailError, LakeInaccessible, SourceUnavailable
from acktrail.lake.store import is_remote

_NUMBER = re.compile(r"(?:os error |code: |errno )(\d+)", re.IGNORECASE)
_OTHER = "You can also name another lake with --lake or `lake.uri`."


def access_error(path: str, error: Exception) -> AcktrailError | None:
    """Our error where the operating system refused *path*; None for any other *error*."""
    if is_remote(path):
        return None
    number = _number(error)
    if number in (errno.EACCES, errno.EPERM):
        return LakeInaccessible(_refused(Path(path)))
    if number == errno.EROFS:
        mount = _mount_of(Path(path))
        return LakeInaccessible(
            f"{path} cannot be written: the file system at {mount} is mounted read-only. "
            f"Remount it: `mount -o remount,rw {mount}`. {_OTHER}"
        )
    if number == errno.ENOTDIR:
        return LakeInaccessible(
            f"{path} cannot be used: {_first_file(Path(path))} is a file, not a directory. "
            "Move the file away. " + _OTHER
        )
    if number in (errno.ENOSPC, errno.EDQUOT):
        return SourceUnavailable(_full(Path(path)))
    return None


def _number(error: Exception) -> int | None:
    if isinstance(error, OSError) and error.errno is not None:
        return error.errno
    found = _NUMBER.search(str(error))
    return int(found.group(1)) if found else None


def _refused(path: Path) -> str:
    """Which directory on the way refuses this user, and what it would take."""
    user = user_name(os.geteuid())
    blocked, right = path, "use"
    for place in _existing(path):
        blocked = place
        if not place.is_dir():
            break
        if not os.access(place, os.X_OK, effective_ids=True):
            right = "enter"
            break
        right = "write to"
    owner = _owner(blocked)
    if right == "write to" and os.access(blocked, os.W_OK, effective_ids=True):
        return (
            f"{path}: the operating system refuses user {user} a file or directory below {blocked} "
            f"({owner}). See `ls -lR` and `lsattr -R` there. {_OTHER}"
        )
    return (
        f"{path} cannot be used: user {user} may not {right} {blocked} ({owner}). "
        f"Run as the owner, or give {user} the right (`chown`, `chmod`, `setfacl`). {_OTHER}"
    )


def _existing(path: Path) -> list[Path]:
    """What exists of *path*, from the root down, as far as this user can see."""
    found = []
    for place in (*reversed(path.absolute().parents), path.absolute()):
        try:
            place.stat()
        except OSError:
            break
        found.append(place)
    return found


def _owner(path: Path) -> str:
    try:
        about = path.stat()
    except OSError:
        return "owner not visible"
    return f"owner {user_name(about.st_uid)}, mode {stat.filemode(about.st_mode)}"


def user_name(uid: int) -> str:
    """The name of a user, or the number where it has none."""
    try:
        return pwd.getpwuid(uid).pw_name
    except KeyError:
        return str(uid)


def _mount_of(path: Path) -> Path:
    """Where the file system of *path* is mounted. The kernel lists bind mounts; stat does not."""
    place = _existing(path)[-1].resolve()
    try:
        lines = Path("/proc/self/mountinfo").read_text(encoding="utf-8").splitlines()
    except OSError:
        lines = []
    points = {Path(_unescaped(line.split()[4])) for line in lines}
    while place not in points and not place.is_mount():
        place = place.parent
    return place


def _unescaped(text: str) -> str:
    return re.sub(r"\\([0-7]{3})", lambda found: chr(int(found.group(1), 8)), text)


def _first_file(path: Path) -> Path:
    return next((place for place in _existing(path) if not place.is_dir()), path)


def _full(path: Path) -> str:
    place = _existing(path)[-1]
    room = os.statvfs(place)
    free = room.f_bavail * room.f_frsize // 1024
    return (
        f"{path} cannot be written: the disk is full ({free} KiB free at {_mount_of(place)}). "
        "Nothing was committed, and no source moves on. Free some space; `acktrail lake "
        "vacuum` and `acktrail lake expire` remove what is not needed."
    )
