"""Starting real clients: Kafka's own Verifiable tools on the JVM, and confluent-kafka in Python."""

from __future__ import annotations

import json
import secrets
import sys
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

from lab import exporter, java_audit, report_topic
from lab.client_choice import JAVA_WRAPPER
from lab.cluster import Cluster
from lab.events import ClientProgress
from lab.layouts import client_logging
from lab.processes import Process
from lab.scenario import Consumer, Producer
from lab.scratch import free_ports

_JVM = ("-Xmx96m", "-XX:+UseSerialGC", "-XX:TieredStopAtLevel=1")
_PACKAGE = Path(__file__).parents[1]


@dataclass
class Client:
    """A started client and where to look for its traces."""

    name: str
    host: str
    process: Process
    output: Path
    progress: ClientProgress
    exporter_port: int | None
    prefix: str = ""
    ended_by_us: bool = False
    """The scenario ended it: how its process ends is not checked."""

    def has_ended(self) -> bool:
        """Whether its process is gone."""
        return not self.process.alive

    def has_partitions(self) -> bool:
        """Whether, as a consumer, it has been assigned something."""
        return bool(self.progress.update().partitions)


def start_producer(cluster: Cluster, wanted: Producer, evidence: Path) -> Client:
    """Start a producer; its messages carry a prefix of their own."""
    prefix = str(secrets.randbelow(2**31 - 1) + 1)
    if wanted.kind == "python":
        return _python_producer(cluster, wanted, evidence, prefix)
    settings = {
        "client.id": wanted.called,
        "retries": str(wanted.retries),
        **wanted.settings,
    }
    keys = ["--repeating-keys", str(wanted.repeating_keys)] if wanted.repeating_keys else []
    arguments = [
        *keys,
        *("--topic", wanted.topic, "--bootstrap-server", cluster.bootstrap),
        *("--max-messages", str(wanted.messages), "--throughput", str(wanted.per_second)),
        *("--acks", {"all": "-1"}.get(wanted.acks, wanted.acks), "--value-prefix", prefix),
    ]
    main = "org.apache.kafka.tools.VerifiableProducer"
    if wanted.audited == JAVA_WRAPPER:
        main = java_audit.WRAPPED_PRODUCER
    client = _java(cluster, "producer", wanted, evidence, (main, settings, arguments))
    client.prefix = prefix
    return client


def start_consumer(cluster: Cluster, wanted: Consumer, evidence: Path) -> Client:
    """Start a consumer that prints every record; it appends to what it printed before."""
    if wanted.kind == "python":
        return _python_consumer(cluster, wanted, evidence)
    settings = {"client.id": wanted.name, "fetch.max.wait.ms": "200", **wanted.settings}
    arguments = [
        *("--topic", wanted.topic, "--bootstrap-server", cluster.bootstrap),
        *("--group-id", wanted.group, "--session-timeout", "10000"),
        *("--reset-policy", wanted.reset, "--verbose"),
    ]
    main = "org.apache.kafka.tools.VerifiableConsumer"
    return _java(cluster, "consumer", wanted, evidence, (main, settings, arguments))


def _java(
    cluster: Cluster,
    role: str,
    wanted: Producer | Consumer,
    evidence: Path,
    tool: tuple[str, Mapping[str, str], list[str]],
) -> Client:
    main, settings, arguments = tool
    more = ""
    if wanted.audited:
        settings, more = {**settings, **java_audit.settings(wanted)}, java_audit.class_path()
    home = _home(cluster, wanted.name)
    _properties(home / "client.properties", settings)
    old = cluster.version.startswith("3.")
    option = f"--{role}.config" if old else "--command-config"
    logs = _directory(evidence / "logs" / wanted.host)
    (port,) = free_ports(1)
    options = (
        *_JVM,
        client_logging(cluster.version, logs / f"{wanted.name}.log", home / "log4j.properties"),
        exporter.agent(exporter.CLIENT_RULES, home / "exporter.yml", port),
    )
    command = cluster.java_command(
        *(main, *arguments, option, str(home / "client.properties")), options=options, more=more
    )
    output = _directory(evidence / "verifiable") / f"{role}-{wanted.name}.jsonl"
    process = Process(command, output=output, errors=home / "errors.txt")
    return Client(wanted.name, wanted.host, process, output, ClientProgress(output), port)


