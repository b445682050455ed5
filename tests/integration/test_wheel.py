"""The wheel in an environment of its own, as an agent host installs it: no Spark, no checks."""

from __future__ import annotations

import os
import shutil
import subprocess
import venv
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
LINE = (
    "[2026-01-31 07:00:00,000] WARN [Producer clientId=till-1] Got error produce response with "
    "correlation id 7 on topic-partition sales-0, retrying (4 attempts left). Error: "
    "NOT_ENOUGH_REPLICAS (org.apache.kafka.clients.producer.internals.Sender)\n"
)


CLEAN = {name: value for name, value in os.environ.items() if name != "PYTHONPATH"}
"""Where this checkout is not on the path: pip would find acktrail there, and install nothing."""


@pytest.fixture(scope="module")
def host(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The programs of an environment with the wheel and what it needs, without extras."""
    place = tmp_path_factory.mktemp("host")
    venv.create(place / "env", with_pip=True)
    programs = place / "env" / "bin"
    wheels = place / "wheels"
    sources = shutil.copytree(ROOT, place / "sources", ignore=shutil.ignore_patterns(".*", "build"))
    quiet = ["--quiet", "--disable-pip-version-check"]
    build = [programs / "pip", "wheel", *quiet, "--no-deps", "--wheel-dir", wheels, sources]
    subprocess.run(build, check=True, env=CLEAN)
    (wheel,) = wheels.glob("acktrail-*.whl")
    subprocess.run(
        [programs / "pip", "install", *quiet, "--no-compile", wheel], check=True, env=CLEAN
    )
    return programs


def said(host: Path, *words: str, cwd: Path) -> subprocess.CompletedProcess[str]:
    command = [host / "acktrail", *words]
    return subprocess.run(command, cwd=cwd, env=CLEAN, capture_output=True, text=True, check=False)


def test_an_agent_host_reads_evidence_without_spark_and_checks(host: Path, tmp_path: Path) -> None:
    freeze = [host / "pip", "freeze"]
    listed = subprocess.run(freeze, env=CLEAN, capture_output=True, text=True, check=True)
    installed = {line.partition("==")[0].lower() for line in listed.stdout.splitlines()}
    assert not installed & {"pyspark", "pandas", "great-expectations", "great_expectations"}
    (tmp_path / "app.log").write_text(LINE)
    (tmp_path / "acktrail.toml").write_text(
        'cluster = "shop"\n[lake]\nuri = "lake"\n'
        f'[[sources]]\nname = "app"\nkind = "log_files"\npaths = ["{tmp_path}/app.log"]\n'
    )
    agent = said(host, "agent", "--once", "--config", "acktrail.toml", cwd=tmp_path)
    assert agent.returncode == 0, agent.stderr
    tables = said(host, "lake", "tables", "--lake", "lake", "--format", "csv", cwd=tmp_path)
    assert any("log_records" in row and ",1" in row for row in tables.stdout.splitlines())
    events = said(host, "read", "app.log", "--format", "json", cwd=tmp_path)
    assert '"attempts_left": 4' in events.stdout, events.stderr


@pytest.mark.parametrize(
    ("words", "extra"),
    [(["run"], "acktrail[spark]"), (["check"], "acktrail[checks]"), (["demo"], "acktrail[spark]")],
    ids=lambda value: value if isinstance(value, str) else value[0],
)
def test_what_needs_an_extra_says_which(
    words: list[str], extra: str, host: Path, tmp_path: Path
) -> None:
    (tmp_path / "app.log").write_text(LINE)
    lake = [] if words == ["demo"] else ["--lake", str(tmp_path / "lake")]
    result = said(host, *words, *lake, cwd=tmp_path)
    assert result.returncode == 2, result.stderr
    assert f"pip install '{extra}'" in result.stderr
    assert "Traceback" not in result.stderr
