"""The log of a driver's JVM: a file for each process, kept short, the old ones removed."""

from __future__ import annotations

import contextlib
import os
import shutil
import sys
from collections.abc import Iterator
from pathlib import Path

from acktrail.artifacts import cache_directory

MAX_BYTES = 16 << 20
"""A longer log is moved to `.1`, and begins again."""
_KEPT = 20
"""Logs of processes that have ended, the newest ones."""


def jvm_log() -> Path:
    """Where the JVM's own messages go; errors that matter come back as exceptions."""
    return cache_directory() / "logs" / f"spark-{os.getpid()}.log"


@contextlib.contextmanager
def jvm_writes_to_its_log() -> Iterator[None]:
    """While this lasts, a started process inherits a log file as its stderr, for its whole life."""
    path = jvm_log()
    path.parent.mkdir(parents=True, exist_ok=True)
    _remove_old(path.parent)
    sys.stderr.flush()
    kept = os.dup(2)
    log = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_APPEND, 0o644)
    try:
        os.dup2(log, 2)
        yield
    finally:
        os.dup2(kept, 2)
        os.close(kept)
        os.close(log)


def keep_short(path: Path, max_bytes: int = MAX_BYTES) -> None:
    """Copy a long log to `.1` and empty it. Its writer appends, so that it goes on at the start."""
    with contextlib.suppress(OSError):
        if path.stat().st_size > max_bytes:
            shutil.copyfile(path, path.with_suffix(".log.1"))
            os.truncate(path, 0)


def _remove_old(directory: Path) -> None:
    """All but the newest logs of processes that have ended."""
    ended = [log for log in directory.glob("spark-*.log") if not _runs(log)]
    ended.sort(key=_changed, reverse=True)
    for log in ended[_KEPT:]:
        log.unlink(missing_ok=True)
        log.with_suffix(".log.1").unlink(missing_ok=True)


def _changed(log: Path) -> float:
    try:
        return log.stat().st_mtime
    except OSError:  # another process has removed it
        return 0.0


def _runs(log: Path) -> bool:
    try:
        os.kill(int(log.stem.rpartition("-")[2]), 0)
    except (ValueError, ProcessLookupError):
        return False
    except PermissionError:
        return True
    return True
