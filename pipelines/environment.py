"""The Python environment of executors as one archive: interpreter, packages and acktrail itself.

Nothing in it depends on a path of this host: `bin/python` is a script that finds the interpreter,
its library and the packages beside itself, wherever an executor unpacks them. PySpark is left out,
because executors use that of their own Spark. acktrail is copied from where it is imported, so
that a checkout and an installed wheel are packed alike.

The first member of the archive describes it. A driver refuses an archive of other code.
"""

from __future__ import annotations

import hashlib
import importlib.metadata
import io
import json
import os
import platform
import re
import subprocess
import sys
import sysconfig
import tarfile
import tempfile
import zlib
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, nullcontext
from importlib.metadata import Distribution, PackageNotFoundError
from pathlib import Path
from typing import Any

import acktrail
from acktrail.errors import ArtifactError, ConfigError, UsageError

PACKAGES = ("acktrail", "expectations", "ingest", "lab", "pipelines")
SUFFIXES = (".tar.gz", ".tgz")
"""By which Spark knows how to unpack it."""
MANIFEST = "acktrail-environment.json"
_OF_SPARK = {"pyspark", "py4j"}
_EXTRAS = ("spark",)
_COMPARED = ("pyarrow", "deltalake", "numpy", "pandas")
_NOT_RUN = {"test", "tests", "idlelib", "ensurepip", "tkinter", "turtledemo", "lib2to3", "include"}
_PYTHON = f"python{sys.version_info.major}.{sys.version_info.minor}"
_SCRIPT = f"""#!/bin/sh
# Runs the Python beside this file with the packages beside it, wherever they have been unpacked.
here=$(cd "$(dirname "$0")/.." && pwd)
export PYTHONHOME="$here"
export PYTHONPATH="${{PYTHONPATH:+$PYTHONPATH:}}$here/packages"
export LD_LIBRARY_PATH="$here/lib${{LD_LIBRARY_PATH:+:$LD_LIBRARY_PATH}}"
exec "$here/bin/{_PYTHON}" "$@"
"""
_TRY = "import json, pipelines.environment as made; print(json.dumps(made.manifest()))"

Part = Callable[[str], AbstractContextManager[None]]


def pack(file: Path, *, overwrite: bool = False, part: Part = lambda _name: nullcontext()) -> int:
    """Write the archive to *file* and try it; its size in bytes. *part* gets the name of each."""
    if not file.name.endswith(SUFFIXES):
        raise UsageError(f"{file}: Spark unpacks archives by their names: use {SUFFIXES[0]}")
    if file.exists() and not overwrite:
        raise UsageError(f"{file} exists. --force replaces it.")
    if not file.parent.is_dir():
        raise UsageError(f"{file}: the directory {file.parent} does not exist.")
    unfinished = file.with_name(f".{file.name}.unfinished")
    try:
        with tarfile.open(unfinished, "w:gz", compresslevel=1) as archive:
            _add_text(archive, MANIFEST, json.dumps(manifest(), indent=1), 0o644)
            _add_text(archive, "bin/python", _SCRIPT, 0o755)
            with part("python"):
                _add_all(archive, _interpreter())
            for distribution in _distributions():
                with part(distribution.name):
                    _add_all(archive, _files_of(distribution))
            with part("acktrail"):
                _add_all(archive, _own_files())
        with part("try it"):
            _try(unfinished)
        unfinished.replace(file)
    finally:
        unfinished.unlink(missing_ok=True)
    return file.stat().st_size


def parts() -> int:
    """How many parts `pack` goes through."""
    return len(_distributions()) + 3


def manifest() -> dict[str, Any]:
    """What must be equal on a driver and its executors."""
    versions = {name: importlib.metadata.version(name) for name in _COMPARED}
    return {
        "acktrail": acktrail.__version__,
        "code": _digest(),
        "python": f"{sys.version_info.major}.{sys.version_info.minor}",
        "machine": platform.machine(),
        **versions,
    }


def refuse_other(archive: Path) -> None:
    """ConfigError where *archive* was not made from what runs here."""
    try:
        with tarfile.open(archive, "r:gz") as opened:
            first = opened.next()
            member = opened.extractfile(first) if first and first.name == MANIFEST else None
            made = json.loads(member.read()) if member else None
    except (OSError, EOFError, zlib.error, tarfile.TarError, ValueError) as error:
        raise ConfigError(f"`spark.environment`: {archive} cannot be read: {error}") from None
    again = f"Make it again: acktrail pack --force {archive}"
    if not isinstance(made, dict):
        raise ConfigError(f"`spark.environment`: {archive} is not made by `acktrail pack`. {again}")
    here = manifest()
    other = [name for name in here if made.get(name) != here[name]]
    if other:
        said = ", ".join(
            "other code of acktrail" if n == "code" else f"{n} {made.get(n)}, here {here[n]}"
            for n in other
        )
        raise ConfigError(f"`spark.environment`: {archive} has {said}. {again}")


def _root() -> Path:
    return Path(acktrail.__file__).parent.parent


