"""One canonical name per metric, whatever the exporter spelt.

Names come from JMX exporters (0.x and 1.x, which strips `_total` from what is not typed COUNTER),
their common rule files, the default export, Micrometer, KIP-714 and Jolokia. Letter case differs
by rule file and never matters. Agents select by these names at the source; the silver jobs
translate with the same table.
"""

from __future__ import annotations

import re
from collections.abc import Collection, Iterator, Mapping
from dataclasses import dataclass
from functools import cache
from typing import Literal

Side = Literal["producer", "broker"]
Scope = Literal["client", "topic", "node", "broker"]


@dataclass(frozen=True)
class Canonical:
    """What a metric is: whose, its one name, and what one series of it is about.

    A broker's series with a topic label is about that topic, without one about all topics
    together: they are never summed.
    """

    side: Side
    name: str
    scope: Scope


@dataclass(frozen=True)
class _Bean:
    """A broker metric: `domain:type=kind,name=label` and one attribute of it."""

    name: str
    domain: str
    kind: str
    label: str
    attribute: Literal["Count", "OneMinuteRate", "Value"]


PRODUCER_METRICS = (
    "record-error-rate",
    "record-error-total",
    "record-retry-rate",
    "record-retry-total",
    "record-send-rate",
    "record-send-total",
    "record-queue-time-avg",
    "record-queue-time-max",
    "request-latency-avg",
    "request-latency-max",
    "requests-in-flight",
    "buffer-available-bytes",
    "buffer-total-bytes",
    "buffer-exhausted-rate",
    "buffer-exhausted-total",
    "bufferpool-wait-ratio",
    "waiting-threads",
    "batch-split-total",
    "metadata-age",
    "produce-throttle-time-avg",
    "produce-throttle-time-max",
)
"""Attributes of `kafka.producer:type=producer-metrics` (and `-topic-`, `-node-`) that we keep."""

_BEANS = (
    _Bean(
        "failed-produce-requests-total",
        "kafka.server",
        "BrokerTopicMetrics",
        "FailedProduceRequestsPerSec",
        "Count",
    ),
    _Bean(
        "failed-produce-requests-rate",
        "kafka.server",
        "BrokerTopicMetrics",
        "FailedProduceRequestsPerSec",
        "OneMinuteRate",
    ),
    _Bean(
        "failed-fetch-requests-total",
        "kafka.server",
        "BrokerTopicMetrics",
        "FailedFetchRequestsPerSec",
        "Count",
    ),
    _Bean(
        "failed-fetch-requests-rate",
        "kafka.server",
        "BrokerTopicMetrics",
        "FailedFetchRequestsPerSec",
        "OneMinuteRate",
    ),
    _Bean(
        "produce-requests-total",
        "kafka.server",
        "BrokerTopicMetrics",
        "TotalProduceRequestsPerSec",
        "Count",
    ),
    _Bean("messages-in-total", "kafka.server", "BrokerTopicMetrics", "MessagesInPerSec", "Count"),
    _Bean("request-errors-total", "kafka.network", "RequestMetrics", "ErrorsPerSec", "Count"),
    _Bean(
        "produce-expires-total", "kafka.server", "DelayedProduceMetrics", "ExpiresPerSec", "Count"
    ),
    _Bean(
        "under-min-isr-partitions",
        "kafka.server",
        "ReplicaManager",
        "UnderMinIsrPartitionCount",
        "Value",
    ),
    _Bean(
        "under-replicated-partitions",
        "kafka.server",
        "ReplicaManager",
        "UnderReplicatedPartitions",
        "Value",
    ),
    _Bean("isr-shrinks-total", "kafka.server", "ReplicaManager", "IsrShrinksPerSec", "Count"),
    _Bean("isr-expands-total", "kafka.server", "ReplicaManager", "IsrExpandsPerSec", "Count"),
    _Bean(
        "offline-partitions",
        "kafka.controller",
        "KafkaController",
        "OfflinePartitionsCount",
        "Value",
    ),
    _Bean(
        "unclean-elections-total",
        "kafka.controller",
        "ControllerStats",
        "UncleanLeaderElectionsPerSec",
        "Count",
    ),
)

BROKER_METRICS = tuple(bean.name for bean in _BEANS)
METRICS = PRODUCER_METRICS + BROKER_METRICS
"""Every canonical name, producers' first."""

_SCOPES: tuple[tuple[Scope, str], ...] = (("client", ""), ("topic", "topic_"), ("node", "node_"))
_BARE = {"Count": ("_total", "_count", ""), "OneMinuteRate": ("_oneminuterate", "_rate")}


