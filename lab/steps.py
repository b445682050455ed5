"""The steps of a scenario: begin and end faults, start clients, and wait for something to be so."""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import dataclass
from typing import TYPE_CHECKING

from acktrail.errors import LabError
from lab.faults import Fault
from lab.processes import now_ms
from lab.snapshots import first_at_or_after

if TYPE_CHECKING:
    from lab.run import Run


@dataclass(frozen=True)
class Start:
    """Begin a fault."""

    fault: Fault

    def do(self, run: Run) -> None:
        """Record when, then break it."""
        run.begin(self.fault)


@dataclass(frozen=True)
class Stop:
    """End a fault that was begun."""

    fault: Fault

    def do(self, run: Run) -> None:
        """Mend it, then record when."""
        run.end(self.fault)


@dataclass(frozen=True)
class Do:
    """Do what is done at once: an action of an administrator."""

    action: Fault

    def do(self, run: Run) -> None:
        """Do it, and record when it began and ended."""
        run.begin(self.action)
        run.end(self.action)


@dataclass(frozen=True)
class Launch:
    """Start a client that starts later, or one that has ended."""

    client: str

    def do(self, run: Run) -> None:
        """Start it."""
        run.launch(self.client)


@dataclass(frozen=True)
class Milestone:
    """Name this moment: what producers are told later has other causes (see `Blame`)."""

    name: str

    def do(self, run: Run) -> None:
        """Note it."""
        run.marks[self.name] = now_ms()


@dataclass(frozen=True)
class Received:
    """Wait until a consumer has received that many messages, since the beginning."""

    consumer: str
    count: int
    within: float = 60.0

    def do(self, run: Run) -> None:
        """Wait for it."""
        progress = run.client(self.consumer).progress

        def got() -> int:
            return progress.update().counts["record_data"]

        if not wait_until(lambda: got() >= self.count, self.within):
            raise LabError(
                f"{self.consumer} received {got()} messages in {self.within:.0f} s, "
                f"not {self.count}"
            )


@dataclass(frozen=True)
class Gone:
    """Wait until a record is no longer in the log, though its offset is above the log's start."""

    topic: str
    offset: int
    partition: int = 0
    within: float = 120.0

    def do(self, run: Run) -> None:
        """Wait for it."""
        if not wait_until(lambda: self._first(run) > self.offset, self.within, pause=2):
            raise LabError(
                f"{self.topic}-{self.partition}: offset {self.offset} was still there after "
                f"{self.within:.0f} s"
            )

    def _first(self, run: Run) -> int:
        found = first_at_or_after(run.cluster.direct, self.topic, self.partition, self.offset)
        return -1 if found is None else found


@dataclass(frozen=True)
class Seconds:
    """Let time pass."""

    seconds: float

    def do(self, run: Run) -> None:
        """Sleep, but not past the bound of the run."""
        time.sleep(min(self.seconds, run.seconds_left()))


@dataclass(frozen=True)
class Acked:
    """Wait until a producer was told of that many stored messages, counted from now.

    By the time it printed for each: what it had been told before and we had not read yet is old.
    A producer that has sent its last message is not waited for.
    """

    producer: str
    more: int
    within: float = 60.0
    or_go_on: bool = False
    """Go on when the time is up, instead of failing."""

    def do(self, run: Run) -> None:
        """Wait for it."""
        client = run.client(self.producer)
        progress = client.progress
        since = now_ms()
        met = wait_until(
            lambda: client.has_ended() or progress.update().acked_since(since) >= self.more,
            self.within,
            pause=0.02,
        )
        if not met and not self.or_go_on:
            raise LabError(
                f"{self.producer} was told of {progress.acked_since(since)} stored messages in "
                f"{self.within:.0f} s, not of {self.more}"
            )


@dataclass(frozen=True)
class Failed:
    """Wait until a producer was told of that many failed messages."""

    producer: str
    count: int
    within: float = 60.0

    def do(self, run: Run) -> None:
        """Wait for it."""
        progress = run.client(self.producer).progress
        if not wait_until(lambda: progress.update().failed >= self.count, self.within):
            raise LabError(f"{self.producer} had {progress.failed} failures, not {self.count}")


@dataclass(frozen=True)
class Finished:
    """Wait until a producer has ended by itself."""

    producer: str
    within: float = 120.0

    def do(self, run: Run) -> None:
        """Wait for it."""
        process = run.client(self.producer).process
        if not wait_until(lambda: not process.alive, self.within):
            raise LabError(f"{self.producer} had not ended after {self.within:.0f} s")


@dataclass(frozen=True)
class Isr:
    """Wait until a partition's in-sync set is exactly this."""

    topic: str
    brokers: tuple[int, ...]
    partition: int = 0
    within: float = 60.0

    def do(self, run: Run) -> None:
        """Wait for it."""
        wanted = sorted(self.brokers)
        seen: list[object] = []

        def reached() -> bool:
            row = run.partition(self.topic, self.partition)
            seen[:] = [row["isr"] if row is not None else "no answer"]
            return seen == [wanted]

        if not wait_until(reached, self.within, pause=0.3):
            raise LabError(
                f"{self.topic}-{self.partition}: the in-sync set was not {wanted} within "
                f"{self.within:.0f} s; last seen: {seen}"
            )


@dataclass(frozen=True)
class InSync:
    """Wait until every replica of every topic is in sync."""

    def do(self, run: Run) -> None:
        """Wait for it."""
        run.wait_in_sync()


@dataclass(frozen=True)
class LeaderMoved:
    """Wait until a partition is led by one of these."""

    topic: str
    brokers: tuple[int, ...]
    partition: int = 0
    within: float = 60.0

    def do(self, run: Run) -> None:
        """Wait for it."""

        def reached() -> bool:
            row = run.partition(self.topic, self.partition)
            return row is not None and row["leader"] in self.brokers

        if not wait_until(reached, self.within, pause=0.3):
            raise LabError(f"{self.topic}-{self.partition}: no leader among {self.brokers}")


def wait_until(so: Callable[[], bool], within: float, pause: float = 0.1) -> bool:
    """Whether *so* became true in time."""
    deadline = time.monotonic() + within
    while not so():
        if time.monotonic() > deadline:
            return False
        time.sleep(pause)
    return True
