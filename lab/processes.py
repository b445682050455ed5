"""Child processes that end with us, and the signals that faults are made of."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time
from collections.abc import Sequence
from pathlib import Path

from acktrail.errors import LabError

_LEASH = Path(__file__).with_name("leash.py")


class Process:
    """One child process. It dies with the thread that started it: start it from a lasting one."""

    def __init__(
        self,
        command: Sequence[str],
        *,
        output: Path,
        errors: Path | None = None,
        directory: Path | None = None,
    ) -> None:
        """Start *command*; append what it prints to *output* and *errors* (or both to *output*)."""
        leashed = [sys.executable, "-I", "-S", str(_LEASH), str(os.getpid()), *command]
        with output.open("ab") as out, (errors or output).open("ab") as err:
            self._child = subprocess.Popen(
                leashed, stdin=subprocess.DEVNULL, stdout=out, stderr=err, cwd=directory
            )

    @property
    def pid(self) -> int:
        """The process id, which is the program's own."""
        return self._child.pid

    @property
    def exit_code(self) -> int | None:
        """What it ended with (negative: the signal), or None while it runs."""
        return self._child.poll()

    @property
    def alive(self) -> bool:
        """Whether it still runs (a stopped process does)."""
        return self._child.poll() is None

    def kill(self) -> None:
        """`kill -9`, and wait until it is gone."""
        self._signal(signal.SIGKILL)
        self._child.wait()

    def pause(self) -> None:
        """SIGSTOP: it keeps its connections and answers nothing."""
        self._signal(signal.SIGSTOP)

    def resume(self) -> None:
        """SIGCONT."""
        self._signal(signal.SIGCONT)

    def terminate(self, within: float = 30.0) -> bool:
        """SIGTERM and wait; after *within* seconds `kill -9`. Says whether it went by itself."""
        self._signal(signal.SIGCONT)
        self._signal(signal.SIGTERM)
        try:
            self._child.wait(within)
        except subprocess.TimeoutExpired:
            self.kill()
            return False
        return True

    def wait(self, within: float) -> int:
        """Wait for its own end."""
        try:
            return self._child.wait(within)
        except subprocess.TimeoutExpired:
            raise LabError(f"process {self.pid} did not end within {within:.0f} s") from None

    def _signal(self, number: signal.Signals) -> None:
        if self._child.poll() is None:
            self._child.send_signal(number)


def now_ms() -> int:
    """Wall clock in milliseconds since the epoch, as Kafka counts."""
    return time.time_ns() // 1_000_000
