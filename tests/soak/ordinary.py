"""Ordinary applications on a real cluster, with Prometheus and Alertmanager beside them.

Nothing here is made for acktrail: ProducerPerformance as a batch job that is started again and
again, a plain confluent-kafka script, VerifiableProducer with its defaults (`retries=0`), two
consumer groups, and the JMX exporter with its example rules on brokers and Java clients.
"""

from __future__ import annotations

import signal
import sys
import threading
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

from confluent_kafka.admin import AdminClient, NewTopic

from lab import exporter
from lab.cluster import Cluster, cluster
from lab.layouts import client_logging
from lab.processes import Process
from lab.scratch import free_ports
from lab.warning import alertmanager
from tests.integration.servers import PrometheusServer

TOPICS = ("clicks", "orders", "payments")
_JVM = ("-Xmx96m", "-XX:+UseSerialGC", "-XX:TieredStopAtLevel=1")
_TOOLS = "org.apache.kafka.tools"

BROKER_RULES = Path(__file__).with_name("kafka_brokers.yml").read_text()
CLIENT_RULES = "lowercaseOutputName: true\nrules: [{pattern: '.*'}]\n"

SCRIPT = """\
import sys, time
from confluent_kafka import Producer
producer = Producer({"bootstrap.servers": sys.argv[1], "client.id": "orders-script"})
number = 0
while True:
    producer.produce("orders", f"order {number}".encode())
    producer.poll(0)
    number += 1
    time.sleep(0.02)
"""
READER = """\
import sys
from confluent_kafka import Consumer
consumer = Consumer({"bootstrap.servers": sys.argv[1], "group.id": "analytics"})
consumer.subscribe(["orders"])
while True:
    message = consumer.poll(1)
"""


class Applications:
    """The applications of the cluster; each keeps its log and has an exporter if it is Java."""

    def __init__(self, nodes: Cluster, home: Path) -> None:
        self.nodes = nodes
        self.home = home
        self.logs = home / "logs"
        self.verifiable = home / "verifiable"
        self.targets: dict[str, int] = {}
        self._running: list[Process] = []
        self._stopping = threading.Event()
        self._batch = threading.Thread(target=self._keep_batch_running)
        self._batch_port = free_ports(1)[0]
        self.targets["clicks-batch"] = self._batch_port

    def start(self) -> None:
        """Create the topics and start everything."""
        admin = AdminClient({"bootstrap.servers": self.nodes.direct})
        wanted = [NewTopic(name, 3, 3, config={"min.insync.replicas": "2"}) for name in TOPICS]
        for future in admin.create_topics(wanted).values():
            future.result(30)
        brokers = ("--bootstrap-server", self.nodes.bootstrap)
        self.verifiable.mkdir(parents=True)
        self._java(
            *("payments-api", f"{_TOOLS}.VerifiableProducer", "--topic", "payments", *brokers),
            *("--throughput", "50", "--value-prefix", "17"),
            output=self.verifiable / "payments.jsonl",
        )
        self._java(
            *("billing", f"{_TOOLS}.VerifiableConsumer", "--topic", "payments", *brokers),
            *("--group-id", "billing", "--verbose"),
            output=self.verifiable / "billing.jsonl",
        )
        self._python("orders-script", SCRIPT)
        self._python("analytics", READER)
        self._batch.start()

    def stop(self) -> None:
        """End them all, at once."""
        self._stopping.set()
        for process in self._running:
            process.terminate(10)
        if self._batch.ident is not None:
            self._batch.join()

    def _keep_batch_running(self) -> None:
        """A job of a minute that a scheduler starts again: the same client id, a new process."""
        while not self._stopping.is_set():
            process = self._java(
                *("clicks-batch", f"{_TOOLS}.ProducerPerformance", "--topic", "clicks"),
                *("--num-records", "12000", "--record-size", "200", "--throughput", "200"),
                *("--bootstrap-server", self.nodes.bootstrap),
                port=self._batch_port,
            )
            while process.alive and not self._stopping.wait(1):
                pass
            process.terminate(10)

    def _java(
        self, name: str, main: str, *arguments: str, output: Path | None = None, port: int = 0
    ) -> Process:
        home = self.home / "applications" / name
        home.mkdir(parents=True, exist_ok=True)
        logs = self.logs / name
        logs.mkdir(parents=True, exist_ok=True)
        if not port:
            (port,) = free_ports(1)
            self.targets[name] = port
        options = (
            *_JVM,
            client_logging(self.nodes.version, logs / "client.log", home / "log4j.properties"),
            exporter.agent(CLIENT_RULES, home / "exporter.yml", port),
        )
        command = self.nodes.java_command(main, *arguments, options=options)
        process = Process(command, output=output or home / "output.txt", errors=home / "errors.txt")
        self._running.append(process)
        return process

    def _python(self, name: str, script: str) -> None:
        home = self.home / "applications" / name
        home.mkdir(parents=True)
        (self.logs / name).mkdir(parents=True)
        (home / "main.py").write_text(script)
        command = [sys.executable, str(home / "main.py"), self.nodes.bootstrap]
        log = self.logs / name / "client.log"
        self._running.append(Process(command, output=home / "output.txt", errors=log))


