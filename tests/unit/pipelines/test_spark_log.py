"""Each driver has a log of its own; logs stay short and few."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

from pipelines import spark_log

WRITES = """
import subprocess, sys
from pipelines import spark_log
with spark_log.jvm_writes_to_its_log():
    subprocess.run(["sh", "-c", f"echo {sys.argv[1]} >&2"], check=True)
print(spark_log.jvm_log())
"""


@pytest.fixture
def logs(tmp_path, monkeypatch):
    monkeypatch.setenv("ACKTRAIL_CACHE", str(tmp_path))
    (tmp_path / "logs").mkdir()
    return tmp_path / "logs"


def test_two_drivers_write_two_logs(logs):
    written = []
    for word in ("first", "second"):
        command = [sys.executable, "-c", WRITES, word]
        done = subprocess.run(command, capture_output=True, text=True, check=True)
        assert done.stderr == ""
        written.append(done.stdout.strip())
    assert [Path(path).read_text() for path in written] == ["first\n", "second\n"]


def test_a_long_log_is_moved_and_its_writer_goes_on_at_the_start(logs):
    with spark_log.jvm_writes_to_its_log():
        writer = subprocess.Popen(["sh", "-c", "read a; echo $a >&2; read b; echo $b >&2"],
                                  stdin=subprocess.PIPE, text=True)  # fmt: skip
    log = spark_log.jvm_log()
    assert writer.stdin is not None
    writer.stdin.write("before\n")
    writer.stdin.flush()
    while not log.stat().st_size:
        pass
    spark_log.keep_short(log, max_bytes=100)
    assert log.read_text() == "before\n", "it is short"
    spark_log.keep_short(log, max_bytes=3)
    writer.stdin.write("after\n")
    writer.stdin.close()
    assert writer.wait(10) == 0
    assert (log.read_text(), log.with_suffix(".log.1").read_text()) == ("after\n", "before\n")


def test_only_the_newest_logs_of_ended_processes_are_kept(logs):
    gone = range(5_000_000, 5_000_030)  # above the largest process id of Linux
    for age, pid in enumerate(gone):
        for name in (f"spark-{pid}.log", f"spark-{pid}.log.1"):
            (logs / name).write_text("x")
            os.utime(logs / name, (2_000_000_000 - age,) * 2)
    alive = logs / f"spark-{os.getppid()}.log"
    alive.write_text("x")
    os.utime(alive, (1_000_000_000,) * 2)
    spark_log._remove_old(logs)
    kept = {f"spark-{pid}.log{end}" for pid in gone[:20] for end in ("", ".1")}
    assert {path.name for path in logs.iterdir()} == {alive.name, *kept}
