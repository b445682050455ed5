"""`--master`: what is refused before a JVM starts, and before anything is written."""

from __future__ import annotations

import pytest
from click.testing import CliRunner

from acktrail.cli import main
from acktrail.contracts.bronze import LOG_RECORDS
from acktrail.lake import Lake
from pipelines import session

WORDS = {"run": ["run"], "sql": ["sql", "SELECT 1"], "watch": ["watch", "--for", "1"]}
EACH = pytest.mark.parametrize("words", WORDS.values(), ids=WORDS)


@pytest.fixture
def lake(tmp_path, monkeypatch):
    """A lake in a directory; a JVM that is started all the same fails the test."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(session, "build", lambda *_, **__: pytest.fail("a JVM was started"))
    made = Lake(tmp_path / "lake")
    made.create(LOG_RECORDS)
    return made


@EACH
@pytest.mark.parametrize("master", ["spark://127.0.0.1:7077", "yarn", "k8s://https://k:6443"])
def test_a_directory_and_a_master_elsewhere_are_refused(words, master, lake):
    done = CliRunner().invoke(main, [*words, "--lake", lake.uri, "--master", master])
    assert (done.exit_code, done.stdout) == (2, "")
    said = f"ConfigError: The lake {lake.uri} is a directory, and the Spark master {master} starts"
    assert said in done.stderr
    assert "set `spark.shared_lake = true`" in done.stderr


@EACH
def test_a_master_that_spark_does_not_know_is_refused(words, lake):
    done = CliRunner().invoke(main, [*words, "--lake", lake.uri, "--master", "localhost:7077"])
    assert done.exit_code == 2
    assert "write local[*], local[2], spark://host:7077, yarn or k8s://..." in done.stderr


def test_a_shared_lake_is_taken(lake):
    """A run with nothing new starts no JVM, so that no cluster is needed to see it."""
    shared = ["--set", "spark.shared_lake=true", "--master", "spark://127.0.0.1:7077"]
    done = CliRunner().invoke(main, ["run", "--lake", lake.uri, *shared])
    assert done.exit_code == 0, done.stderr
