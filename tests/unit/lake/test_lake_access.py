"""A lake that cannot be written says who may not, where, and what to do; it is not damaged.

Every case is real: mounts in a namespace of their own, and a user without rights. The interpreter
may be unreadable for that user, so the process first writes a lake as it is, and then steps down.
"""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[3]
PROGRAM = """
import os, pwd, sys
from pathlib import Path
from acktrail.contracts.arrow import rows
from acktrail.contracts.runs import RUNS
from acktrail.errors import AcktrailError
from acktrail.lake import Lake
from datetime import UTC, datetime
now = datetime(2026, 1, 31, tzinfo=UTC)
run = dict(job="j", run=0, started_at=now, ended_at=now, as_of=now, shape="map", rebuilt=False,
           rows_in=3, rows_out=2, touched=0, version=1)
def put(place, number):
    Lake(place).append(RUNS, rows(RUNS, [{**run, "run": number}]))
def count(place):
    return Lake(place).read(RUNS).num_rows
here = Path(sys.argv[1])
os.chmod(here, 0o755)
put(here / "lake", 0)
count(here / "lake")
pwd.getpwuid(0)
def step_down():
    if os.geteuid() == 0:
        os.setgroups([]); os.setresgid(65534, 65534, 65534); os.setresuid(65534, 65534, 65534)
def said(do, *words):
    try:
        do(*words)
    except AcktrailError as error:
        print(f"{type(error).__name__} {error.exit_code}: {error}")
    else:
        print("done")
"""
CASES = {
    # name: (mounts, what is done, what is said on each line)
    "another's directory, as nobody": (
        "", "os.chmod(here / 'lake', 0o555); os.chmod(here / 'lake/runs', 0o555)\n"
        "os.chmod(here / 'lake/runs/runs', 0o555); step_down(); said(put, here / 'lake', 1)\n"
        "said(put, here / 'other', 1); print(count(here / 'lake'))",
        ["LakeInaccessible 2: {h}/lake/runs/runs cannot be used: user {u} may not write to "
         "{h}/lake/runs/runs (owner {o}, mode dr-xr-xr-x). Run as the owner",
         "LakeInaccessible 2: {h}/other/runs/runs cannot be used: user {u} may not write to {h} "
         "(owner {o}, mode drwxr-xr-x). Run as the owner", "1"],
    ),
    "a directory that may not be entered": (
        "", "os.chmod(here / 'lake', 0o600); step_down()\n"
        "said(put, here / 'lake', 1); said(count, here / 'lake')",
        ["LakeInaccessible 2: {h}/lake/runs/runs cannot be used: user {u} may not enter {h}/lake "
         "(owner {o}, mode drw-------)."] * 2,
    ),
    "mounted read-only": (
        "mount --bind $1/lake $1/mnt; mount -o remount,ro,bind $1/mnt",
        "said(put, here / 'mnt', 1); print(count(here / 'mnt'))",
        ["LakeInaccessible 2: {h}/mnt/runs/runs cannot be written: the file system at {h}/mnt is "
         "mounted read-only. Remount it: `mount -o remount,rw {h}/mnt`.", "1"],
    ),
    "a new lake where nothing can be written": (
        "mount -t tmpfs -o ro none $1/mnt", "said(put, here / 'mnt/new', 1)",
        ["LakeInaccessible 2: {h}/mnt/new/runs/runs cannot be written: the file system at {h}/mnt "
         "is mounted read-only."],
    ),
    "a file": (
        "", "(here / 'file').touch(); said(put, here / 'file', 1); said(count, here / 'file')\n"
        "said(put, here / 'file/lake', 1)",
        ["LakeInaccessible 2: {h}/file/runs/runs cannot be used: {h}/file is a file, not a "
         "directory."] * 2
        + ["LakeInaccessible 2: {h}/file/lake/runs/runs cannot be used: {h}/file is a file"],
    ),
    "a parent that does not exist is made": (
        "", "said(put, here / 'a/b/lake', 1); print(count(here / 'a/b/lake'))", ["done", "1"],
    ),
    "a full disk, and space again": (
        "mount -t tmpfs -o size=256k none $1/mnt",
        "put(here / 'mnt/lake', 0)\n"
        "try:\n    (here / 'mnt/fill').write_bytes(bytes(300_000))\nexcept OSError: pass\n"
        "said(put, here / 'mnt/lake', 1); said(put, here / 'mnt/new', 1)\n"
        "(here / 'mnt/fill').unlink(); said(put, here / 'mnt/lake', 1)\n"
        "print(count(here / 'mnt/lake'))",
        ["SourceUnavailable 75: {h}/mnt/lake/runs/runs cannot be written: the disk is full (0 KiB "
         "free at {h}/mnt). Nothing was committed", "SourceUnavailable 75: {h}/mnt/new/runs/runs "
         "cannot be written: the disk is full (0 KiB", "done", "2"],
    ),
}  # fmt: skip


@pytest.mark.parametrize(("mounts", "steps", "said"), CASES.values(), ids=CASES)
def test_what_keeps_from_the_lake_is_named(tmp_path, mounts, steps, said):
    for place in (*tmp_path.parents[:2], tmp_path):
        place.chmod(0o755)  # pytest's own are closed to others
    own_mounts = ["unshare", "--mount" if os.geteuid() == 0 else "-Urm"]
    (tmp_path / "mnt").mkdir()
    (tmp_path / "mount.sh").write_text(f"set -e\n{mounts}\n")
    # A mount hides what was there before: the lake to bind is written first, by the same program.
    program = PROGRAM + (
        "import subprocess\n"
        "subprocess.run(['sh', str(here / 'mount.sh'), str(here)], check=True)\n" + steps
    )
    done = subprocess.run(
        [*own_mounts, sys.executable, "-c", program, str(tmp_path)],
        env={**os.environ, "PYTHONPATH": str(ROOT)},
        capture_output=True,
        text=True,
        timeout=120,
        check=False,
    )
    assert not done.returncode, done.stderr
    names = {"h": tmp_path, "u": "nobody" if os.geteuid() == 0 else "root", "o": "root"}
    lines = done.stdout.splitlines()
    assert len(lines) == len(said), done.stdout
    for line, start in zip(lines, said, strict=True):
        assert line.startswith(start.format(**names))
        assert "backup" not in line
