"""The archive of executors' environment: what goes in, and which archives a driver refuses."""

from __future__ import annotations

import io
import json
import os
import tarfile
from pathlib import Path

import pytest
from click.testing import CliRunner

from acktrail.cli import main
from acktrail.errors import ConfigError, UsageError
from pipelines import environment

REQUIRED = [
    # a requirement, the extras asked for, the name that is needed
    ("click>=8.1", (), "click"),
    ("PyYAML >=6", (), "pyyaml"),
    ("typing_extensions", (), "typing-extensions"),
    ('pandas<3,>=2.2; extra == "spark"', ("spark",), "pandas"),
    ("pandas<3,>=2.2; extra == 'spark'", (), None),
    ('acktrail[checks,spark]; extra == "all"', ("spark",), None),
    ('tzdata>=2022.7; sys_platform == "win32"', (), "tzdata"),
]


@pytest.mark.parametrize(("required", "extras", "name"), REQUIRED)
def test_requirements_are_read(required, extras, name):
    assert environment._needed(required, extras) == name


def test_all_that_tasks_need_is_packed_and_spark_is_not():
    names = {distribution.name.lower() for distribution in environment._distributions()}
    assert {"numpy", "pyarrow", "deltalake", "pandas", "pydantic", "python-dateutil"} <= names
    assert not names & {"pyspark", "py4j", "pytest", "great-expectations", "acktrail"}


def test_acktrail_is_packed_whole_from_where_it_is_imported():
    packed = {name: path for path, name in environment._own_files()}
    for name in ("acktrail/artifacts.json", "pipelines/gold/loss_events.py", "lab/__init__.py"):
        assert packed[f"packages/{name}"] == environment._root() / name
    assert not [name for name in packed if "/demo/" in name or "__editable__" in name]
    assert not [name for name in packed if "__pycache__" in name]


def test_changed_code_is_other_code(tmp_path, monkeypatch):
    for package in environment.PACKAGES:
        (tmp_path / package).mkdir()
        (tmp_path / package / "a.py").write_text("a = 1\n")
    monkeypatch.setattr(environment, "_root", lambda: tmp_path)
    before = environment._digest()
    assert environment._digest() == before
    (tmp_path / "lab" / "a.py").write_text("a = 2\n")
    assert environment._digest() != before


def archive(path: Path, name: str, content: object) -> Path:
    text = json.dumps(content).encode()
    with tarfile.open(path, "w:gz") as opened:
        member = tarfile.TarInfo(name)
        member.size = len(text)
        opened.addfile(member, io.BytesIO(text))
    return path


def test_an_archive_of_the_same_code_is_taken(tmp_path):
    path = archive(tmp_path / "e.tar.gz", environment.MANIFEST, environment.manifest())
    environment.refuse_other(path)


OTHER = [
    # what, how the archive's description differs, what is said
    ("code", {"code": "0"}, "has other code of acktrail. Make it again: acktrail pack --force"),
    ("python", {"python": "3.4"}, "has python 3.4, here 3."),
    ("a library", {"pyarrow": "1.0"}, "has pyarrow 1.0, here "),
    ("a processor", {"machine": "vax"}, "has machine vax, here "),
]


@pytest.mark.parametrize(("change", "said"), [c[1:] for c in OTHER], ids=[c[0] for c in OTHER])
def test_an_archive_of_something_else_is_refused(tmp_path, change, said):
    made = {**environment.manifest(), **change}
    path = archive(tmp_path / "e.tar.gz", environment.MANIFEST, made)
    with pytest.raises(ConfigError) as raised:
        environment.refuse_other(path)
    assert said in str(raised.value)


def test_other_files_are_refused(tmp_path):
    foreign = archive(tmp_path / "e.tar.gz", "bin/python", {})
    with pytest.raises(ConfigError, match="is not made by `acktrail pack`"):
        environment.refuse_other(foreign)
    (tmp_path / "text.tar.gz").write_text("no archive")
    with pytest.raises(ConfigError, match="cannot be read"):
        environment.refuse_other(tmp_path / "text.tar.gz")


@pytest.mark.parametrize("share", [0.1, 0.5, 0.9])
def test_an_archive_that_was_cut_is_refused(tmp_path, share):
    path = archive(tmp_path / "e.tar.gz", environment.MANIFEST, {"code": os.urandom(5_000).hex()})
    whole = path.read_bytes()
    path.write_bytes(whole[: int(share * len(whole))])
    with pytest.raises(ConfigError, match="cannot be read"):
        environment.refuse_other(path)


def test_a_file_is_not_overwritten_and_must_be_one_that_spark_unpacks(tmp_path):
    (tmp_path / "e.tar.gz").write_text("mine")
    with pytest.raises(UsageError, match="--force replaces it"):
        environment.pack(tmp_path / "e.tar.gz")
    with pytest.raises(UsageError, match="by their names"):
        environment.pack(tmp_path / "e.tar")
    with pytest.raises(UsageError, match="does not exist"):
        environment.pack(tmp_path / "nowhere" / "e.tar.gz")
    assert [path.name for path in tmp_path.iterdir()] == ["e.tar.gz"]
    done = CliRunner().invoke(main, ["pack", str(tmp_path / "e.tar.gz")])
    assert (done.exit_code, (tmp_path / "e.tar.gz").read_text()) == (2, "mine")
