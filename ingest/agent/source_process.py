"""The child process of an isolated source: answers its parent until that one is gone.

Started by `ingest.agent.isolated` as `python -m ingest.agent.source_process FD NAME`. SIGTERM and
SIGINT are left to the parent, which closes the source after its last commit; so a signal to the
whole process group ends an agent in good order.
"""

from __future__ import annotations

import logging
import os
import queue
import signal
import sys
import threading
from collections.abc import Iterator
from multiprocessing.connection import Connection
from typing import TYPE_CHECKING, Any

from acktrail.errors import AcktrailError
from ingest.agent.lean import small_pools, without_pandas

if TYPE_CHECKING:
    from acktrail.lake.store import Store
    from acktrail.settings.sources import SourceSettings
    from ingest.registry import SourceContext
    from ingest.source import Batch, Health, Source

log = logging.getLogger(__name__)

Given = tuple[int, str, Any, Any, int, dict[str, int]]
"""A batch on its way: number, table, rows, positions, received, dropped."""


class SourceServer:
    """The real source, and what its parent may ask of it."""

    def __init__(self) -> None:
        self._source: Source | None = None
        self._batches: Iterator[Batch] = iter(())
        self._given: dict[int, Batch] = {}
        self._last = 0

    def open(
        self,
        settings: SourceSettings,
        context: SourceContext,
        store: Store,
        quiet: bool,
    ) -> None:
        """Build the source and open it."""
        from acktrail.lake import Lake
        from acktrail.terminal import journal
        from ingest.registry import build_source

        journal.to_stderr(logging.CRITICAL if quiet else logging.INFO)
        self._source = build_source(settings, context)
        self._source.open(Lake(store.path, store.options))

    def poll(self, timeout_s: float) -> None:
        """Begin a poll; what was left of the one before is not asked for any more."""
        self._batches = iter(self._opened.poll(timeout_s))

    def next(self) -> Given | None:
        """The next batch of the poll; None at its end."""
        batch = next(self._batches, None)
        if batch is None:
            return None
        self._last += 1
        self._given[self._last] = batch
        numbers = (batch.received, dict(batch.dropped))
        return self._last, batch.table.name, batch.rows, batch.positions, *numbers

    def committed(self, number: int) -> None:
        """The batch with this number is in the lake."""
        batch = self._given.pop(number, None)
        if batch is not None:
            self._opened.committed(batch)

    def health(self) -> Health:
        """What the source reports about itself."""
        return self._opened.health()

    def close(self) -> None:
        """Let go of files and connections."""
        if self._source is not None:
            self._source.close()

    @property
    def _opened(self) -> Source:
        assert self._source is not None, "open() comes first"
        return self._source


def main() -> None:
    """Serve the parent at the other end of the socket whose descriptor is the first argument."""
    for number in (signal.SIGTERM, signal.SIGINT):
        signal.signal(number, signal.SIG_IGN)
    small_pools()
    without_pandas(reading=True)
    connection = Connection(int(sys.argv[1]))
    requests: queue.SimpleQueue[tuple[str, tuple[Any, ...]]] = queue.SimpleQueue()
    threading.Thread(target=_listen, args=(connection, requests), daemon=True).start()
    server = SourceServer()
    while True:
        method, arguments = requests.get()
        connection.send(_answer(server, method, arguments))


def _listen(connection: Connection, requests: queue.SimpleQueue[Any]) -> None:
    """Hand requests on. At their end the parent is gone, and nobody wants an answer any more."""
    try:
        while True:
            requests.put(connection.recv())
    except (EOFError, OSError):
        os._exit(0)


def _answer(server: SourceServer, method: str, arguments: tuple[Any, ...]) -> tuple[str, Any]:
    try:
        return "ok", getattr(server, method)(*arguments)
    except AcktrailError as error:
        return "error", (type(error).__name__, str(error))
    except Exception as error:
        log.exception("Unexpected error in the process of a source.")
        return "error", (type(error).__name__, str(error))


if __name__ == "__main__":
    main()
