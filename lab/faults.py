"""Faults: each begins, ends, and leaves a record of when."""

from __future__ import annotations

import time
from dataclasses import dataclass
from typing import TYPE_CHECKING, Protocol

from acktrail.errors import LabError
from lab import exporter

if TYPE_CHECKING:
    from lab.run import Run

ALL = (1, 2, 3)


class Fault(Protocol):
    """Something that goes wrong for a while."""

    @property
    def name(self) -> str:
        """What it is called in `faults.json`."""

    @property
    def target(self) -> str:
        """What it happens to."""

    def start(self, run: Run) -> None:
        """Break it."""

    def stop(self, run: Run) -> None:
        """Mend it."""


@dataclass(frozen=True)
class KillBroker:
    """`kill -9` a broker; mending starts it again."""

    broker: int
    name: str = "kill_broker"

    @property
    def target(self) -> str:
        """The broker's host."""
        return f"kafka-{self.broker}"

    def start(self, run: Run) -> None:
        """Kill it."""
        run.process_of(self.broker).kill()

    def stop(self, run: Run) -> None:
        """Start it and wait until it serves."""
        run.cluster.launch(self.broker)
        run.cluster.wait_started(self.broker)


@dataclass(frozen=True)
class LaunchBroker:
    """Start a broker that is down, and do not wait for it."""

    broker: int
    name: str = "launch_broker"

    @property
    def target(self) -> str:
        """The broker's host."""
        return f"kafka-{self.broker}"

    def start(self, run: Run) -> None:
        """Start it."""
        run.cluster.launch(self.broker)

    def stop(self, run: Run) -> None:
        """Nothing is left to mend."""


@dataclass(frozen=True)
class StopBroker:
    """Shut a broker down in good order; mending starts it again."""

    broker: int
    name: str = "stop_broker"

    @property
    def target(self) -> str:
        """The broker's host."""
        return f"kafka-{self.broker}"

    def start(self, run: Run) -> None:
        """SIGTERM: leadership moves away first."""
        run.process_of(self.broker).terminate(60)

    def stop(self, run: Run) -> None:
        """Start it and wait until it serves."""
        KillBroker(self.broker).stop(run)


@dataclass(frozen=True)
class PauseBrokers:
    """SIGSTOP brokers: they hold their connections and answer nothing."""

    brokers: tuple[int, ...]
    name: str = "pause_brokers"

    @property
    def target(self) -> str:
        """The brokers' hosts."""
        return ",".join(f"kafka-{each}" for each in self.brokers)

    def start(self, run: Run) -> None:
        """SIGSTOP."""
        for each in self.brokers:
            run.process_of(each).pause()

    def stop(self, run: Run) -> None:
        """SIGCONT."""
        for each in self.brokers:
            run.process_of(each).resume()


@dataclass(frozen=True)
class KillController:
    """`kill -9` whichever node is the active controller; mending starts it again."""

    name: str = "kill_controller"
    target: str = "the active controller"

    def start(self, run: Run) -> None:
        """Find it by its metric and kill it."""
        broker = active_controller(run)
        run.note("controller", f"kafka-{broker}")
        run.process_of(broker).kill()

    def stop(self, run: Run) -> None:
        """Start every node that is down."""
        for broker in run.cluster.brokers.values():
            if not broker.running:
                KillBroker(broker.id).stop(run)


@dataclass(frozen=True)
class RollingRestart:
    """Restart the brokers one by one, each when all replicas are in sync again."""

    name: str = "rolling_restart"
    target: str = "kafka-1,kafka-2,kafka-3"

    def start(self, run: Run) -> None:
        """Do the whole round."""
        for broker in run.cluster.brokers:
            StopBroker(broker).start(run)
            StopBroker(broker).stop(run)
            run.wait_in_sync()

    def stop(self, run: Run) -> None:
        """Nothing is left to mend."""


@dataclass(frozen=True)
class Network:
    """Bad weather between the clients and some brokers; brokers among themselves are not hit.

    *what*: `cut` (nothing passes), `refused` (connections are closed), `delay_s`, `drop_acks`
    (produce responses are lost), `delay_acks_s` (produce responses are late).
    """

    what: str
    brokers: tuple[int, ...] = ALL
    value: bool | float = True

    @property
    def name(self) -> str:
        """By what it does."""
        return f"network_{self.what.removesuffix('_s')}"

    @property
    def target(self) -> str:
        """The brokers behind it."""
        return ",".join(f"kafka-{each}" for each in self.brokers)

    def start(self, run: Run) -> None:
        """Let it begin."""
        for each in self.brokers:
            run.cluster.proxy.change(each, **{self.what: self.value})

    def stop(self, run: Run) -> None:
        """Let it clear up."""
        calm: bool | float = False if isinstance(self.value, bool) else 0.0
        for each in self.brokers:
            run.cluster.proxy.change(each, **{self.what: calm})
        lost = sum(run.cluster.proxy.weather(each).dropped for each in self.brokers)
        if self.what == "drop_acks":
            run.note("produce_responses_dropped", lost)


@dataclass(frozen=True)
class KillClient:
    """`kill -9` a producer or consumer. There is no mending."""

    client: str
    name: str = "kill_client"

    @property
    def target(self) -> str:
        """The client."""
        return self.client

    def start(self, run: Run) -> None:
        """Kill it with whatever it still holds."""
        run.end_client(self.client, gracefully=False)

    def stop(self, run: Run) -> None:
        """Nothing."""


@dataclass(frozen=True)
class StopClient:
    """Ask a producer or consumer to end, as a deployment does; `Launch` starts it again."""

    client: str
    name: str = "stop_client"

    @property
    def target(self) -> str:
        """The client."""
        return self.client

    def start(self, run: Run) -> None:
        """SIGTERM, and wait until it has left."""
        run.end_client(self.client, gracefully=True)

    def stop(self, run: Run) -> None:
        """Nothing."""


@dataclass(frozen=True)
class PauseClient:
    """SIGSTOP a client for a while."""

    client: str
    name: str = "pause_client"

    @property
    def target(self) -> str:
        """The client."""
        return self.client

    def start(self, run: Run) -> None:
        """SIGSTOP."""
        run.client(self.client).process.pause()

    def stop(self, run: Run) -> None:
        """SIGCONT."""
        run.client(self.client).process.resume()


def active_controller(run: Run, within: float = 30.0) -> int:
    """The id of the node that says it is the active controller."""
    deadline = time.monotonic() + within
    while time.monotonic() < deadline:
        for broker in run.cluster.brokers.values():
            text = exporter.scrape(broker.exporter_port) if broker.running else None
            if text and "kafka_controller_kafkacontroller_activecontrollercount 1.0" in text:
                return broker.id
        time.sleep(0.3)
    raise LabError("no node says that it is the active controller")
