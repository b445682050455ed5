"""The jobs of a watch that no early warning waits for: run after the checks, a part of the time."""

from __future__ import annotations

import logging
import threading
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from datetime import datetime
from typing import TYPE_CHECKING

from acktrail.errors import Overtaken, TerminalError
from ingest.agent.source_log import sentence

if TYPE_CHECKING:
    from acktrail.operate.watch_loop import RoundStep

log = logging.getLogger(__name__)

SHARE = 1 / 3
"""The part of the time that these jobs may take together: the rest is for early warnings."""


@dataclass
class BackgroundJobs:
    """Each job whose inputs changed, in order, at most every *every_s* seconds.

    They run one after the other, so that a loss comes from its audit to its incident in one pass.
    A pass that takes long is followed by a longer pause: they never take more than SHARE.
    """

    steps: Sequence[RoundStep]
    every_s: float = 20.0
    stopping: threading.Event = field(default_factory=threading.Event)
    clock: Callable[[], float] = time.monotonic
    name: str = "other jobs"
    _next: float | None = None

    def __call__(self, as_of: datetime) -> bool:
        """True if any of them wrote anything. Fails with the first error, after all have run."""
        began = self.clock()
        if self._next is not None and began < self._next:
            return False
        ran, failed = False, None
        for step in self.steps:
            if self.stopping.is_set():
                break
            try:
                ran = step(as_of) or ran
            except TerminalError:
                raise
            except Overtaken as error:  # another run is ahead: the next pass looks again
                log.info("%s", sentence(error))
            except Exception as error:
                log.info("%s failed: %s", step.name, sentence(error))
                failed = failed or error
        took = self.clock() - began
        self._next = began + max(self.every_s, took / SHARE)
        if failed is not None:
            raise failed
        return ran
