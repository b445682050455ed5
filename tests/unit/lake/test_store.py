"""A place of files: what is local, what is remote, and that options are not printed."""

from __future__ import annotations

import pickle
import subprocess
import sys

import pytest

from acktrail.lake import Lake
from acktrail.lake.store import Store, is_remote

PLACES = {
    "/data/lake": ("/data/lake", "", False),
    "lake/": ("lake", "", False),
    "/": ("/", "", False),
    "file:///data/my%20lake": ("/data/my lake", "", False),
    "s3://bucket/lake/": ("s3://bucket/lake", "s3", True),
    "s3a://bucket": ("s3a://bucket", "s3a", True),
    "gs://bucket/lake": ("gs://bucket/lake", "gs", True),
}


@pytest.mark.parametrize("given", PLACES)
def test_what_is_local_and_what_is_remote(given):
    store = Store(given)
    assert (store.path, store.scheme, store.is_remote) == PLACES[given]
    assert is_remote(store.path) is store.is_remote


def test_a_place_below_keeps_the_options_and_shows_none():
    store = Store("s3://bucket/lake", {"aws_secret_access_key": "hunter2"}).at("bronze", "t")
    assert store.path == "s3://bucket/lake/bronze/t"
    assert store.options == {"aws_secret_access_key": "hunter2"}
    assert "hunter2" not in f"{store!r} {store}"
    assert pickle.loads(pickle.dumps(store)) == store


def test_a_lake_may_be_named_by_a_file_address(tmp_path):
    assert Lake(f"file://{tmp_path}").uri == str(tmp_path)


def test_files_are_listed_read_and_removed(tmp_path):
    store = Store(str(tmp_path)).at("a")
    assert not store.exists()
    assert store.names() == store.names("b", below=True) == []
    store.make_directory("b/c")
    for name in ("one", "b/two", "b/c/three"):
        (tmp_path / "a" / name).write_text(name)
    assert store.names() == ["one"]
    assert store.names("b", below=True) == ["c/three", "two"]
    assert store.exists("b/two")
    assert store.read_text("b/c/three") == "b/c/three"
    with pytest.raises(FileNotFoundError):
        store.read_text("four")
    store.delete(["one", "four", "b/two"])
    assert store.names(below=True) == ["b/c/three"]


def test_a_directory_that_may_not_be_read_is_not_an_empty_one(tmp_path):
    store = Store(str(tmp_path / "file"))
    (tmp_path / "file").write_text("")
    with pytest.raises(NotADirectoryError):
        store.exists("below")


def test_a_local_lake_starts_no_client_of_s3(tmp_path):
    """The client would cost an agent 20 MB."""
    program = (
        "import pyarrow as pa; from pyarrow import fs\n"
        "def refuse(*_, **__): raise SystemExit('S3 was started')\n"
        "fs.S3FileSystem = fs.initialize_s3 = fs.ensure_s3_initialized = refuse\n"
        "from acktrail.contracts.arrow import rows\n"
        "from acktrail.contracts.bronze import LOG_RECORDS as T\n"
        "from acktrail.lake import Lake, Position\n"
        "import sys; lake = Lake(sys.argv[1])\n"
        "lake.append(T, rows(T, []), [Position('a', None, 1)]); lake.read(T)\n"
        "print(lake.version(T))\n"
    )
    done = subprocess.run(
        [sys.executable, "-c", program, str(tmp_path)], capture_output=True, text=True, check=False
    )
    assert (done.stdout.strip(), done.returncode) == ("1", 0), done.stderr
