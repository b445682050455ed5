"""The process that holds a cluster up between commands: `python -m lab.keeper VERSION`.

The brokers die with it, however it ends. `state.json` in the scratch root says where it is.
"""

from __future__ import annotations

import json
import os
import signal
import socket
import struct
import sys
import time
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from acktrail.errors import AcktrailError, LabError
from lab.cluster import Cluster, cluster
from lab.scratch import born, reap, scratch_root

_PACKAGE = Path(__file__).parents[1]


def bring_up(version: str, within: float = 180.0) -> dict[str, Any]:
    """Start a keeper apart from this process and wait until its cluster serves."""
    if running() is not None:
        raise LabError(
            "a cluster is already up. See `acktrail lab status`, or `acktrail lab down`."
        )
    _forget()
    messages = scratch_root() / "keeper.log"
    keeper = _spawn(version, messages)
    deadline = time.monotonic() + within
    while (state := running()) is None:
        if os.waitpid(keeper, os.WNOHANG) != (0, 0):
            said = messages.read_text(errors="replace").strip().splitlines()
            raise LabError(said[-1] if said else "the cluster ended before it was up")
        if time.monotonic() > deadline:
            os.kill(keeper, signal.SIGTERM)
            raise LabError(f"the cluster was not up after {within:.0f} s")
        time.sleep(0.2)
    return state


def take_down(within: float = 30.0) -> bool:
    """End the keeper and its cluster, or remove what a dead one left; whether one was up."""
    state = running()
    if state is not None:
        os.kill(state["pid"], signal.SIGTERM)
        deadline = time.monotonic() + within
        while born(state["pid"]) == state["born"]:
            if time.monotonic() > deadline:
                os.kill(state["pid"], signal.SIGKILL)
                break
            time.sleep(0.1)
    _forget()
    reap()
    return state is not None


def running() -> dict[str, Any] | None:
    """What the keeper wrote about its cluster, if it is alive."""
    try:
        state: dict[str, Any] = json.loads(_state_file().read_text())
    except (OSError, ValueError):
        return None
    return state if born(state["pid"]) == state["born"] else None


def condition(broker: Mapping[str, Any]) -> str:
    """How one broker of the state is now: `up`, `DOWN`, or `HANGS` where it does not answer."""
    if born(broker["pid"]) != broker["born"]:
        return "DOWN"
    return "up" if _answers(broker["direct_port"]) else "HANGS"


_API_VERSIONS = struct.pack(">ihhih", 10, 18, 0, 7, -1)
"""Size, key and version of the request that every broker answers, a correlation id, no client."""


def _answers(port: int, within: float = 2.0) -> bool:
    """Whether a broker at *port* of this machine answers a request."""
    try:
        with socket.create_connection(("127.0.0.1", port), timeout=within) as connection:
            connection.sendall(_API_VERSIONS)
            return connection.recv(8)[4:] == struct.pack(">i", 7)
    except OSError:
        return False


def _spawn(version: str, messages: Path) -> int:
    """Start the keeper in a session of its own, to outlive us; its process id."""
    path = os.pathsep.join(filter(None, (str(_PACKAGE), os.environ.get("PYTHONPATH"))))
    flags = os.O_WRONLY | os.O_CREAT | os.O_TRUNC
    return os.posix_spawn(
        sys.executable,
        [sys.executable, "-m", "lab.keeper", version],
        {**os.environ, "PYTHONPATH": path},
        file_actions=[
            (os.POSIX_SPAWN_OPEN, 0, os.devnull, os.O_RDONLY, 0),
            (os.POSIX_SPAWN_OPEN, 1, str(messages), flags, 0o600),
            (os.POSIX_SPAWN_DUP2, 1, 2),
        ],
        setsid=True,
    )


def _state_file() -> Path:
    return scratch_root() / "state.json"


def _forget() -> None:
    _state_file().unlink(missing_ok=True)


def _state(nodes: Cluster) -> dict[str, Any]:
    brokers = [
        {
            "id": broker.id,
            "pid": broker.process.pid if broker.process is not None else 0,
            "born": born(broker.process.pid) if broker.process is not None else None,
            "client_port": broker.proxy_port,
            "direct_port": broker.internal_port,
            "exporter_port": broker.exporter_port,
            "logs": str(broker.logs),
        }
        for broker in nodes.brokers.values()
    ]
    return {
        "pid": os.getpid(),
        "born": born(os.getpid()),
        "kafka": nodes.version,
        "bootstrap": nodes.bootstrap,
        "direct": nodes.direct,
        "brokers": brokers,
    }


def main(version: str) -> None:
    """Hold a cluster up until SIGTERM."""
    stop = signal.sigwait
    signal.pthread_sigmask(signal.SIG_BLOCK, {signal.SIGTERM, signal.SIGINT})
    try:
        with cluster(version) as nodes:
            written = _state_file().with_suffix(".new")
            written.write_text(json.dumps(_state(nodes), indent=1))
            written.rename(_state_file())
            stop({signal.SIGTERM, signal.SIGINT})
            _forget()
    except AcktrailError as error:
        sys.exit(str(error))


if __name__ == "__main__":
    main(sys.argv[1])
