"""Names that rotation gives: the files a pattern matches, and the name they had before."""

from __future__ import annotations

import fnmatch
import glob
import os
import re
from collections.abc import Iterable

_ROTATED = re.compile(
    r"""(?: [.-]\d[\d\-_.T:]*        # app.log.1, app.log-20260131, app.log.2026-01-31-10
          | \.(?:old|bak|rotated)
        )?(?:\.gz)?\Z""",
    re.VERBOSE,
)
_ADDED = re.compile(r"(?:[-._]?\d[\d\-_.T:]*|\.(?:gz|bak|old|rotated))(?=[.\-_]|$)")
UNREADABLE = (".bz2", ".xz", ".zst", ".lz4", ".zip")
"""Compressions we do not read: such a file is named in the source's notes."""


def expand(patterns: Iterable[str], rotated: bool) -> list[str]:
    """Paths of regular files that *patterns* name, in order, each once."""
    found: dict[str, None] = {}
    for pattern in patterns:
        for path in sorted(glob.glob(pattern, recursive=True)):
            found[path] = None
        if rotated:
            for path in sorted(glob.glob(pattern + "[.-]*", recursive=True)):
                if _is_rotated(pattern, path):
                    found[path] = None
    return [path for path in found if os.path.isfile(path)]


def _is_rotated(pattern: str, path: str) -> bool:
    """Whether *path* is a match of *pattern* followed by what rotation adds."""
    name = os.path.basename(path)
    named = re.compile(fnmatch.translate(os.path.basename(pattern)))
    return any(
        named.fullmatch(name[:cut]) and _ROTATED.fullmatch(name[cut:])
        for cut in range(1, len(name))
    )


def family(path: str) -> str:
    """The file's name without what rotation adds: app.log for app.log.1, app-2026-01-31.log.gz."""
    name = os.path.basename(path)
    return _ADDED.sub("", name) or name
