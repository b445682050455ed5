"""The loop of `acktrail watch`: jobs, checks and alerts, again and again, in one warm process.

It holds no state between ticks but what failed in a row: all else is in the lake, so memory does
not grow with time, and a tick costs what the new evidence costs.
"""

from __future__ import annotations

import logging
import threading
import time
from collections import Counter
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from typing import Protocol

from acktrail.errors import Overtaken, TerminalError
from acktrail.operate.round_times import RoundTimes
from ingest.agent.source_log import sentence

log = logging.getLogger(__name__)

PATIENCE = 10
"""How often in a row a step may fail before the watch gives up and says why."""


def is_due(last: datetime | None, now: datetime, every: timedelta) -> bool:
    """Whether *every* has passed since *last*, or nobody can tell: a clock may be set back."""
    return last is None or not timedelta(0) <= now - last < every


class RoundStep(Protocol):
    """One thing a tick does; True if it changed something."""

    @property
    def name(self) -> str:
        """What it is called in the journal."""

    def __call__(self, as_of: datetime) -> bool:
        """Do it at *as_of*."""


@dataclass(frozen=True)
class Tick:
    """What one round did."""

    as_of: datetime
    seconds: float
    done: tuple[str, ...]
    """Steps that changed something."""
    again: tuple[str, ...]
    """Steps that another writer or a fault kept from it: the next tick tries again."""


def _report(said: str, slow: bool) -> None:
    (log.warning if slow else log.info)("%s", said)


@dataclass
class Watch:
    """Runs *steps* every *every_s* seconds until told to stop."""

    steps: Sequence[RoundStep]
    every_s: float
    clock: Callable[[], datetime]
    stopping: threading.Event = field(default_factory=threading.Event)
    on_failure: Callable[[], None] = lambda: None
    """Called after a step failed for an unknown reason, e.g. to make a new Spark session."""
    times: RoundTimes = field(default_factory=lambda: RoundTimes(_report))

    def __post_init__(self) -> None:
        self._failures: Counter[str] = Counter()

    def run(self) -> None:
        """Tick until stopped. A tick that takes longer than its time is followed at once."""
        while not self.stopping.is_set():
            began = time.monotonic()
            tick = self.tick()
            self.times.add(tick.seconds)
            if tick.done:
                log.info("Updated %s in %.1f s.", ", ".join(tick.done), tick.seconds)
            self.stopping.wait(max(0.0, self.every_s - (time.monotonic() - began)))

    def tick(self) -> Tick:
        """Every step once, all as of the tick's beginning.

        Later evidence was not read, so silence since then would prove nothing. A step that fails
        leaves the others alone; the next tick tries it again.
        """
        began, as_of = time.monotonic(), self.clock()
        done: list[str] = []
        again: list[str] = []
        for step in self.steps:
            if self.stopping.is_set():
                break
            try:
                if step(as_of):
                    done.append(step.name)
                self._failures.pop(step.name, None)
            except TerminalError:
                raise
            except Overtaken as error:  # others keep this table up to date: no fault of the watch
                again.append(step.name)
                log.info("%s", sentence(error))
            except Exception as error:
                again.append(step.name)
                self._bear(step.name, error)
        return Tick(as_of, time.monotonic() - began, tuple(done), tuple(again))

    def _bear(self, name: str, error: Exception) -> None:
        """Note a failure; give up only when the same step fails again and again."""
        self._failures[name] += 1
        log.warning(
            "%s failed (%d of %d times in a row): %s Will try again.",
            *(name, self._failures[name], PATIENCE, sentence(error)),
        )
        if self._failures[name] >= PATIENCE:
            raise error
        self.on_failure()
