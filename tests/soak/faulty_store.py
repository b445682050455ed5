"""An S3 server that keeps its objects on disk, behind a front that makes it misbehave.

The server is versitygw (Go). Before it is trusted its conditional PUT is raced: of many writers of
one key with `If-None-Match: *` exactly one may win, every time.
"""

from __future__ import annotations

import contextlib
import multiprocessing
import os
import random
import shutil
import signal
import subprocess
import time
from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass, field
from multiprocessing.synchronize import Barrier
from pathlib import Path

import pyarrow as pa
from deltalake import CommitProperties, DeltaTable
from deltalake.exceptions import DeltaError

from acktrail.artifacts import cache_directory
from lab.scratch import free_ports
from tests.integration.s3_server import ERROR, KEY_ID, SECRET, Front, Seen, wait_for_port

VERSION = "v1.8.0"
BUCKET = "lake"
FAULTS = ("slow", "503", "frozen", "lost answers", "restarted")


def program() -> Path:
    """The versitygw program, built once by Go."""
    built = cache_directory() / f"versitygw-{VERSION}" / "versitygw"
    if not built.is_file():
        go = shutil.which("go")
        assert go, "Go is needed to build the S3 server: apt-get install golang"
        built.parent.mkdir(parents=True, exist_ok=True)
        package = f"github.com/versity/versitygw/cmd/versitygw@{VERSION}"
        subprocess.run(
            [go, "install", package], env=_go_environment(built.parent), check=True, timeout=900
        )
    return built


def _go_environment(target: Path) -> dict[str, str]:
    return {**os.environ, "GOBIN": str(target), "GOFLAGS": "-mod=mod"}


@dataclass
class FaultyStore:
    """The server and its front. Commands reach it by the front, the test directly."""

    home: Path
    port: int
    front: Front = field(init=False)
    process: subprocess.Popen[bytes] = field(init=False)

    def __post_init__(self) -> None:
        self.front = Front(self.direct)

    @property
    def direct(self) -> str:
        """The server's own address."""
        return f"http://127.0.0.1:{self.port}"

    @property
    def lake_uri(self) -> str:
        """A lake in the bucket."""
        return f"s3://{BUCKET}/lake"

    @property
    def options(self) -> dict[str, str]:
        """For the test's own look at the lake."""
        return {
            "endpoint_url": self.direct,
            "access_key_id": KEY_ID,
            "secret_access_key": SECRET,
            "region": "us-east-1",
        }

    @property
    def environment(self) -> dict[str, str]:
        """For commands."""
        return {
            "AWS_ENDPOINT_URL": self.front.address,
            "AWS_ACCESS_KEY_ID": KEY_ID,
            "AWS_SECRET_ACCESS_KEY": SECRET,
            "AWS_REGION": "us-east-1",
        }

    def start(self) -> None:
        """Serve the objects in *home*."""
        self.process = subprocess.Popen(
            [program(), "--access", KEY_ID, "--secret", SECRET, "--port", f"127.0.0.1:{self.port}",
             "posix", str(self.home)],
            stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
        )  # fmt: skip
        wait_for_port(self.port, self.process)

    def stop(self) -> None:
        """Kill it: what it has answered must be on disk."""
        self.process.kill()
        self.process.wait()

    def misbehave(self, chance: random.Random) -> str:
        """One fault for some seconds; its name."""
        time.sleep(chance.uniform(0.5, 8))
        fault = chance.choice(FAULTS)
        seconds = chance.uniform(2, 8)
        if fault == "frozen":
            self.process.send_signal(signal.SIGSTOP)
            time.sleep(seconds)
            self.process.send_signal(signal.SIGCONT)
        elif fault == "restarted":
            self.stop()
            time.sleep(seconds / 2)
            self.start()
        elif fault == "lost answers":
            self.front.lose_answers = lambda _seen: chance.random() < 0.3
            time.sleep(seconds)
            self.front.lose_answers = None
        else:
            self.front.answer = _slow if fault == "slow" else _unavailable
            time.sleep(seconds)
            self.front.answer = None
        return fault


def _slow(_seen: Seen) -> None:
    time.sleep(1.0)


def _unavailable(_seen: Seen) -> tuple[int, str]:
    return 503, ERROR.format("SlowDown", "Please reduce your request rate.")


def race(store: FaultyStore, rounds: int = 40, writers: int = 6) -> None:
    """Of *writers*, each a process, that create one table at once exactly one wins, every time."""
    spawn = multiprocessing.get_context("spawn")
    results, barrier = spawn.SimpleQueue(), spawn.Barrier(writers)
    options = {**store.options, "allow_http": "true"}
    racing = [
        spawn.Process(target=_create, args=(rounds, options, barrier, results))
        for _ in range(writers)
    ]
    for process in racing:
        process.start()
    winners: Counter[int] = Counter()
    for _ in racing:
        winners.update(results.get())
    for process in racing:
        process.join()
    assert dict(winners) == dict.fromkeys(range(rounds), 1), "a key was created twice, or never"


def _create(rounds: int, options: dict[str, str], barrier: Barrier, results: object) -> None:
    """Create every table at the same time as the others; report which this process has made."""
    won = []
    for number in range(rounds):
        barrier.wait(120)
        try:
            DeltaTable.create(
                f"s3://{BUCKET}/race/{number}",
                pa.schema([("n", pa.int64())]),
                mode="error",
                storage_options=options,
                commit_properties=CommitProperties(max_commit_retries=0),
            )
        except DeltaError:
            continue
        won.append(number)
    results.put(won)  # type: ignore[attr-defined]
    os._exit(0)  # delta-rs may abort a process that ends while its threads live


@contextlib.contextmanager
def faulty_store(home: Path) -> Iterator[FaultyStore]:
    """A store whose conditional PUT was raced first."""
    (home / BUCKET).mkdir(parents=True)  # a directory is a bucket
    store = FaultyStore(home, free_ports(1)[0])
    store.start()
    try:
        with store.front.open():
            race(store)
            yield store
    finally:
        store.stop()
