"""Watching the clients' processes: when one ends, its output file gets a line that says so."""

from __future__ import annotations

import json
import threading
from collections import defaultdict
from pathlib import Path

from lab.clients import Client
from lab.processes import now_ms

_EVERY = 0.1


class Supervisor:
    """A thread that looks after the clients of a run, as a service manager would."""

    def __init__(self) -> None:
        self.exits: dict[str, list[int]] = defaultdict(list)
        """By client: how its processes ended, in order; negative: by that signal."""
        self.died: dict[str, int] = {}
        """Clients that ended badly, and not because the scenario ended them."""
        self._running: list[Client] = []
        self._stop = threading.Event()
        self._lock = threading.Lock()
        self._thread = threading.Thread(target=self._repeat, name="supervisor", daemon=True)

    def start(self) -> None:
        """Begin to look."""
        self._thread.start()

    def stop(self) -> None:
        """Look a last time; what ends later leaves no line."""
        self._stop.set()
        if self._thread.ident is not None:  # a run may fail before anything is watched
            self._thread.join(30)
        self.look()

    def add(self, client: Client) -> None:
        """Look after one more."""
        with self._lock:
            self._running.append(client)

    def look(self) -> None:
        """Write the line of every client that has ended since the last look."""
        with self._lock:
            for client in list(self._running):
                code = client.process.exit_code
                if code is None:
                    continue
                self._running.remove(client)
                self.exits[client.name].append(code)
                if code and not client.ended_by_us:
                    self.died[client.name] = code
                write_exit(client.output, code)

    def _repeat(self) -> None:
        while not self._stop.wait(_EVERY):
            self.look()


def write_exit(output: Path, code: int) -> None:
    """Append the line of an ended process; a line that it left unfinished is not glued to it."""
    line = json.dumps({"timestamp": now_ms(), "name": "process_exited", "code": code})
    with output.open("ab+") as file:
        if file.tell():
            file.seek(-1, 2)
            if file.read(1) != b"\n":
                file.write(b"\n")
        file.write(line.encode() + b"\n")
