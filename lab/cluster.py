"""Three KRaft nodes, each broker and controller, on loopback.

Clients are told addresses that lead through the proxy; the brokers among themselves, and the lab's
own observers, use the direct ones.
"""

from __future__ import annotations

import re
import shutil
import time
import uuid
from base64 import urlsafe_b64encode
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

from acktrail import artifacts
from acktrail.errors import LabError
from lab import exporter
from lab.disks import unmount
from lab.layouts import broker_logging
from lab.processes import Process
from lab.proxy import Proxy
from lab.scratch import free_ports, new_scratch

VERSIONS = ("4.3.1", "3.9.2")
REPLICA_LAG_MS = 5_000
SESSION_MS = 4_000
_NODES = (1, 2, 3)
_PORTS = 4
_JVM = ("-Xmx384m", "-XX:+UseSerialGC", "-XX:TieredStopAtLevel=1", "-Xshare:auto")

# Quick to fail over, small, and with nothing created by accident.
_SETTINGS = {
    "process.roles": "broker,controller",
    "inter.broker.listener.name": "INTERNAL",
    "controller.listener.names": "CONTROLLER",
    "listener.security.protocol.map": ("INTERNAL:PLAINTEXT,CLIENT:PLAINTEXT,CONTROLLER:PLAINTEXT"),
    "broker.session.timeout.ms": str(SESSION_MS),
    "broker.heartbeat.interval.ms": "500",
    "replica.lag.time.max.ms": str(REPLICA_LAG_MS),
    "controller.quorum.election.timeout.ms": "1000",
    "controller.quorum.fetch.timeout.ms": "2000",
    "controlled.shutdown.enable": "true",
    "leader.imbalance.check.interval.seconds": "300",
    "auto.leader.rebalance.enable": "false",
    "auto.create.topics.enable": "false",
    "group.initial.rebalance.delay.ms": "0",
    "offsets.topic.num.partitions": "3",
    "offsets.topic.replication.factor": "3",
    "transaction.state.log.num.partitions": "1",
    "transaction.state.log.replication.factor": "3",
    "transaction.state.log.min.isr": "2",
    "num.network.threads": "2",
    "num.io.threads": "3",
    "num.recovery.threads.per.data.dir": "1",
    "log.cleaner.dedupe.buffer.size": "4194304",
}

_THROWN = re.compile(r"[\w.]+(?:Exception|Error): ")


@dataclass
class Broker:
    """One node, running or not."""

    id: int
    home: Path
    internal_port: int
    client_port: int
    controller_port: int
    exporter_port: int
    proxy_port: int
    process: Process | None = None
    launches: int = 0
    """How often its log must say "started" before the newest process serves."""

    @property
    def host(self) -> str:
        """The name that stands for its machine in the evidence."""
        return f"kafka-{self.id}"

    @property
    def logs(self) -> Path:
        """Where it writes server.log, controller.log and state-change.log."""
        return self.home / "logs"

    @property
    def data(self) -> Path:
        """Its only data directory."""
        return self.home / "data"

    @property
    def running(self) -> bool:
        """Whether its process is alive."""
        return self.process is not None and self.process.alive


