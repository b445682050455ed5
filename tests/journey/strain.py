"""How much longer work takes on this machine than its CPU time: 1 where nobody else works."""

from __future__ import annotations

import threading
import time

_WORK_S = 0.05
_EVERY_S = 2.0


class Strain:
    """Computes a little every two seconds, and measures how long that takes."""

    def __init__(self) -> None:
        self._stop = threading.Event()
        self._thread = threading.Thread(target=self._measure, name="strain")
        self._measured: list[tuple[int, float]] = []

    def __enter__(self) -> Strain:
        self._thread.start()
        return self

    def __exit__(self, *_error: object) -> None:
        self._stop.set()
        self._thread.join(30)

    def between(self, since_ms: int, until_ms: int) -> float:
        """The mean factor from *since_ms* to *until_ms*."""
        found = [f for at, f in list(self._measured) if since_ms <= at <= until_ms]
        return max(1.0, sum(found) / len(found)) if found else 1.0

    def _measure(self) -> None:
        while not self._stop.wait(_EVERY_S):
            began, worked = time.monotonic(), time.thread_time()
            while time.thread_time() - worked < _WORK_S:
                sum(n * n for n in range(2_000))
            took, spent = time.monotonic() - began, time.thread_time() - worked
            self._measured.append((time.time_ns() // 1_000_000, took / spent))
