"""Nothing outlives the lab, and what a dead one left is cleared away."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest

from acktrail.errors import LabError
from lab import scratch
from lab.processes import Process
from lab.record import record, replay, scrub
from lab.steps import wait_until

ROOT = Path(__file__).parents[3]
PARENT = """
import sys, time
from pathlib import Path
from lab.processes import Process
child = Process(["sleep", "600"], output=Path(sys.argv[1]))
while b"sleep" != Path(f"/proc/{child.pid}/cmdline").read_bytes()[:5]:
    time.sleep(0.01)
child.pause()
print(child.pid, flush=True)
time.sleep(600)
"""


def alive(pid: int) -> bool:
    try:
        state = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0]
    except OSError:
        return False
    return state != "Z"


def test_a_child_dies_with_a_parent_killed_by_kill_9_even_when_stopped(tmp_path):
    command = [sys.executable, "-c", PARENT, str(tmp_path / "out")]
    with subprocess.Popen(command, cwd=ROOT, stdout=subprocess.PIPE, text=True) as parent:
        pid = int(parent.stdout.readline())
        assert alive(pid)
        parent.send_signal(signal.SIGKILL)
    assert wait_until(lambda: not alive(pid), 10)


def test_signals_do_what_they_say(tmp_path):
    process = Process(["sleep", "600"], output=tmp_path / "out")
    assert process.alive
    process.pause()
    assert wait_until(lambda: state(process.pid) == "T", 10)
    process.resume()
    assert wait_until(lambda: state(process.pid) == "S", 10)
    assert process.terminate(10)
    assert process.exit_code == -signal.SIGTERM


def state(pid: int) -> str:
    return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0]


def test_what_it_prints_is_kept(tmp_path):
    process = Process(["sh", "-c", "echo out; echo err >&2; exit 3"], output=tmp_path / "out")
    assert process.wait(10) == 3
    assert (tmp_path / "out").read_text() == "out\nerr\n"


def test_an_end_that_does_not_come_is_an_error(tmp_path):
    process = Process(["sleep", "600"], output=tmp_path / "out")
    with pytest.raises(LabError, match="did not end within"):
        process.wait(0.2)
    process.kill()


@pytest.fixture
def root(tmp_path, monkeypatch):
    monkeypatch.setenv("ACKTRAIL_LAB_DIR", str(tmp_path))
    return tmp_path


def test_directories_of_dead_processes_are_removed_and_those_of_living_ones_kept(root):
    mine = scratch.new_scratch("cluster")
    reused = root / f"cluster.{os.getpid()}.1.abc"  # Our pid, but another process's birth.
    gone = root / "cluster.999999999.1.abc"
    other = root / "notes"
    for path in (reused, gone, other):
        path.mkdir()
    assert sorted(scratch.reap()) == sorted([reused, gone])
    assert mine.exists()
    assert other.exists()


def test_a_full_disk_is_one_clear_line(root, monkeypatch):
    monkeypatch.setattr(scratch, "_NEEDED", 1 << 60)
    with pytest.raises(LabError, match="MB free and a cluster wants"):
        scratch.new_scratch("cluster")


def test_free_ports_are_different():
    assert len(set(scratch.free_ports(20))) == 20


def test_a_port_is_none_that_an_outgoing_connection_may_take(monkeypatch, tmp_path):
    outgoing = tmp_path / "ip_local_port_range"
    outgoing.write_text("11500\t60999\n")
    monkeypatch.setattr(scratch, "_OUTGOING", outgoing)
    assert all(10_000 <= port < 11_500 for port in scratch.free_ports(20))
    outgoing.write_text("1024\t65535\n")  # all of them: then any
    assert len(set(scratch.free_ports(20))) == 20


SCRUBBED = [
    (b"dir /scratch/x/data", b"dir /var/lib/kafka/x/data"),
    (b"from box:9092 (toolbox)", b"from localhost:9092 (toolbox)"),
    (b"\tssl.key.password = hunter2", b"\tssl.key.password = [scrubbed]"),
    (b"\tssl.key.password = [hidden]", b"\tssl.key.password = [hidden]"),
    (b"\tsasl.jaas.config = null", b"\tsasl.jaas.config = null"),
    (b'{"sasl.password": "hunter2"}', b'{"sasl.password": "[scrubbed]"}'),
]


@pytest.mark.parametrize(("text", "expected"), SCRUBBED)
def test_secrets_and_places_are_scrubbed(text, expected):
    assert scrub(text, {b"/scratch": b"/var/lib/kafka", b"box": b"localhost"}) == expected


def test_a_recording_is_compact_and_unpacks_to_what_was_recorded(tmp_path):
    evidence = tmp_path / "evidence"
    (evidence / "logs" / "app").mkdir(parents=True)
    log = "".join(f"line {number}\n" for number in range(5000))
    (evidence / "logs" / "app" / "app.log").write_text(log)
    (evidence / "scenario.json").write_text(json.dumps({"name": "x"}))
    size = record(evidence, tmp_path / "kept")
    assert size < len(log) / 3
    replay(tmp_path / "kept", tmp_path / "again")
    assert (tmp_path / "again" / "logs" / "app" / "app.log").read_text() == log
    assert (tmp_path / "again" / "scenario.json").exists()
    with pytest.raises(LabError, match="not empty"):
        record(evidence, tmp_path / "kept")


def test_receipts_count_the_bytes_of_scrubbed_files(tmp_path, monkeypatch):
    monkeypatch.setattr("lab.record._places", lambda: {b"a-long-host-name": b"x"})
    evidence = tmp_path / "evidence"
    (evidence / "python").mkdir(parents=True)
    lines = ["from a-long-host-name\n", "two\n", "to a-long-host-name\n"]
    (evidence / "python" / "p.jsonl").write_text("".join(lines))
    sizes = [len(lines[0]) + 2, len("".join(lines))]
    rows = [{"at_ms": n, "sizes": {"python/p.jsonl": size}} for n, size in enumerate(sizes)]
    (evidence / "receipts.jsonl").write_text("".join(json.dumps(row) + "\n" for row in rows))
    record(evidence, tmp_path / "kept")
    replay(tmp_path / "kept", tmp_path / "again")
    text = (tmp_path / "again" / "python" / "p.jsonl").read_bytes()
    noted = (tmp_path / "again" / "receipts.jsonl").read_text().splitlines()
    assert [json.loads(row)["sizes"]["python/p.jsonl"] for row in noted] == [7, len(text)]
    assert text[:7] == b"from x\n"


def test_waiting_ends_either_way():
    began = time.monotonic()
    assert wait_until(lambda: True, 10)
    assert not wait_until(lambda: False, 0.2)
    assert time.monotonic() - began < 5