def _python_producer(cluster: Cluster, wanted: Producer, evidence: Path, prefix: str) -> Client:
    settings = {
        "bootstrap.servers": cluster.bootstrap,
        "client.id": wanted.called,
        "acks": wanted.acks,
        "retries": wanted.retries,
        **wanted.settings,
    }
    plan = {
        "topic": wanted.topic,
        "messages": wanted.messages,
        "per_second": wanted.per_second,
        "prefix": prefix,
        "settings": settings,
        "transaction_messages": wanted.transaction_messages,
        "aborts_every": wanted.aborts_every,
        "large_every": wanted.large_every,
        "large_bytes": wanted.large_bytes,
        "on_stop": wanted.on_stop,
        "repeating_keys": wanted.repeating_keys,
        **_audit(wanted),
        **_statistics(wanted, evidence),
    }
    client = _python(cluster, "lab.python_producer", wanted, evidence, plan)
    client.prefix = prefix
    return client


def _python_consumer(cluster: Cluster, wanted: Consumer, evidence: Path) -> Client:
    settings = {
        "bootstrap.servers": cluster.bootstrap,
        "client.id": wanted.name,
        "group.id": wanted.group,
        "auto.offset.reset": wanted.reset,
        "enable.auto.commit": False,
        "session.timeout.ms": 10000,
        **wanted.settings,
    }
    plan = {
        "topic": wanted.topic,
        "settings": settings,
        "commits": wanted.commits,
        "processing_ms": wanted.processing_ms,
        **_audit(wanted),
    }
    return _python(cluster, "lab.python_consumer", wanted, evidence, plan)


def _audit(wanted: Producer | Consumer) -> dict[str, object]:
    """Of an audited client: the arguments of its `acktrail_client.Audit`."""
    if not wanted.audited:
        return {}
    return {
        "audit": {
            "topic": report_topic.NAME,
            "host": wanted.host,
            "interval_s": report_topic.INTERVAL_S,
            "close_s": report_topic.CLOSE_S,
        }
    }


def _python(
    cluster: Cluster,
    module: str,
    wanted: Producer | Consumer,
    evidence: Path,
    plan: Mapping[str, object],
) -> Client:
    home = _home(cluster, wanted.name)
    (home / "plan.json").write_text(json.dumps(plan))
    output = _directory(evidence / "python") / f"{wanted.name}.jsonl"
    errors = _directory(evidence / "logs" / wanted.host) / f"{wanted.name}.log"
    command = [sys.executable, "-m", module, str(home / "plan.json")]
    process = Process(command, output=output, errors=errors, directory=_PACKAGE)
    return Client(wanted.name, wanted.host, process, output, ClientProgress(output), None)


def _statistics(wanted: Producer, evidence: Path) -> dict[str, object]:
    """Where librdkafka's statistics are written, and how often; nothing where they are not."""
    if not wanted.statistics_ms:
        return {}
    file = _directory(evidence / "statistics") / f"{wanted.name}.jsonl"
    return {"statistics": str(file), "statistics_ms": wanted.statistics_ms}


def _home(cluster: Cluster, name: str) -> Path:
    return _directory(cluster.home / "clients" / f"{name}-{secrets.token_hex(3)}")


def _directory(path: Path) -> Path:
    path.mkdir(parents=True, exist_ok=True)
    return path


def _properties(path: Path, settings: Mapping[str, str]) -> None:
    path.write_text("".join(f"{name}={value}\n" for name, value in settings.items()))
