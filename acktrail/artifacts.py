"""Jars we run but do not ship: pinned coordinates, fetched once, checked by hash, kept in a cache.

Every jar of a set is named in `artifacts.json` with its sha256, the transitive ones too, so that
Maven and Ivy bring the same files and nothing else. A set appears in the cache whole or not at
all, and once there it needs no network.
"""

from __future__ import annotations

import hashlib
import importlib.util
import json
import os
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Callable
from functools import cache
from pathlib import Path
from xml.sax.saxutils import escape

from acktrail.errors import ArtifactError

_PINS = Path(__file__).with_name("artifacts.json")
_SECONDS = 600

Pins = dict[str, str]
"""`group:artifact:version`, with `:classifier` where there is one → sha256 of its jar."""


def resolve(name: str) -> Path:
    """The directory that holds exactly the jars of set *name*, fetched if this is the first time.

    Names: `delta`, `s3a` (what Spark needs for a lake on S3), `kafka-4.3.1`, `kafka-3.9.2`,
    `jmx-exporter`, `jolokia`, and `kafka-clients-2.8.2` and later for the Java client's tests.
    """
    pins = _pins_of(name)
    home = cache_directory() / name
    if home.is_dir():
        _check(home, pins)
        return home
    _fetch(name, pins, home)
    return home


def java() -> str:
    """The `java` program: of `JAVA_HOME` if that is set, else the first on the `PATH`."""
    home = os.environ.get("JAVA_HOME")
    candidate = Path(home, "bin", "java") if home else None
    if candidate is not None and os.access(candidate, os.X_OK):
        return str(candidate)
    found = shutil.which("java")
    if found is None:
        raise ArtifactError(
            "no `java` in JAVA_HOME or on the PATH. "
            "Install a Java 17 runtime, e.g. `apt-get install openjdk-17-jre-headless`."
        )
    return found


def cache_directory() -> Path:
    """Where fetched jars are kept: `ACKTRAIL_CACHE`, else `~/.cache/acktrail`."""
    configured = os.environ.get("ACKTRAIL_CACHE")
    return Path(configured) if configured else Path.home() / ".cache" / "acktrail"


@cache
def _all_pins() -> dict[str, Pins]:
    pins: dict[str, Pins] = json.loads(_PINS.read_text())
    return pins


def _pins_of(name: str) -> Pins:
    try:
        return _all_pins()[name]
    except KeyError:
        known = ", ".join(sorted(_all_pins()))
        raise ArtifactError(f"no set of jars is called {name!r}. There are: {known}.") from None


def _jar(coordinate: str) -> str:
    _, *named = coordinate.split(":")
    return f"{'-'.join(named)}.jar"


def _check(directory: Path, pins: Pins) -> None:
    for coordinate, pinned in pins.items():
        jar = directory / _jar(coordinate)
        if not jar.is_file():
            raise ArtifactError(f"{jar} is missing. Remove {directory} and try again.")
        found = hashlib.sha256(jar.read_bytes()).hexdigest()
        if found != pinned:
            raise ArtifactError(
                f"{jar} is not the file it should be: sha256 {found}, pinned {pinned}. "
                f"Remove {directory} (and the copy in Maven's own cache) and try again."
            )
    extra = {path.name for path in directory.iterdir()} - {_jar(c) for c in pins}
    if extra:
        raise ArtifactError(
            f"{directory} holds files that are not pinned: {', '.join(sorted(extra))}. "
            "Remove the directory and try again."
        )


def _fetch(name: str, pins: Pins, home: Path) -> None:
    """Fetch into a scratch directory, check it, and only then give it its name."""
    home.parent.mkdir(parents=True, exist_ok=True)
    print(f"Fetching the jars of {name} ({len(pins)}), once, into {home}", file=sys.stderr)
    with tempfile.TemporaryDirectory(dir=home.parent, prefix=f".{name}-") as scratch:
        jars = Path(scratch, "jars")
        jars.mkdir()
        _run_resolver(name, pins, Path(scratch), jars)
        _check(jars, pins)
        try:
            jars.rename(home)
        except OSError:
            # Another process was quicker; what it left is checked like anything else.
            _check(home, pins)


