"""The start-up archive belongs to the very jars it was made from."""

from __future__ import annotations

import os
import shutil

import pytest

from pipelines import session

JAVA = 'openjdk version "17.0.15"'


@pytest.fixture
def jars(tmp_path, monkeypatch):
    monkeypatch.setenv("ACKTRAIL_CACHE", str(tmp_path / "cache"))
    home = tmp_path / "venv" / "jars"
    _install(home)
    return home


def _install(home, seconds=1_700_000_000):
    home.mkdir(parents=True)
    for name in ("spark-core.jar", "spark-sql.jar"):
        (home / name).write_bytes(b"jar")
        os.utime(home / name, (seconds, seconds))


def test_it_is_found_again(jars):
    assert session._archive_of(JAVA, jars) == session._archive_of(JAVA, jars)


def test_an_environment_made_anew_at_the_same_place_has_one_of_its_own(jars):
    before = session._archive_of(JAVA, jars)
    shutil.rmtree(jars)
    _install(jars, seconds=1_700_000_060)
    assert session._archive_of(JAVA, jars) != before


@pytest.mark.parametrize(
    "change",
    [
        pytest.param(lambda jars: (jars / "spark-sql.jar").write_bytes(b"longer"), id="size"),
        pytest.param(lambda jars: (jars / "spark-sql.jar").unlink(), id="a jar less"),
        pytest.param(lambda jars: (jars / "extra.jar").write_bytes(b"jar"), id="a jar more"),
    ],
)
def test_other_jars_have_another(jars, change):
    before = session._archive_of(JAVA, jars)
    change(jars)
    assert session._archive_of(JAVA, jars) != before


def test_another_java_has_another(jars):
    assert session._archive_of('openjdk version "21"', jars) != session._archive_of(JAVA, jars)


def test_only_those_of_the_same_place_are_removed(jars, tmp_path):
    elsewhere = tmp_path / "other" / "jars"
    _install(elsewhere)
    old, other = session._archive_of("old", jars), session._archive_of(JAVA, elsewhere)
    new = session._archive_of(JAVA, jars)
    new.parent.mkdir()
    for archive in (old, other, new):
        archive.touch()
    session._remove_older(new)
    assert [archive.exists() for archive in (old, other, new)] == [False, True, True]
