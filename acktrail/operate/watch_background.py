"""The jobs of a watch that no early warning waits for: run after the checks, a part of the time."""

from __future__ import annotations

import logging
import threading
import time
from collections import deque
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
TURN_S = 5.0
"""After so long a pass is interrupted: the next round warns first, then goes on with it."""


@dataclass
class BackgroundJobs:
    """Each job whose inputs changed, in order, at most every *every_s* seconds.

    They run one after the other, so that a loss comes from its audit to its incident in one pass.
    A pass that takes long is spread over rounds, so that no warning waits for more than one job,
    and is followed by a longer pause: they never take more than SHARE.
    """

    steps: Sequence[RoundStep]
    every_s: float = 20.0
    stopping: threading.Event = field(default_factory=threading.Event)
    clock: Callable[[], float] = time.monotonic
    name: str = "other jobs"
    _next: float | None = None
    _left: deque[RoundStep] = field(default_factory=deque)
    """What the pass has still to run."""
    _began: float = 0.0
    _spent: float = 0.0
    _failed: Exception | None = None

    def __call__(self, as_of: datetime) -> bool:
        """True if any of them wrote anything. Fails with a pass's first error, at its end."""
        turn = self.clock()
        if not self._left:
            if self._next is not None and turn < self._next:
                return False
            self._left.extend(self.steps)
            self._began, self._spent, self._failed = turn, 0.0, None
        ran = False
        while self._left and not self.stopping.is_set():
            ran = self._run(self._left.popleft(), as_of) or ran
            if self.clock() - turn >= TURN_S:
                break
        self._spent += self.clock() - turn
        self._next = self._began + max(self.every_s, self._spent / SHARE)
        if not self._left and self._failed is not None:
            raise self._failed
        return ran

    def _run(self, step: RoundStep, as_of: datetime) -> bool:
        try:
            return step(as_of)
        except TerminalError:
            raise
        except Overtaken as error:  # another run is ahead: the next pass looks again
            log.info("%s", sentence(error))
        except Exception as error:
            log.info("%s failed: %s", step.name, sentence(error))
            self._failed = self._failed or error
        return False