def _run_resolver(name: str, pins: Pins, scratch: Path, jars: Path) -> None:
    failures = []
    for label, command in _resolvers():
        arguments = command(pins, scratch, jars)
        try:
            done = subprocess.run(
                arguments,
                cwd=scratch,
                check=False,
                capture_output=True,
                text=True,
                timeout=_SECONDS,
            )
        except subprocess.TimeoutExpired:
            failures.append(f"{label}: no answer within {_SECONDS} s")
            continue
        if done.returncode == 0 and any(jars.iterdir()):
            return
        failures.append(f"{label}: {_reason(done.stdout + done.stderr)}")
    tried = "; ".join(failures) if failures else "neither Maven nor pyspark's Ivy is installed"
    raise ArtifactError(
        f"could not fetch the jars of {name}: {tried}. Install Maven (`apt-get install maven`) or "
        f"pyspark, be online once, or set ACKTRAIL_CACHE to a cache that has them."
    )


def _reason(output: str) -> str:
    """The first line that says what went wrong."""
    lines = [line.strip() for line in output.splitlines() if line.strip()]
    wrong = [line for line in lines if "ERROR" in line or "not found" in line or "FAILED" in line]
    return (wrong or lines or ["it said nothing"])[0][:300]


_Command = Callable[[Pins, Path, Path], list[str]]


def _resolvers() -> list[tuple[str, _Command]]:
    java()  # Both need it, and "no Java" is the clearer answer.
    found: list[tuple[str, _Command]] = []
    maven = shutil.which("mvn")
    if maven is not None:
        program = maven
        found.append(("Maven", lambda pins, scratch, jars: _maven(program, pins, scratch, jars)))
    ivy = _ivy_jar()
    if ivy is not None:
        jar = ivy
        found.append(("Ivy", lambda pins, scratch, jars: _ivy(jar, pins, scratch, jars)))
    return found


def _ivy_jar() -> Path | None:
    """The Ivy that comes with pyspark, found without importing pyspark."""
    spec = importlib.util.find_spec("pyspark")
    places = spec.submodule_search_locations if spec else None
    jars = [jar for place in places or [] for jar in Path(place, "jars").glob("ivy-*.jar")]
    return jars[0] if jars else None


def _maven(program: str, pins: Pins, scratch: Path, jars: Path) -> list[str]:
    pom = scratch / "pom.xml"
    pom.write_text(_pom(pins))
    options = ["-q", "-B", "-f", str(pom), f"-DoutputDirectory={jars}"]
    return [program, *options, "dependency:copy-dependencies"]


def _ivy(ivy: Path, pins: Pins, scratch: Path, jars: Path) -> list[str]:
    module = scratch / "ivy.xml"
    module.write_text(_ivy_module(pins))
    pattern = f"{jars}/[artifact]-[revision](-[classifier]).[ext]"
    options = ["-ivy", str(module), "-retrieve", pattern, "-types", "jar", "bundle", "maven-plugin"]
    return [java(), "-cp", str(ivy), "org.apache.ivy.Main", *options]


def _pom(pins: Pins) -> str:
    """A project that depends on each pinned jar and on nothing that these depend on."""
    dependencies = "".join(map(_pom_dependency, pins))
    return (
        "<project><modelVersion>4.0.0</modelVersion><groupId>acktrail</groupId>"
        "<artifactId>jars</artifactId><version>1</version>"
        f"<dependencies>{dependencies}</dependencies></project>"
    )


def _pom_dependency(coordinate: str) -> str:
    group, artifact, version, *classifier = map(escape, coordinate.split(":"))
    return (
        f"<dependency><groupId>{group}</groupId><artifactId>{artifact}</artifactId>"
        f"<version>{version}</version>"
        + "".join(f"<classifier>{name}</classifier>" for name in classifier)
        + "<exclusions><exclusion><groupId>*</groupId><artifactId>*</artifactId></exclusion>"
        "</exclusions></dependency>"
    )


def _ivy_module(pins: Pins) -> str:
    dependencies = "".join(map(_ivy_dependency, pins))
    return (
        f'<ivy-module version="2.0" xmlns:m="{_IVY_MAVEN}">'
        '<info organisation="acktrail" module="jars"/>'
        '<configurations><conf name="default"/></configurations>'
        f"<dependencies>{dependencies}</dependencies></ivy-module>"
    )


_IVY_MAVEN = "http://ant.apache.org/ivy/maven"
"""The name space of Maven's classifiers in Ivy's files."""


def _ivy_dependency(coordinate: str) -> str:
    group, artifact, version, *classifier = map(escape, coordinate.split(":"))
    opening = f'<dependency org="{group}" name="{artifact}" rev="{version}" transitive="false"'
    if not classifier:
        return f'{opening} conf="default->master"/>'
    wanted = f'<artifact name="{artifact}" type="jar" ext="jar" m:classifier="{classifier[0]}"/>'
    return f'{opening} conf="default->master">{wanted}</dependency>'