def scrape_settings(applications: Applications) -> str:
    """What Prometheus scrapes: the brokers and the Java clients, as people name them."""
    brokers = {b.host: b.exporter_port for b in applications.nodes.brokers.values()}
    jobs = {"kafka": brokers, "clients": applications.targets}
    lines = ["global: {scrape_interval: 60s}", "scrape_configs:"]
    for job, targets in jobs.items():
        lines.append(f"- job_name: {job}\n  static_configs:")
        lines += [
            f"  - targets: ['127.0.0.1:{port}']\n    labels: {{host: {host}}}"
            for host, port in targets.items()
        ]
    return "\n".join(lines) + "\n"


SETTINGS = """\
cluster = "ordinary"

[lake]
uri = "{home}/lake"

[kafka]
bootstrap_servers = "{bootstrap}"

[[sources]]
kind = "log_files"
name = "clients"
paths = ["{logs}/*/*.log*"]

[[sources]]
kind = "log_files"
name = "brokers"
paths = [{broker_logs}]

[[sources]]
kind = "prometheus"
name = "metrics"
url = "{prometheus}"

[[sources]]
kind = "cluster_state"
name = "cluster"

[[sources]]
kind = "verifiable"
name = "payments"
paths = ["{verifiable}/*.jsonl"]
group = "billing"

[[sources]]
kind = "log_scan"
name = "scan"
topics = ["payments"]

[alerts]
alertmanager_urls = ["{alertmanager}"]
"""


def settings(applications: Applications, prometheus: str, alertmanager_url: str) -> str:
    """The settings file of a user who followed the README and docs/agents.md."""
    logs = [str(b.logs / "*.log") for b in applications.nodes.brokers.values()]
    return SETTINGS.format(
        home=applications.home,
        bootstrap=applications.nodes.bootstrap,
        logs=applications.logs,
        broker_logs=", ".join(f'"{path}"' for path in logs),
        prometheus=prometheus,
        verifiable=applications.verifiable,
        alertmanager=alertmanager_url,
    )


@dataclass(frozen=True)
class Up:
    """What runs, and the settings file that reads it."""

    config: Path
    applications: Applications
    prometheus: str
    alertmanager: str


@contextmanager
def ordinary_cluster(home: Path) -> Iterator[Up]:
    """Everything up, and the settings file written; all of it is stopped when the block ends."""
    with cluster(broker_rules=BROKER_RULES) as nodes, alertmanager(home) as alerts_url:
        applications = Applications(nodes, home)
        prometheus = None
        try:
            applications.start()
            directory = home / "prometheus"
            directory.mkdir()
            (port,) = free_ports(1)
            prometheus = PrometheusServer(directory, port, config=scrape_settings(applications))
            prometheus.start()
            config = home / "acktrail.toml"
            config.write_text(settings(applications, prometheus.url, alerts_url))
            yield Up(config, applications, prometheus.url, alerts_url)
        finally:
            if prometheus is not None:
                prometheus.stop()
            applications.stop()


def main(arguments: Sequence[str]) -> None:
    """Keep everything up until a signal: `python -m tests.soak.ordinary DIR`."""
    home = Path(arguments[0])
    home.mkdir(parents=True)
    signal.pthread_sigmask(signal.SIG_BLOCK, {signal.SIGTERM, signal.SIGINT})
    with ordinary_cluster(home) as up:
        print(up.config, up.prometheus, up.alertmanager, flush=True)
        signal.sigwait({signal.SIGTERM, signal.SIGINT})


if __name__ == "__main__":
    main(sys.argv[1:])