class Cluster:
    """The three nodes. Use `cluster()`: it stops them whatever happens."""

    def __init__(
        self, version: str, home: Path, proxy: Proxy, broker_rules: str = exporter.BROKER_RULES
    ) -> None:
        if version not in VERSIONS:
            raise LabError(f"no Kafka {version} here; there are {', '.join(VERSIONS)}")
        self.version = version
        self.home = home
        self.proxy = proxy
        self._rules = broker_rules
        self.jars = artifacts.resolve(f"kafka-{version}")
        self.java = artifacts.java()
        ports = iter(free_ports(_PORTS * len(_NODES)))  # at once: no two nodes get the same
        self.brokers = {id: self._plan(id, [next(ports) for _ in range(_PORTS)]) for id in _NODES}

    @property
    def bootstrap(self) -> str:
        """For clients: through the proxy."""
        return ",".join(f"127.0.0.1:{broker.proxy_port}" for broker in self.brokers.values())

    @property
    def direct(self) -> str:
        """For observers: past the proxy."""
        return ",".join(f"127.0.0.1:{broker.internal_port}" for broker in self.brokers.values())

    def java_command(
        self, main: str, *arguments: str, options: tuple[str, ...] = (), more: str = ""
    ) -> list[str]:
        """A command line that runs *main* of this Kafka, with *more* on the class path."""
        path = f"{more}:{self.jars}/*" if more else f"{self.jars}/*"
        return [self.java, *options, "-cp", path, main, *arguments]

    def start(self, within: float = 120.0) -> None:
        """Format and start all nodes, and wait until each says that it serves."""
        cluster_id = _new_cluster_id()
        for broker in self.brokers.values():
            self._write_settings(broker)
        self._format(cluster_id)
        for broker in self.brokers.values():
            self.launch(broker.id)
        for broker in self.brokers.values():
            self.wait_started(broker.id, within)

    def launch(self, id: int) -> None:
        """Start the process of node *id* and do not wait."""
        broker = self.brokers[id]
        if broker.running:
            return
        options = (
            *_JVM,
            broker_logging(self.version, broker.logs, broker.home / "log4j.properties"),
            exporter.agent(self._rules, broker.home / "exporter.yml", broker.exporter_port),
        )
        settings = str(broker.home / "server.properties")
        command = self.java_command("kafka.Kafka", settings, options=options)
        broker.process = Process(command, output=broker.home / "output.txt")
        broker.launches = self._count_started(broker) + 1

    def wait_started(self, id: int, within: float = 120.0) -> None:
        """Wait until node *id* says in its log that it serves (again)."""
        broker = self.brokers[id]
        deadline = time.monotonic() + within
        while self._count_started(broker) < broker.launches:
            if not broker.running:
                raise LabError(f"broker {id} did not come up: {self._last_words(broker)}")
            if time.monotonic() > deadline:
                raise LabError(f"broker {id} was not up after {within:.0f} s; see {broker.logs}")
            time.sleep(0.1)

    def stop(self) -> None:
        """End every node at once: nothing in the scratch directory is worth a clean shutdown."""
        for broker in self.brokers.values():
            if broker.process is not None:
                broker.process.kill()
            unmount(broker.data)

    def _plan(self, id: int, ports: list[int]) -> Broker:
        home = self.home / f"kafka-{id}"
        (home / "logs").mkdir(parents=True)
        internal, client, controller, exporter_port = ports
        proxy_port = self.proxy.route(id, client)
        return Broker(id, home, internal, client, controller, exporter_port, proxy_port)

    def _write_settings(self, broker: Broker) -> None:
        voters = ",".join(f"{b.id}@127.0.0.1:{b.controller_port}" for b in self.brokers.values())
        own = {
            "node.id": str(broker.id),
            "controller.quorum.voters": voters,
            "log.dirs": str(broker.data),
            "listeners": (
                f"INTERNAL://127.0.0.1:{broker.internal_port},"
                f"CLIENT://127.0.0.1:{broker.client_port},"
                f"CONTROLLER://127.0.0.1:{broker.controller_port}"
            ),
            "advertised.listeners": (
                f"INTERNAL://127.0.0.1:{broker.internal_port},"
                f"CLIENT://127.0.0.1:{broker.proxy_port}"
            ),
        }
        lines = [f"{name}={value}" for name, value in {**_SETTINGS, **own}.items()]
        (broker.home / "server.properties").write_text("\n".join(lines) + "\n")

    def _format(self, cluster_id: str) -> None:
        """Format the data directories of all nodes, at the same time."""
        formatting = []
        for broker in self.brokers.values():
            logging = broker_logging(
                self.version, broker.home, broker.home / "log4j-format.properties"
            )
            settings = str(broker.home / "server.properties")
            command = self.java_command(
                *("kafka.tools.StorageTool", "format", "-t", cluster_id, "-c", settings),
                options=(*_JVM, logging),
            )
            formatting.append((broker, Process(command, output=broker.home / "output.txt")))
        for broker, process in formatting:
            if process.wait(120) != 0:
                said = (broker.home / "output.txt").read_text().strip().splitlines()
                raise LabError(f"broker {broker.id} could not be formatted: {said[-1:]}")

    def _count_started(self, broker: Broker) -> int:
        log = broker.logs / "server.log"
        return log.read_text(errors="replace").count("Kafka Server started") if log.exists() else 0

    def _last_words(self, broker: Broker) -> str:
        """The first exception: those after it are what a broker says while it shuts down."""
        for path in (broker.logs / "server.log", broker.home / "output.txt"):
            if path.exists():
                lines = path.read_text(errors="replace").splitlines()
                thrown = [line for line in lines if _THROWN.match(line)]
                bad = thrown or [line for line in lines if "ERROR" in line]
                if bad:
                    return bad[0][:400]
        return "its log says nothing of an error"


def _new_cluster_id() -> str:
    """As Kafka makes them: 16 random bytes in base64 that no tool takes for an option."""
    while (made := urlsafe_b64encode(uuid.uuid4().bytes).decode().rstrip("=")).startswith("-"):
        pass
    return made


@contextmanager
def cluster(
    version: str = VERSIONS[0], broker_rules: str = exporter.BROKER_RULES
) -> Iterator[Cluster]:
    """A started cluster in a scratch directory; both are gone when the block ends.

    *broker_rules* are the JMX exporter's rules on the brokers.
    """
    artifacts.java()
    home = new_scratch("cluster")
    try:
        with Proxy() as proxy:
            nodes = Cluster(version, home, proxy, broker_rules)
            try:
                nodes.start()
                yield nodes
            finally:
                nodes.stop()
    finally:
        shutil.rmtree(home, ignore_errors=True)
