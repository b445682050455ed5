"""The JMX exporter agent: what it exports, how it is attached, and how it is asked."""

from __future__ import annotations

import http.client
import urllib.request
from pathlib import Path

from acktrail import artifacts

# Names as the widely used rule files give them: examples/kafka-2_0_0.yml for brokers, the
# default export for clients, with `type: COUNTER` so that `_total` stays. The exporter matches
# against "...><>attribute: value": without the colon a pattern takes the value into the name.
BROKER_RULES = """\
lowercaseOutputName: true
includeObjectNames: ["kafka.server:type=BrokerTopicMetrics,*", "kafka.server:type=ReplicaManager,*",
  "kafka.server:type=DelayedOperationPurgatory,*", "kafka.server:type=DelayedProduceMetrics,*",
  "kafka.network:type=RequestMetrics,name=ErrorsPerSec,*", "kafka.controller:*"]
rules:
  - pattern: kafka.network<type=RequestMetrics, name=ErrorsPerSec, request=(.+), error=(.+)><>Count
    name: kafka_network_requestmetrics_errors_total
    labels: {request: "$1", error: "$2"}
    type: COUNTER
  - pattern: kafka.(\\w+)<type=(.+), name=(.+)PerSec\\w*, topic=(.+), partition=(.+)><>Count
    name: kafka_$1_$2_$3_total
    labels: {topic: "$4", partition: "$5"}
    type: COUNTER
  - pattern: kafka.(\\w+)<type=(.+), name=(.+)PerSec\\w*, topic=(.+)><>Count
    name: kafka_$1_$2_$3_total
    labels: {topic: "$4"}
    type: COUNTER
  - pattern: kafka.(\\w+)<type=(.+), name=(.+)PerSec\\w*><>Count
    name: kafka_$1_$2_$3_total
    type: COUNTER
  - pattern: kafka.(\\w+)<type=(.+), name=(.+)><>Value
    name: kafka_$1_$2_$3
    type: GAUGE
"""
CLIENT_RULES = """\
lowercaseOutputName: true
includeObjectNames: ["kafka.producer:*", "kafka.consumer:*"]
rules:
  - pattern: 'kafka.(\\w+)<type=(.+)-metrics, client-id=(.+), topic=(.+), partition=(.+)><>(\\S+):'
    name: kafka_$1_$2_metrics_$6
    labels: {client_id: "$3", topic: "$4", partition: "$5"}
  - pattern: 'kafka.(\\w+)<type=(.+)-metrics, client-id=(.+), topic=(.+)><>(.+-total):'
    name: kafka_$1_$2_metrics_$5
    labels: {client_id: "$3", topic: "$4"}
    type: COUNTER
  - pattern: 'kafka.(\\w+)<type=(.+)-metrics, client-id=(.+), topic=(.+)><>([\\w-]+):'
    name: kafka_$1_$2_metrics_$5
    labels: {client_id: "$3", topic: "$4"}
  - pattern: 'kafka.(\\w+)<type=(.+)-metrics, client-id=(.+), node-id=(.+)><>(.+-total):'
    name: kafka_$1_$2_metrics_$5
    labels: {client_id: "$3", node_id: "$4"}
    type: COUNTER
  - pattern: 'kafka.(\\w+)<type=(.+)-metrics, client-id=(.+), node-id=(.+)><>([\\w-]+):'
    name: kafka_$1_$2_metrics_$5
    labels: {client_id: "$3", node_id: "$4"}
  - pattern: 'kafka.(\\w+)<type=(.+)-metrics, client-id=(.+)><>(.+-total):'
    name: kafka_$1_$2_metrics_$4
    labels: {client_id: "$3"}
    type: COUNTER
  - pattern: 'kafka.(\\w+)<type=(.+)-metrics, client-id=(.+)><>([\\w-]+):'
    name: kafka_$1_$2_metrics_$4
    labels: {client_id: "$3"}
"""

_DIRECT = urllib.request.build_opener(urllib.request.ProxyHandler({}))


def agent(rules: str, settings: Path, port: int) -> str:
    """Write *rules* to *settings*; return the JVM option that serves them on *port*."""
    settings.write_text(rules)
    (jar,) = artifacts.resolve("jmx-exporter").iterdir()
    return f"-javaagent:{jar}=127.0.0.1:{port}:{settings}"


def scrape(port: int, within: float = 5.0) -> str | None:
    """What the exporter on *port* says, or None where nobody answers."""
    try:
        with _DIRECT.open(f"http://127.0.0.1:{port}/metrics", timeout=within) as answer:
            text: str = answer.read().decode()
            return text
    except (OSError, http.client.HTTPException):  # Down, or killed while it answered.
        return None
