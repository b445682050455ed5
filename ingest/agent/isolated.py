"""A source in a process of its own: when that one crashes, the agent and other sources go on.

librdkafka is native code. A failed assertion or a segmentation fault in it ends the whole process,
and has done so while the coordinator of a group was restarted. `IsolatedSource` is a `Source` whose
methods are calls to the real source in a child process (`ingest.agent.source_process`). The child
reads; the rows travel to this process, which commits them. When the child has ended, by whatever
signal, the call raises `SourceUnavailable`, and the loop opens the source again where the lake
says.

The child ends with its parent, however that one ends: it reads from a socket whose other end is
here. Settings, secrets included, go over that socket and never on a command line.
"""

from __future__ import annotations

import logging
import os
import signal
import socket
import subprocess
import sys
from collections.abc import Iterator
from multiprocessing.connection import Connection
from typing import TYPE_CHECKING, Any

from acktrail import errors
from acktrail.contracts import table_named
from acktrail.errors import SourceUnavailable
from acktrail.lake import Lake
from ingest.source import Batch, Health

if TYPE_CHECKING:
    from acktrail.settings.sources import SourceSettings
    from ingest.registry import SourceContext

ANSWER_S = 600.0
"""A child that has answered nothing for so long hangs, and is ended."""
CLOSE_S = 10.0
"""How long a source may take to let go of its connections."""


class IsolatedSource:
    """The source that *settings* describe, in a child process while it is open."""

    def __init__(self, settings: SourceSettings, context: SourceContext) -> None:
        self.name = settings.name
        self._settings = settings
        self._context = context
        self._child: _Child | None = None
        self._numbers: dict[int, int] = {}
        """id of a batch handed over and not committed: its number in the child."""

    def open(self, lake: Lake) -> None:
        """Start the child, and let it learn from the lake where this source was left."""
        self.close()
        self._child = _Child(self.name)
        quiet = not logging.getLogger("ingest").handlers
        how = (self._settings, self._context, lake.store, quiet)
        self._call("open", *how)

    def poll(self, timeout_s: float) -> Iterator[Batch]:
        """What is new, each batch when it is asked for."""
        self._call("poll", timeout_s)
        while (given := self._call("next")) is not None:
            number, table, rows, positions, received, dropped = given
            batch = Batch(table_named(table), rows, positions, received, dropped)
            self._numbers[id(batch)] = number
            yield batch

    def committed(self, batch: Batch) -> None:
        """The batch is in the lake; a child that is gone has nothing left to forget."""
        number = self._numbers.pop(id(batch), None)
        if self._child is not None and self._child.alive:
            try:
                self._call("committed", number)
            except SourceUnavailable:
                return  # the next poll finds it out

    def health(self) -> Health:
        """What the source reports about itself."""
        found: Health = self._call("health")
        return found

    def close(self) -> None:
        """Let the source go, and end its process."""
        child, self._child = self._child, None
        self._numbers.clear()
        if child is not None:
            child.end()

    @property
    def pid(self) -> int | None:
        """The child's process id, while there is one."""
        return None if self._child is None else self._child.process.pid

    def _call(self, method: str, *arguments: Any) -> Any:
        if self._child is None:
            raise SourceUnavailable(f"The process of source {self.name} is not running.")
        return self._child.call(method, *arguments)


class _Child:
    """The process, and the socket to it."""

    def __init__(self, source: str) -> None:
        self._source = source
        ours, theirs = socket.socketpair()
        with theirs:
            self.process = subprocess.Popen(
                [
                    sys.executable,
                    "-P",
                    "-m",
                    "ingest.agent.source_process",
                    str(theirs.fileno()),
                    source,
                ],
                pass_fds=(theirs.fileno(),),
                stdin=subprocess.DEVNULL,
                stdout=subprocess.DEVNULL,  # a command's answers are there
                env={**os.environ, "PYTHONPATH": os.pathsep.join(p for p in sys.path if p)},
            )
        self._connection = Connection(ours.detach())

    @property
    def alive(self) -> bool:
        return self.process.poll() is None

    def call(self, method: str, *arguments: Any, within: float | None = None) -> Any:
        """The answer of the child; its errors are raised here."""
        try:
            self._connection.send((method, arguments))
            limit = ANSWER_S if within is None else within
            if not self._connection.poll(limit):
                self.process.kill()
                raise SourceUnavailable(
                    f"The process of source {self._source} did not answer for {limit:.0f} s. "
                    "It was ended and is started again."
                )
            kind, answer = self._connection.recv()
        except (EOFError, OSError):
            raise SourceUnavailable(self._how_it_ended()) from None
        if kind == "ok":
            return answer
        raise _error(*answer)

    def end(self) -> None:
        """Close the source and end the process, if need be by force."""
        try:
            if self.alive:
                self.call("close", within=CLOSE_S)
        except errors.AcktrailError:
            pass  # it ends in any case
        self._connection.close()
        try:
            self.process.wait(CLOSE_S)
        except subprocess.TimeoutExpired:
            self.process.kill()
            self.process.wait()

    def _how_it_ended(self) -> str:
        try:
            code = self.process.wait(CLOSE_S)
        except subprocess.TimeoutExpired:
            self.process.kill()
            code = self.process.wait()
        named = {number.value: number.name for number in signal.Signals}
        how = (
            f"by signal {-code} ({named.get(-code, '?')})" if code < 0 else f"with exit code {code}"
        )
        return (
            f"The process of source {self._source} ended {how}. Other sources are not affected; "
            "it is started again and reads on from its last commit."
        )


def _error(name: str, text: str) -> Exception:
    """The child's error as one of ours; one that is not ours may be cured by opening again."""
    kind = getattr(errors, name, None)
    if isinstance(kind, type) and issubclass(kind, errors.AcktrailError):
        return kind(text)
    return SourceUnavailable(f"{name}: {text}")
