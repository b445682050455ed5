"""The lake: what it holds, and whether this user can write there."""

from __future__ import annotations

import os
import secrets
import shutil
from pathlib import Path

from acktrail.errors import LakeInaccessible
from acktrail.lake import Lake
from acktrail.lake.directory_access import access_error
from acktrail.lake.safe_commits import require_safe_commits
from acktrail.lake.store_errors import store_error
from acktrail.operate.probes.row import OK, WARNING, Clock, Probe, Row, counted

_LITTLE = 1024**3
"""A disk with less than this free is worth a warning."""


def lake_probe(lake: Lake) -> Probe:
    """Write a file below the lake and remove it; then read the logs of its tables."""
    return Probe("lake", lambda: _look(lake))


def _look(lake: Lake) -> list[Row | Clock]:
    from acktrail.lake.housekeeping import sizes

    _write_and_remove(lake)
    asked = require_safe_commits(lake.store)
    held = [size for size in sizes(lake) if size.version is not None]
    rows = sum(size.rows for size in held)
    found = f"{lake.uri}: writable, {counted(len(held), 'table')}, {counted(rows, 'row')}"
    if lake.store.is_remote:
        return [Row("lake", OK, f"{found}; conditional writes tried" if asked else found)]
    free = shutil.disk_usage(_nearest_directory(Path(lake.uri))).free
    if free < _LITTLE:
        remark = f"{found}; only {free // 2**20} MiB free on its disk: make room"
        return [Row("lake", WARNING, remark)]
    return [Row("lake", OK, f"{found}, {free / 2**30:.0f} GiB free")]


def _write_and_remove(lake: Lake) -> None:
    """A probe file, written and removed; directories made for it are removed too."""
    name = f".acktrail-doctor-{secrets.token_hex(8)}"
    made = [] if lake.store.is_remote else _missing_directories(Path(lake.uri))
    why = store_error if lake.store.is_remote else access_error
    try:
        lake.store.make_directory()
        with lake.store.files().open_output_stream(name) as stream:
            stream.write(b"acktrail doctor: this file may be removed\n")
        lake.store.delete([name])
    except OSError as error:
        raise why(lake.uri, error) or LakeInaccessible(
            f"{lake.uri} cannot be written: {error.strerror or error}. Name another lake with "
            "--lake or `lake.uri`."
        ) from error
    finally:
        for directory in made:
            if directory.is_dir() and not os.listdir(directory):
                directory.rmdir()


def _missing_directories(path: Path) -> list[Path]:
    """The directories of *path* that do not exist, the innermost first."""
    return [place for place in (path, *path.parents) if not os.path.lexists(place)]


def _nearest_directory(path: Path) -> Path:
    return next(place for place in (path.absolute(), *path.absolute().parents) if place.is_dir())
