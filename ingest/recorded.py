"""Files of recorded evidence, plain or gzipped, read whole and once.

A recorded file does not grow while it is read. Its position in the lake is the number of bytes
read, so that replaying it again writes nothing, and replaying it after it has grown writes the
rest.
"""

from __future__ import annotations

import gzip
import hashlib
import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any


def recorded_files(directory: Path, pattern: str) -> list[Path]:
    """The files of *pattern* below *directory*, and those with .gz after it, in order."""
    return sorted({*directory.glob(pattern), *directory.glob(f"{pattern}.gz")})


def plain_name(path: Path) -> str:
    """The file's name before it was compressed."""
    return path.name.removesuffix(".gz")


def plain_path(path: Path, directory: Path) -> str:
    """The file's path below *directory* before it was compressed."""
    return path.relative_to(directory).with_name(plain_name(path)).as_posix()


def content(path: Path) -> bytes:
    """All bytes, decompressed, up to the last line end: a torn line is left out."""
    raw = gzip.decompress(path.read_bytes()) if path.suffix == ".gz" else path.read_bytes()
    return raw[: raw.rfind(b"\n") + 1]


def json_lines(text: bytes) -> Iterator[dict[str, Any]]:
    """The JSON objects in *text*; a line that is none says nothing."""
    for line in text.splitlines():
        try:
            loaded = json.loads(line)
        except ValueError:
            continue
        if isinstance(loaded, dict):
            yield loaded


def name_hash(*names: str) -> str:
    """32 hex digits for a list of names: a reporter that is the same at every replay."""
    return hashlib.sha256("\0".join(names).encode()).hexdigest()[:32]
