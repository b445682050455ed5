"""What is installed on this machine."""

from __future__ import annotations

import importlib.util
import shutil
import subprocess
import sys
from collections.abc import Callable

from acktrail.errors import ArtifactError
from acktrail.operate.probes.row import OK, WARNING, Probe, Row

_NEEDED_BY = {
    "pyspark": "`acktrail run`, `sql` and `watch` need",
    "great_expectations": "`acktrail check` and `watch` need",
    "prometheus_api_client": "A prometheus source needs",
}


class _Missing(ArtifactError):
    """It is not here; what is here and wrong is another matter."""


def machine_probes() -> list[Probe]:
    """Python, Java, jars and packages."""
    return [
        _probe("python", lambda: sys.version.split()[0]),
        _probe("java", _java),
        _probe("delta jars", _delta),
        _probe("spark", lambda: _package("pyspark", "acktrail[spark]")),
        _probe("start-up archive", _archive),
        _probe("great expectations", lambda: _package("great_expectations", "acktrail[checks]")),
        _probe(
            "prometheus client", lambda: _package("prometheus_api_client", "acktrail[prometheus]")
        ),
    ]


def _probe(what: str, ask: Callable[[], str]) -> Probe:
    return Probe(what, lambda: [_row(what, ask)])


def _row(what: str, ask: Callable[[], str]) -> Row:
    """A machine that only runs agents needs none of it: what is missing is a warning."""
    try:
        return Row(what, OK, ask())
    except _Missing as error:
        return Row(what, WARNING, " ".join(str(error).split()))


def _java() -> str:
    from acktrail.artifacts import java

    try:
        program = java()
    except ArtifactError as error:
        raise _Missing(str(error)) from None
    printed = subprocess.run([program, "-version"], capture_output=True, text=True, check=False)
    version = printed.stderr.splitlines()[0].split('"')[1]
    if int(version.split(".")[0]) < 17:
        raise ArtifactError(f"Java {version} is too old: install 17 or later.")
    return version


def _delta() -> str:
    from acktrail.artifacts import cache_directory, resolve

    if not (cache_directory() / "delta").is_dir() and shutil.which("mvn") is None:
        raise _Missing("not fetched yet: run `make setup`.")
    return ", ".join(sorted(jar.name for jar in resolve("delta").glob("*.jar")))


def _package(name: str, extra: str) -> str:
    from importlib.metadata import version

    if importlib.util.find_spec(name) is None:
        raise _Missing(f"not installed. {_NEEDED_BY[name]} it: pip install '{extra}'")
    return version(name.replace("_", "-"))


def _archive() -> str:
    from pipelines.session import archive_file

    try:
        made = archive_file().is_file()
    except (ArtifactError, ImportError):
        raise _Missing("not used: it needs Java and Spark") from None
    if made:
        return "used"
    return "none: runs start some seconds slower; `python -m pipelines.warm --archive` creates it"