def read_name(metric: str, labels: Mapping[str, str]) -> Canonical | None:
    """What *metric* is, or None where it is not one we know."""
    known = _known()
    spelt = metric.lower()
    found = known.get((spelt, ""))
    if found is None and "name" in labels:
        found = known.get((spelt, labels["name"].lower()))
    return found


def jmx_name(domain: str, kind: str, attribute: str) -> str:
    """The default export's name for an attribute of a bean: `domain_type_attribute`."""
    return re.sub(r"[^a-zA-Z0-9_]", "_", f"{domain}_{kind}_{attribute}")


def mbeans(wanted: Collection[str]) -> tuple[str, ...]:
    """The object names (with wildcards) that hold the *wanted* canonical metrics."""
    names: dict[str, None] = {}
    if any(name in wanted for name in PRODUCER_METRICS):
        names["kafka.producer:type=producer-metrics,client-id=*"] = None
        names["kafka.producer:type=producer-topic-metrics,client-id=*,topic=*"] = None
        names["kafka.producer:type=producer-node-metrics,client-id=*,node-id=*"] = None
    for bean in _BEANS:
        if bean.name in wanted:
            names[f"{bean.domain}:type={bean.kind},name={bean.label},*"] = None
    return tuple(names)


def name_pattern(wanted: Collection[str]) -> str:
    """A regular expression (RE2's syntax too) over metric names; it may match a little more.

    What it matches beyond the *wanted* is recognized by `read_name`, with the labels.
    """
    parts = []
    attributes = sorted({_stem(n.replace("-", "_")) for n in wanted if n in PRODUCER_METRICS})
    if attributes:
        parts.append(
            "(org_apache_)?kafka_producer_(producer_)?((topic|node)_)?(metrics_)?"
            f"({'|'.join(attributes)})(_total)?"
        )
    by_kind: dict[str, set[str]] = {}
    defaults: set[str] = set()
    for bean in _BEANS:
        if bean.name in wanted:
            kind = jmx_name(bean.domain, bean.kind, "").lower().rstrip("_")
            by_kind.setdefault(kind, set()).add(bean.label.lower().removesuffix("persec"))
            defaults.add(f"{kind}_{bean.attribute.lower()}")
    for kind, stems in sorted(by_kind.items()):
        parts.append(
            f"{kind}_({'|'.join(sorted(stems))})(persec)?(_(total|count|value|oneminuterate|rate))?"
        )
    parts.extend(sorted(defaults))
    return f"(?i:{'|'.join(parts)})"


def _stem(attribute: str) -> str:
    return attribute.removesuffix("_total")


@cache
def _known() -> dict[tuple[str, str], Canonical]:
    """(name as spelt, bean name label or empty) to what it is."""
    known: dict[tuple[str, str], Canonical] = {}
    for attribute in PRODUCER_METRICS:
        for scope, infix in _SCOPES:
            for spelt in _producer_spellings(attribute.replace("-", "_"), infix):
                known[spelt, ""] = Canonical("producer", attribute, scope)
    for bean in _BEANS:
        for spelt in _broker_spellings(bean):
            known[spelt, ""] = Canonical("broker", bean.name, "broker")
        exported = jmx_name(bean.domain, bean.kind, bean.attribute).lower()
        known[exported, bean.label.lower()] = Canonical("broker", bean.name, "broker")
    return known


def _producer_spellings(attribute: str, infix: str) -> Iterator[str]:
    # default export        kafka_producer_producer_topic_metrics_record_error_total
    # Connect's, Micrometer kafka_producer_topic_record_error_total
    # KIP-714               org_apache_kafka_producer_topic_record_error_total
    for ending in {attribute, _stem(attribute)}:
        yield f"kafka_producer_producer_{infix}metrics_{ending}"
        yield f"kafka_producer_{infix}metrics_{ending}"
        yield f"kafka_producer_{infix}{ending}"
        yield f"org_apache_kafka_producer_{infix}{ending}"


def _broker_spellings(bean: _Bean) -> Iterator[str]:
    # kafka-2_0_0 rules     kafka_server_brokertopicmetrics_failedproducerequests_total
    # without the cut       kafka_server_brokertopicmetrics_failedproducerequestspersec_count
    stem = jmx_name(bean.domain, bean.kind, bean.label).lower()
    if bean.attribute == "Value":
        yield stem
        yield f"{stem}_value"
        return
    for ending in _BARE[bean.attribute]:
        yield f"{stem}{ending}"
        yield f"{stem.removesuffix('persec')}{ending}"
