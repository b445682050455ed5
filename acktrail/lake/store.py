"""The place of a lake or a table: a directory, or a prefix in an object store.

This is the one module that knows whether files are local or remote, and how they are read, listed
and removed. Arrow reads and writes the data files: natively on a disk and on S3, through delta-rs
on any other object store.
"""

from __future__ import annotations

import contextlib
import os
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field, replace
from functools import lru_cache
from pathlib import Path
from typing import TYPE_CHECKING, Any
from urllib.parse import unquote, urlsplit

from acktrail.lake.s3_options import S3Options, s3_options, without_secrets

if TYPE_CHECKING:
    from pyarrow import fs

_S3 = ("s3", "s3a")


def is_remote(path: str) -> bool:
    """Whether *path* is in an object store, not on a disk."""
    return "://" in path


@dataclass(frozen=True)
class Store:
    """A directory or a prefix in an object store, with the options it is reached by."""

    path: str
    options: Mapping[str, str] = field(default_factory=dict, repr=False, hash=False)
    """May hold secrets: never printed."""

    def __post_init__(self) -> None:
        plain = self.path.rstrip("/") or self.path[:1]
        if plain.startswith("file://"):
            plain = unquote(urlsplit(plain).path)
        object.__setattr__(self, "path", plain)

    @property
    def is_remote(self) -> bool:
        """Whether it is in an object store, not on a disk."""
        return is_remote(self.path)

    @property
    def scheme(self) -> str:
        """s3, gs, az ...; empty for a directory."""
        return urlsplit(self.path).scheme if self.is_remote else ""

    def at(self, *parts: str) -> Store:
        """The place *parts* below this one."""
        return replace(self, path="/".join((self.path, *parts)))

    def absolute(self) -> Store:
        """The same place for a process in another working directory."""
        return self if self.is_remote else replace(self, path=str(Path(self.path).absolute()))

    @property
    def delta_options(self) -> dict[str, str] | None:
        """What delta-rs is given beside the path."""
        return (self.s3.delta() if self.is_s3 else dict(self.options)) or None

    @property
    def is_s3(self) -> bool:
        """Whether it is in a bucket of S3, or of a server that speaks its API."""
        return self.scheme in _S3

    @property
    def s3(self) -> S3Options:
        """The options of a place on S3, those of the environment included; ConfigError if wrong."""
        return s3_options(self.options, os.environ)

    def without_secrets(self) -> Store:
        """The same place for a process that has its credentials from its environment."""
        return replace(self, options=without_secrets(self.options))

    def files(self) -> fs.FileSystem:
        """The files below this place, for Arrow.

        delta-rs reads through Python objects on Arrow's threads, and a process that ends while one
        of them is released is aborted (SIGABRT instead of its exit code). So Arrow's own file
        systems are used where there is one.
        """
        from pyarrow import fs

        if not self.is_remote:
            return fs.SubTreeFileSystem(str(Path(self.path).absolute()), fs.LocalFileSystem())
        if self.is_s3:
            return fs.SubTreeFileSystem(self._in_bucket(), _s3(self.s3))
        from deltalake.fs import DeltaStorageHandler

        return fs.PyFileSystem(DeltaStorageHandler(self.path, self.delta_options or {}))

    def _in_bucket(self) -> str:
        """bucket/prefix, as Arrow names a place on S3."""
        return self.path.partition("://")[2]

    def make_directory(self, name: str = "") -> None:
        """Make the directory *name* and those above it; an object store has none to make."""
        if not self.is_remote:
            (Path(self.path) / name).mkdir(parents=True, exist_ok=True)

    def read_text(self, name: str) -> str:
        """The text of the file *name*; FileNotFoundError where it does not exist."""
        if not self.is_remote:
            return (Path(self.path) / name).read_text(encoding="utf-8")
        with self.files().open_input_stream(name) as stream:
            return bytes(stream.read()).decode()

    def exists(self, name: str = "") -> bool:
        """Whether there is a file or directory *name*; OSError where that cannot be known."""
        if not self.is_remote:
            try:
                (Path(self.path) / name).stat()
            except FileNotFoundError:
                return False
            return True
        from pyarrow import fs

        return bool(self.files().get_file_info(name).type != fs.FileType.NotFound)

    def names(self, directory: str = "", *, below: bool = False) -> list[str]:
        """Files in *directory*, by their path in it; with *below*, also in its subdirectories."""
        if not self.is_remote:
            return _local_names(Path(self.path) / directory, below)
        from pyarrow import fs

        selector = fs.FileSelector(directory, allow_not_found=True, recursive=below)
        infos = self.files().get_file_info(selector)
        start = f"{directory}/" if directory else ""
        return sorted(i.path.removeprefix(start) for i in infos if i.type == fs.FileType.File)

    def delete(self, names: Iterable[str]) -> None:
        """Remove files, in the order given; one that is already gone is not an error."""
        if not self.is_remote:
            for name in names:
                (Path(self.path) / name).unlink(missing_ok=True)
            return
        from deltalake.fs import DeltaStorageHandler

        # Arrow would write an empty object in place of the directory of a file that it removes.
        handler = DeltaStorageHandler(self.path, self.delta_options or {})
        for name in names:
            with contextlib.suppress(FileNotFoundError):
                handler.delete_file(name)


def _local_names(root: Path, below: bool) -> list[str]:
    """None for a directory that does not exist; OSError for one that cannot be listed."""

    def refuse(error: OSError) -> None:
        if not isinstance(error, FileNotFoundError):
            raise error

    names: list[str] = []
    for place, directories, files in os.walk(root, onerror=refuse):
        names += [str((Path(place) / file).relative_to(root)) for file in files]
        if not below:
            directories.clear()
    return sorted(names)


@lru_cache(maxsize=8)
def _s3(options: S3Options) -> fs.FileSystem:
    """One client for all tables: it keeps connections, and the credentials of a role."""
    from pyarrow import fs

    retries: Any = fs.AwsStandardS3RetryStrategy(max_attempts=options.attempts)
    arguments = {**options.arrow(), "retry_strategy": retries}
    return fs.S3FileSystem(**arguments)
