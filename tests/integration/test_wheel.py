"""The wheel in an environment of its own, as an agent host installs it: no Spark, no checks."""

from __future__ import annotations

import os
import shutil
import subprocess
import tarfile
import venv
import zipfile
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


def test_an_installed_wheel_packs_itself_for_executors(host: Path, tmp_path: Path) -> None:
    refused = said(host, "pack", "e.tar.gz", cwd=tmp_path)
    assert (refused.returncode, "pip install 'acktrail[spark" in refused.stderr) == (2, True)
    assert list(tmp_path.iterdir()) == []
    quiet = ["--quiet", "--disable-pip-version-check", "--no-compile"]
    subprocess.run([host / "pip", "install", *quiet, "pandas>=2.2,<3"], check=True, env=CLEAN)
    packed = said(host, "pack", "e.tar.gz", cwd=tmp_path)
    assert packed.returncode == 0, packed.stderr
    elsewhere = tmp_path / "another host" / "environment"
    with tarfile.open(tmp_path / "e.tar.gz") as archive:
        archive.extractall(elsewhere, filter="data")
    code = "import acktrail.lake, pipelines.environment, os; print(acktrail.__file__, os.__file__)"
    asked = [elsewhere / "bin" / "python", "-c", code]
    answer = subprocess.run(asked, cwd="/", env={}, capture_output=True, text=True, check=True)
    assert answer.stdout.count(str(elsewhere)) == 2, "nothing is taken from this host's Python"


TOOLS = ROOT / ".venv-deploy" / "bin"
INSTALLERS = [
    # of docs/deploy.md: the words before the wheel, and where the tool keeps what it installs
    (["pipx", "install"], ("PIPX_HOME", "PIPX_BIN_DIR")),
    (["uv", "tool", "install"], ("UV_TOOL_DIR", "UV_TOOL_BIN_DIR")),
]


@pytest.mark.parametrize(("words", "places"), INSTALLERS, ids=["pipx", "uv"])
def test_the_wheel_is_installed_by_pipx_and_uv(
    words: list[str], places: tuple[str, str], host: Path, tmp_path: Path
) -> None:
    (wheel,) = (host.parent.parent / "wheels").glob("acktrail-*.whl")
    homes = {name: str(tmp_path / name) for name in places}
    program, *rest = words
    command = [TOOLS / program, *rest, f"{wheel}[policy,prometheus]"]
    done = subprocess.run(
        command, env={**CLEAN, **homes}, capture_output=True, text=True, check=False
    )
    assert done.returncode == 0, done.stderr
    acktrail = tmp_path / places[1] / "acktrail"
    code = [acktrail, "exporter", "--lake", "no", "--textfile", tmp_path / "a.prom"]
    asked = subprocess.run(code, env=CLEAN, capture_output=True, text=True, check=False)
    assert asked.returncode == 75, asked.stderr
    assert "acktrail_lake_up 0.0" in (tmp_path / "a.prom").read_text()


def test_an_application_needs_confluent_kafka_alone(host: Path, tmp_path: Path) -> None:
    pip = [host / "pip", "--quiet", "--disable-pip-version-check"]
    sources = shutil.copytree(ROOT / "clients" / "python", tmp_path / "client")
    build = [*pip, "wheel", "--no-deps", "--wheel-dir", tmp_path, sources]
    subprocess.run(build, check=True, env=CLEAN)
    (wheel,) = tmp_path.glob("acktrail_client-*.whl")
    with zipfile.ZipFile(wheel) as content:
        names = content.namelist()
        (metadata,) = (name for name in names if name.endswith("METADATA"))
        needs = [
            line for line in content.read(metadata).decode().splitlines() if "Requires-D" in line
        ]
    assert needs == ["Requires-Dist: confluent-kafka>=2.16"]
    assert "acktrail_client/py.typed" in names
    subprocess.run([*pip, "install", "--no-deps", wheel], check=True, env=CLEAN)
    code = (
        "import sys, acktrail_client; "
        "strange = {'numpy', 'acktrail', 'pyarrow', 'requests'} & set(sys.modules); "
        "assert not strange, strange; "
        "acktrail_client.AuditedProducer({'bootstrap.servers': '127.0.0.1:1', 'log_level': 0})"
    )
    subprocess.run([host / "python", "-c", code], check=True, env=CLEAN, timeout=60)
