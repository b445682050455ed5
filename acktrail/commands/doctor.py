"""`acktrail doctor`: is everything here that acktrail needs?"""

from __future__ import annotations

import importlib.util
import shutil
import subprocess
import sys
from collections.abc import Callable, Iterator

import click

from acktrail.commands.options import format_option, open_lake, settings_options
from acktrail.errors import AcktrailError, ArtifactError, ConfigError
from acktrail.output import write_rows
from acktrail.settings import Loaded


@click.command()
@format_option
@settings_options
def command(loaded: Loaded, output: str) -> None:
    """Say what works on this machine, and what to do about what does not.

    Exit code 2 when something needed is missing.

    Example:

    \b
        acktrail doctor --lake ./lake
    """
    found = list(_examine(loaded))
    write_rows(found, ("what", "state", "remark"), output)
    if any(row["state"] == "missing" for row in found):
        sys.exit(2)


def _examine(loaded: Loaded) -> Iterator[dict[str, str]]:
    yield _row("python", lambda: sys.version.split()[0])
    yield _row("java", _java)
    yield _row("delta jars", _delta)
    yield _row("spark", lambda: _package("pyspark", "acktrail[spark]"))
    yield _row("start-up archive", _archive)
    yield _row("great expectations", lambda: _package("great_expectations", "acktrail[checks]"))
    yield _row(
        "prometheus client", lambda: _package("prometheus_api_client", "acktrail[prometheus]")
    )
    yield _row("settings", lambda: str(loaded.file) if loaded.file_found else "none; defaults")
    yield _row("lake", lambda: _lake(loaded))


def _row(what: str, probe: Callable[[], str]) -> dict[str, str]:
    try:
        return {"what": what, "state": "ok", "remark": probe()}
    except ConfigError:
        remark = "not named; give --lake URI or set lake.uri"
        return {"what": what, "state": "not set", "remark": remark}
    except AcktrailError as error:
        return {"what": what, "state": "missing", "remark": str(error).splitlines()[0]}


def _java() -> str:
    from acktrail.artifacts import java

    printed = subprocess.run([java(), "-version"], capture_output=True, text=True, check=False)
    version = printed.stderr.splitlines()[0].split('"')[1]
    if int(version.split(".")[0]) < 17:
        raise ArtifactError(f"Java {version} is too old: install 17 or later.")
    return version


def _delta() -> str:
    from acktrail.artifacts import cache_directory, resolve

    if not (cache_directory() / "delta").is_dir() and shutil.which("mvn") is None:
        raise ArtifactError("not fetched yet: run `make setup`.")
    return ", ".join(sorted(jar.name for jar in resolve("delta").glob("*.jar")))


def _package(name: str, extra: str) -> str:
    from importlib.metadata import version

    if importlib.util.find_spec(name) is None:
        raise ArtifactError(f"not installed: pip install '{extra}'")
    return version(name.replace("_", "-"))


def _archive() -> str:
    from pipelines.session import archive_file

    if archive_file().is_file():
        return "used"
    return "none: runs start some seconds slower; `python -m pipelines.warm --archive` makes it"


def _lake(loaded: Loaded) -> str:
    from acktrail.housekeeping import sizes

    lake = open_lake(loaded)
    held = [size for size in sizes(lake) if size.version is not None]
    return f"{lake.uri}: {len(held)} tables, {sum(size.rows for size in held)} rows"
