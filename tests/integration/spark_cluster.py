"""A standalone Spark cluster on loopback: a master and workers, each a process of its own.

Every worker has a working directory of its own, in which its executors unpack the environment that
the driver names; none of them has this checkout on its path.
"""

from __future__ import annotations

import os
import re
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path
from types import TracebackType

import pyspark

from lab import leash
from tests.integration.servers import free_port

SPARK_HOME = Path(pyspark.__file__).parent
_START_S = 180


def leashed(*command: str) -> list[str]:
    """*command*, so that it ends with this process, however that ends."""
    return [sys.executable, "-I", "-S", leash.__file__, str(os.getpid()), *command]


class SparkCluster:
    """A master and *count* workers of one core and 1 GiB each."""

    def __init__(self, directory: Path, count: int = 2) -> None:
        self._directory = directory
        self._count = count
        self._port = free_port()
        self._started: list[subprocess.Popen[bytes]] = []
        self.master = f"spark://127.0.0.1:{self._port}"

    def __enter__(self) -> SparkCluster:
        address = ["--host", "127.0.0.1", "--webui-port", "0"]
        try:
            self._start("master.Master", "master", *address, "--port", str(self._port))
            self._wait(lambda: "I have been elected leader" in self.log("master"), "master")
            for name in self.workers:
                size = ["--cores", "1", "--memory", "1g", "--work-dir", str(self.work(name))]
                self._start("worker.Worker", name, *address, *size, self.master)
            for name in self.workers:
                self._wait(lambda n=name: "registered with master" in self.log(n), name)  # type: ignore[misc]
        except BaseException:
            self._stop()
            raise
        return self

    def __exit__(
        self,
        _kind: type[BaseException] | None,
        _error: BaseException | None,
        _trace: TracebackType | None,
    ) -> None:
        self._stop()

    @property
    def workers(self) -> list[str]:
        """The names of the workers."""
        return [f"worker-{number}" for number in range(1, self._count + 1)]

    def work(self, worker: str) -> Path:
        """The directory below which the executors of *worker* run."""
        return self._directory / worker / "work"

    def log(self, name: str) -> str:
        """What the master or a worker has printed."""
        return (self._directory / name / "log").read_text(encoding="utf-8")

    @property
    def pids(self) -> list[int]:
        """Of the master and the workers."""
        return [process.pid for process in self._started]

    def logs(self) -> list[str]:
        """All that the master, the workers and their executors have printed."""
        files = [*self._directory.glob("*/log"), *self._directory.glob("*/work/app-*/*/std*")]
        return [file.read_text(encoding="utf-8", errors="replace") for file in files]

    def tasks_done(self, worker: str) -> int:
        """How many tasks the executors of *worker* have finished."""
        logs = self.work(worker).glob("app-*/*/stderr")
        return sum(len(re.findall(r"Finished task", log.read_text())) for log in logs)

    def _start(self, kind: str, name: str, *arguments: str) -> None:
        place = self._directory / name
        place.mkdir(parents=True)
        kept = {k: os.environ[k] for k in ("PATH", "HOME", "LANG", "JAVA_HOME") if k in os.environ}
        small = {"SPARK_DAEMON_MEMORY": "256m", "SPARK_LOCAL_IP": "127.0.0.1"}
        program = [str(SPARK_HOME / "bin" / "spark-class"), f"org.apache.spark.deploy.{kind}"]
        with (place / "log").open("wb") as log:
            process = subprocess.Popen(
                leashed(*program, *arguments),
                cwd=place,
                env={**kept, **small, "SPARK_HOME": str(SPARK_HOME)},
                stdin=subprocess.DEVNULL,
                stdout=log,
                stderr=log,
            )
        self._started.append(process)

    def _wait(self, is_up: Callable[[], bool], name: str) -> None:
        deadline = time.monotonic() + _START_S
        while not is_up():
            assert self._started[-1].poll() is None, f"{name} ended:\n{self.log(name)[-2000:]}"
            assert time.monotonic() < deadline, f"{name} is not up:\n{self.log(name)[-2000:]}"
            time.sleep(0.1)

    def _stop(self) -> None:
        """Workers first: they end their executors when they are told to end."""
        for process in reversed(self._started):
            process.terminate()
        for process in reversed(self._started):
            try:
                process.wait(20)
            except subprocess.TimeoutExpired:
                process.kill()
                process.wait()
        self._started.clear()
