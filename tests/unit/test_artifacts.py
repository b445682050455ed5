"""The cache of jars: whole or not at all, checked, and clear about what is missing."""

from __future__ import annotations

import hashlib
import json
import os
import stat
from pathlib import Path

import pytest

from acktrail import artifacts
from acktrail.errors import ArtifactError

JAR = b"a jar"
PINS = {"tiny": {"org.example:tiny:1.0": hashlib.sha256(JAR).hexdigest()}}
COPY = """#!/bin/sh
for word in "$@"; do case "$word" in -DoutputDirectory=*) out="${word#*=}";; esac; done
%s
"""


def program(directory: Path, name: str, text: str) -> None:
    path = directory / name
    path.write_text(text)
    path.chmod(path.stat().st_mode | stat.S_IXUSR)


@pytest.fixture
def machine(tmp_path, monkeypatch):
    """A machine with an empty cache, a `java` that does nothing, no Maven and no pyspark."""
    programs = tmp_path / "bin"
    programs.mkdir()
    program(programs, "java", "#!/bin/sh\nexit 1\n")
    monkeypatch.setenv("PATH", f"{programs}{os.pathsep}/bin")
    monkeypatch.delenv("JAVA_HOME", raising=False)
    monkeypatch.setenv("ACKTRAIL_CACHE", str(tmp_path / "cache"))
    monkeypatch.setattr(artifacts, "_all_pins", lambda: PINS)
    monkeypatch.setattr(artifacts, "_ivy_jar", lambda: None)
    which = artifacts.shutil.which
    monkeypatch.setattr(artifacts.shutil, "which", lambda name: which(name, path=str(programs)))
    return programs


def test_a_set_is_fetched_once_and_then_needs_no_resolver(machine, tmp_path, capsys):
    program(machine, "mvn", COPY % 'printf "a jar" > "$out/tiny-1.0.jar"')
    home = artifacts.resolve("tiny")
    assert capsys.readouterr().err == f"Fetching the jars of tiny (1), once, into {home}\n"
    assert home == tmp_path / "cache" / "tiny"
    (machine / "mvn").unlink()
    (machine / "java").unlink()
    assert artifacts.resolve("tiny") == home
    assert capsys.readouterr().err == ""
    assert (home / "tiny-1.0.jar").read_bytes() == JAR


WRONG = {
    "another file": ('printf "not it" > "$out/tiny-1.0.jar"', "is not the file it should be"),
    "a file too many": (
        'printf "a jar" > "$out/tiny-1.0.jar"; : > "$out/extra.jar"',
        "not pinned: extra.jar",
    ),
    "a file too few": (': > "$out/other-1.0.jar"', "tiny-1.0.jar is missing"),
    "nothing, and a reason": ('echo "[ERROR] no route"; exit 1', r"Maven: \[ERROR\] no route"),
}


@pytest.mark.parametrize("case", WRONG)
def test_what_a_resolver_may_bring_wrongly_never_enters_the_cache(machine, tmp_path, case):
    script, said = WRONG[case]
    program(machine, "mvn", COPY % script)
    with pytest.raises(ArtifactError, match=said):
        artifacts.resolve("tiny")
    assert list((tmp_path / "cache").iterdir()) == []


def test_a_cached_jar_that_changed_is_refused(machine):
    program(machine, "mvn", COPY % 'printf "a jar" > "$out/tiny-1.0.jar"')
    (artifacts.resolve("tiny") / "tiny-1.0.jar").write_bytes(b"tampered")
    with pytest.raises(ArtifactError, match="Remove"):
        artifacts.resolve("tiny")


def test_no_resolver_says_what_to_install(machine):
    with pytest.raises(ArtifactError, match="neither Maven nor pyspark's Ivy is installed"):
        artifacts.resolve("tiny")


def test_no_java_says_what_to_install(machine):
    (machine / "java").unlink()
    with pytest.raises(ArtifactError, match="openjdk-17"):
        artifacts.java()
    with pytest.raises(ArtifactError, match="openjdk-17"):
        artifacts.resolve("tiny")


def test_an_unknown_set_lists_the_known_ones(machine):
    with pytest.raises(ArtifactError, match="There are: tiny"):
        artifacts.resolve("huge")


def test_every_pin_is_a_coordinate_and_a_sha256():
    pins = json.loads(Path(artifacts.__file__).with_name("artifacts.json").read_text())
    clients = {f"kafka-clients-{v}" for v in ("2.8.2", "3.9.2", "4.0.2", "4.1.2", "4.3.1")}
    servers = {"kafka-4.3.1", "kafka-3.9.2", "kafka-frameworks-4.3.1", "spring-kafka-3.3.4"}
    assert set(pins) == {"delta", "s3a", "jmx-exporter", "jolokia"} | clients | servers
    for jars in pins.values():
        for coordinate, digest in jars.items():
            assert len(coordinate.split(":")) == (4 if "jolokia" in coordinate else 3)
            assert len(bytes.fromhex(digest)) == 32
