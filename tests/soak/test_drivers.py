"""A hundred rounds of many processes on one lake, killed at random, on a disk and on S3.

`watch`, `run`, `agent --once` and `check` run at once. In every third round one of them, or one of
Spark's Python workers, is killed at a random moment; on S3 the store is also slow, cut off, answers
503, loses answers after it has done what was asked, and is killed and started again on its files.
Afterwards nothing may be lost or doubled, no alert may have flapped, and the tables are those of
one run over the same evidence.
"""

from __future__ import annotations

import contextlib
import os
import random
import signal
import subprocess
import time
from collections import Counter
from collections.abc import Iterator
from pathlib import Path

import pytest

from acktrail.contracts.bronze import LOG_RECORDS
from acktrail.lake import Lake
from tests.integration.drivers import (
    Drivers,
    contents,
    copied_evidence,
    doubled,
    flapping,
    stop,
    wait_for_rows,
)
from tests.soak.faulty_store import FaultyStore, faulty_store

ROUNDS = int(os.environ.get("SOAK_ROUNDS", "100"))
SEED = int(os.environ.get("SOAK_SEED", "20261118"))
AT_ONCE = (("run",), ("agent", "--once"), ("check",))
FINE = {"run": {0}, "agent": {0}, "check": {0, 1}}
TRY_AGAIN = 75
pytestmark = [
    pytest.mark.skipif(not os.environ.get("ACKTRAIL_SOAK"), reason="make soak"),
    pytest.mark.timeout(7200),
]


@contextlib.contextmanager
def watching(drivers: Drivers) -> Iterator[list[subprocess.Popen[str]]]:
    """A watch that is started again whenever it was killed; the newest is the last."""
    started = [drivers.command("watched", "watch", "--every", "3")]
    try:
        yield started
        assert stop(started[-1]) in (0, TRY_AGAIN), drivers.said()[-6000:]
    finally:
        for process in started:
            process.kill()
            process.wait()


def workers_of(pid: int) -> list[int]:
    """Python workers of Spark below *pid*."""
    found, waiting = [], [pid]
    while waiting:
        parent = waiting.pop()
        listed = subprocess.run(
            ["pgrep", "-P", str(parent)], capture_output=True, text=True, check=False
        )
        children = [int(child) for child in listed.stdout.split()]
        waiting += children
        for child in children:
            with contextlib.suppress(OSError):
                if b"pyspark" in Path(f"/proc/{child}/cmdline").read_bytes():
                    found.append(child)
    return found


def kill_something(
    chance: random.Random, running: dict[str, subprocess.Popen[str]], watch: subprocess.Popen[str]
) -> str:
    """Kill one process of the round, the watch, or a Python worker; what was killed."""
    time.sleep(chance.uniform(0.5, 12))
    target = chance.choice([*running, "watch", "worker"])
    if target == "worker":
        found = workers_of(running["run"].pid) or workers_of(watch.pid)
        if not found:
            return ""
        with contextlib.suppress(ProcessLookupError):
            os.kill(chance.choice(found), signal.SIGKILL)
        return target
    running.get(target, watch).kill()
    return target


def play(drivers: Drivers, store: FaultyStore | None) -> Counter[str]:
    """All rounds; how often each thing happened."""
    chance, seen = random.Random(SEED), Counter[str]()
    with watching(drivers) as watches:
        wait_for_rows(drivers, watches[-1])
        for number in range(ROUNDS):
            if watches[-1].poll() is not None:
                watches.append(drivers.command("watched", "watch", "--every", "3"))
            drivers.print_lines(2)
            running = {words[0]: drivers.command("collected", *words) for words in AT_ONCE}
            hit, fault = "", ""
            if number % 3 == 1:
                hit = kill_something(chance, running, watches[-1])
                seen[f"killed {hit}"] += 1
            if store is not None and number % 3 == 2:
                fault = store.misbehave(chance)
                seen[f"store {fault}"] += 1
            for name, process in running.items():
                code = process.wait(900)
                allowed = FINE[name] | ({-9} if hit == name else set())
                if fault or hit == "worker":
                    allowed |= {TRY_AGAIN}
                    seen["tried again"] += code == TRY_AGAIN
                assert code in allowed, f"{name} ended with {code}\n{drivers.said()[-8000:]}"
            ended = watches[-1].poll()
            allowed = {None} | ({-9} if hit == "watch" else set()) | ({75} if fault else set())
            assert ended in allowed, drivers.said()[-8000:]
            print(f"{number:3d} {hit or '-':8} {fault or '-'}", flush=True)
    return seen


def nothing_is_lost_or_doubled(drivers: Drivers, home: Path, seen: Counter[str]) -> None:
    lake = drivers.lake
    for config in ("watched", "collected"):
        assert drivers.command(config, "agent", "--once").wait(600) == 0, drivers.said()[-4000:]
    assert drivers.command("collected", "run").wait(600) == 0, drivers.said()[-4000:]
    lines = sum(drivers.lines.values())
    read = lake.read(LOG_RECORDS, columns=["source"]).num_rows
    once = copied_evidence(lake, Lake(home / "once"))
    ran = drivers.command("collected", "run", "--lake", once.uri).wait(600)
    assert ran == 0, drivers.said()[-4000:]
    found, wanted = contents(lake), contents(once)
    differ = [name for name in wanted if found[name] != wanted[name]]
    print(f"{ROUNDS} rounds, {lines} lines: {dict(seen)}")
    assert read == lines + 2
    assert doubled(lake) == {}
    assert flapping(lake) == []
    assert differ == []


def test_on_a_disk(tmp_path):
    drivers = Drivers(tmp_path, Lake(tmp_path / "lake"))
    drivers.print_lines(5)
    nothing_is_lost_or_doubled(drivers, tmp_path, play(drivers, None))


def test_on_s3(tmp_path):
    with faulty_store(tmp_path / "objects") as store:
        drivers = Drivers(
            tmp_path, Lake(store.lake_uri, store.options), environment=store.environment
        )
        drivers.print_lines(5)
        nothing_is_lost_or_doubled(drivers, tmp_path, play(drivers, store))