def _own_sources() -> Iterator[Path]:
    for package in PACKAGES:
        for path in sorted((_root() / package).rglob("*")):
            inner = path.relative_to(_root())
            if path.is_file() and "__pycache__" not in inner.parts and inner.parts[1] != "demo":
                yield path


def _digest() -> str:
    """Of the code of acktrail: a checkout changes without a change of its version."""
    digest = hashlib.sha256()
    for path in _own_sources():
        digest.update(f"{path.relative_to(_root())}\0".encode())
        digest.update(hashlib.sha256(path.read_bytes()).digest())
    return digest.hexdigest()[:16]


def _own_files() -> Iterator[tuple[Path, str]]:
    for path in _own_sources():
        yield path, f"packages/{path.relative_to(_root())}"
    for path, name in _files_of(importlib.metadata.distribution("acktrail")):
        if ".dist-info/" in name:
            yield path, name


def _distributions() -> list[Distribution]:
    """What acktrail needs for Spark's tasks, and what that needs; without Spark itself."""
    found: dict[str, Distribution] = {}
    waiting: list[tuple[str, tuple[str, ...]]] = [("acktrail", _EXTRAS)]
    while waiting:
        name, extras = waiting.pop()
        distribution = importlib.metadata.distribution(name)
        for required in distribution.requires or ():
            needed = _needed(required, extras)
            if needed is None or needed in found or needed in _OF_SPARK:
                continue
            try:
                found[needed] = importlib.metadata.distribution(needed)
            except PackageNotFoundError:
                if ";" in required:
                    continue  # for another platform or version of Python
                raise ArtifactError(f"{name} needs {needed}, which is not installed.") from None
            waiting.append((needed, ()))
    return [found[name] for name in sorted(found)]


def _needed(required: str, extras: tuple[str, ...]) -> str | None:
    """The name in a requirement such as `pandas<3; extra == "spark"`; None if not asked for."""
    name, _, marker = required.partition(";")
    wanted = re.search(r"extra\s*==\s*['\"]([^'\"]+)", marker)
    if wanted and wanted.group(1) not in extras:
        return None
    plain = re.match(r"[A-Za-z0-9._-]+", name)
    return re.sub(r"[-_.]+", "-", plain.group()).lower() if plain else None


def _files_of(distribution: Distribution) -> Iterator[tuple[Path, str]]:
    if distribution.files is None:
        raise ArtifactError(
            f"{distribution.name} was installed without a list of its files. Install acktrail into "
            "a virtual environment: python3 -m venv DIRECTORY"
        )
    for file in distribution.files:
        path = Path(str(distribution.locate_file(file)))
        if ".." not in file.parts and not _NOT_RUN & set(file.parts[:-1]) and path.is_file():
            yield path, f"packages/{file}"


def _interpreter() -> Iterator[tuple[Path, str]]:
    """The interpreter, its shared library where it has one, and the standard library."""
    program = Path(getattr(sys, "_base_executable", sys.executable)).resolve()
    yield program, f"bin/{_PYTHON}"
    library = Path(
        sysconfig.get_config_var("LIBDIR") or "", sysconfig.get_config_var("INSTSONAME") or ""
    )
    if library.is_file() and ".so" in library.name:
        yield library, f"lib/{library.name}"
    standard = Path(os.__file__).parent
    for path in sorted(standard.rglob("*")):
        inner = path.relative_to(standard)
        skipped = _NOT_RUN & set(inner.parts[:-1]) or inner.parts[0].endswith("-packages")
        if path.is_file() and not skipped and not inner.parts[0].startswith("config-"):
            yield path, f"{sys.platlibdir}/{_PYTHON}/{inner}"


def _add_all(archive: tarfile.TarFile, files: Iterator[tuple[Path, str]]) -> None:
    for path, name in files:
        archive.add(path.resolve(), name, recursive=False, filter=_nobodys)


def _nobodys(member: tarfile.TarInfo) -> tarfile.TarInfo:
    member.uid = member.gid = 0
    member.uname = member.gname = ""
    member.mode |= 0o444
    return member


def _add_text(archive: tarfile.TarFile, name: str, text: str, mode: int) -> None:
    member = tarfile.TarInfo(name)
    member.size, member.mode = len(text.encode()), mode
    archive.addfile(member, io.BytesIO(text.encode()))


def _try(archive: Path) -> None:
    """Unpack it elsewhere and import what tasks import; ArtifactError where that fails."""
    with tempfile.TemporaryDirectory(prefix="acktrail-pack-") as scratch:
        with tarfile.open(archive, "r:gz") as opened:
            opened.extractall(scratch, filter="data")
        clean = {"PATH": os.environ.get("PATH", ""), "LANG": "C.UTF-8"}
        python = str(Path(scratch, "bin", "python"))
        done = subprocess.run(
            [python, "-c", _TRY], cwd="/", env=clean, capture_output=True, text=True, check=False
        )
        if done.returncode != 0 or json.loads(done.stdout) != manifest():
            why = (done.stderr.strip().splitlines() or ["it is not what was packed"])[-1]
            raise ArtifactError(
                f"The packed environment does not run: {why}. Is {sys.executable} of a virtual "
                "environment with a whole Python (python.org, pyenv, uv, a distribution's package)?"
            )
