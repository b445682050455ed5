"""Start real agents quickly: a process that has loaded everything and forks one agent per line.

Reads one line per agent from stdin: the arguments of `acktrail agent`, as JSON. Answers with the
agent's process id. The agent is a child of its own that can be killed without warning.
"""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import time
from pathlib import Path

_ROOT = Path(__file__).parents[2]


class AgentFleet:
    """Agents that start in milliseconds; the loading is paid once."""

    def __init__(self, log: Path) -> None:
        self._log = log.open("ab")
        self._last: int | None = None
        self._server = subprocess.Popen(
            [sys.executable, __file__],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=self._log,
            text=True,
            cwd=_ROOT,
        )

    def __enter__(self) -> AgentFleet:
        return self

    def __exit__(self, *_error: object) -> None:
        if self._last is not None and _alive(self._last):
            self.kill(self._last)
        self.close()

    def start(self, *arguments: str) -> int:
        """Start an agent; its process id."""
        assert self._server.stdin is not None
        assert self._server.stdout is not None
        self._server.stdin.write(json.dumps(arguments) + "\n")
        self._server.stdin.flush()
        self._last = int(self._server.stdout.readline())
        return self._last

    def kill(self, pid: int) -> None:
        """End an agent as a power cut would."""
        os.kill(pid, signal.SIGKILL)
        while _alive(pid):
            time.sleep(0.005)

    def kill_if_alive(self, pid: int) -> None:
        """As *kill*; an agent that has ended by itself is left alone."""
        if _alive(pid):
            self.kill(pid)

    def wait(self, pid: int, within: float = 300.0) -> None:
        """Wait until an agent has ended by itself."""
        until = time.monotonic() + within
        while _alive(pid):
            assert time.monotonic() < until, f"agent {pid} did not end"
            time.sleep(0.02)

    def close(self) -> None:
        assert self._server.stdin is not None
        assert self._server.stdout is not None
        self._server.stdin.close()
        self._server.wait(120)
        self._server.stdout.close()
        self._log.close()


def _alive(pid: int) -> bool:
    try:
        os.kill(pid, 0)
    except ProcessLookupError:
        return False
    return True


def _serve() -> None:
    sys.path.insert(0, str(_ROOT))
    import ingest.agent.counters
    import ingest.agent.lean
    import ingest.agent.loop
    import ingest.sources.log_files  # noqa: F401 - loaded for the children
    from acktrail.cli import main
    from acktrail.terminal import journal  # noqa: F401 - loaded for the children

    signal.signal(signal.SIGCHLD, signal.SIG_IGN)  # the dead are gone at once
    for line in sys.stdin:
        pid = os.fork()
        if pid == 0:
            signal.signal(signal.SIGCHLD, signal.SIG_DFL)
            os.close(0)
            try:
                main(["agent", *json.loads(line)])
            except SystemExit as error:
                os._exit(error.code if isinstance(error.code, int) else 1)
            os._exit(0)
        print(pid, flush=True)


if __name__ == "__main__":
    _serve()
