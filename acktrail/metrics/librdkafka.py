"""librdkafka's statistics as the metrics that Java clients have: one document after the other.

librdkafka counts no retried records. Of each partition it counts messages that the application
handed over (`msgs`) and those put into requests (`txmsgs`): what was put into requests beyond what
was handed over was sent again, so the highest difference so far is a number of retried records
that is never too high. `txretries` of a broker counts retried requests of other kinds.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any

from acktrail.metrics.names import jmx_name

MOST_INSTANCES = 200
"""Clients of one file that are remembered: of one that ended long ago nothing will come."""
_SAME_START_S = 2
"""`time` is in whole seconds: the start of a client can be known no better."""
_MICROS_AS_MS = {
    # window of a broker: metrics of its mean and of its highest value
    "rtt": ("request-latency-avg", "request-latency-max"),
    "int_latency": ("record-queue-time-avg", "record-queue-time-max"),
}


@dataclass(frozen=True)
class StatisticsSample:
    """One number of a client, at one time."""

    metric: str
    """As the default export of a JMX exporter spells it."""
    labels: Mapping[str, str]
    at_ms: int
    value: float


@dataclass
class _Topic:
    transmitted: int = 0
    again: int = 0
    by_partition: dict[str, tuple[int, int]] = field(default_factory=dict)
    """The highest number of messages transmitted, and of those sent again, so far."""


@dataclass
class _Instance:
    start_s: int
    last_ms: int
    topics: dict[str, _Topic] = field(default_factory=dict)


class StatisticsReader:
    """Reads the documents of one file, from its first on.

    What it returns depends on the documents before in that file, and on nothing else: read again
    from the beginning, it returns the same. Labels name the client's start and the file's first
    document, so that no total goes on across a restart or another file.
    """

    def __init__(self) -> None:
        self._began_ms: int | None = None
        self._instances: dict[tuple[str, int], _Instance] = {}

    def read(self, document: Mapping[str, Any]) -> list[StatisticsSample]:
        """The metrics of a producer's *document*; none of a consumer's.

        ValueError: it is not a document of statistics.
        """
        name, at_ms, age_s = _head(document)
        if document.get("type") != "producer":
            return []
        self._began_ms = at_ms if self._began_ms is None else self._began_ms
        instance = self._instance(name, at_ms // 1000 - age_s, at_ms)
        before, instance.last_ms = instance.last_ms, max(at_ms, instance.last_ms)
        labels = {
            "client_id": str(document.get("client_id") or name.partition("#")[0]),
            "session": f"{name}@{instance.start_s}/{self._began_ms}",
        }
        elapsed = (at_ms - before) / 1000
        found = [*_client(document), *_topics(instance, document, elapsed)]
        return [
            StatisticsSample(
                jmx_name("kafka.producer", f"producer{'-topic' if topic else ''}-metrics", metric),
                {**labels, "topic": topic} if topic else labels,
                at_ms,
                value,
            )
            for metric, topic, value in found
        ]

    def _instance(self, name: str, start_s: int, at_ms: int) -> _Instance:
        """The client *name* that started at about *start_s*."""
        for (known, _), instance in self._instances.items():
            if known == name and abs(instance.start_s - start_s) <= _SAME_START_S:
                return instance
        if len(self._instances) >= MOST_INSTANCES:
            oldest = min(self._instances, key=lambda key: self._instances[key].last_ms)
            del self._instances[oldest]
        made = _Instance(start_s, at_ms)
        self._instances[name, start_s] = made
        return made


def is_statistics(document: Mapping[str, Any] | None) -> bool:
    """Whether *document* is one of librdkafka's, of a producer or a consumer."""
    try:
        return document is not None and bool(_head(document))
    except ValueError:
        return False


def _head(document: Mapping[str, Any]) -> tuple[str, int, int]:
    """Name, time in ms and age in seconds."""
    name, at, age = (document.get(key) for key in ("name", "time", "age"))
    if not isinstance(name, str) or not _is_count(at) or not isinstance(age or 0, int):
        raise ValueError("not a document of librdkafka's statistics")
    assert isinstance(at, int)
    return name, at * 1000, (age or 0) // 1_000_000


def _client(document: Mapping[str, Any]) -> Iterator[tuple[str, str, float]]:
    """Metrics of the client as a whole: (name, no topic, value)."""
    brokers = [b for b in _objects(document, "brokers") if b.get("nodeid", -1) >= 0]
    yield "requests-in-flight", "", float(sum(_count(b, "waitresp_cnt") for b in brokers))
    for window, (mean, highest) in _MICROS_AS_MS.items():
        timed = [w for b in brokers if isinstance(w := b.get(window), Mapping) and w.get("cnt")]
        count = sum(_count(w, "cnt") for w in timed)
        if count:
            yield mean, "", sum(_count(w, "avg") * _count(w, "cnt") for w in timed) / count / 1000
            yield highest, "", max(_count(w, "max") for w in timed) / 1000
    if "msg_size_max" in document:
        total = _count(document, "msg_size_max")
        yield "buffer-total-bytes", "", float(total)
        yield "buffer-available-bytes", "", float(max(0, total - _count(document, "msg_size")))


def _topics(
    instance: _Instance, document: Mapping[str, Any], elapsed_s: float
) -> Iterator[tuple[str, str, float]]:
    """Sends and retries, by topic and of all topics: (name, topic, value)."""
    grown = 0
    for found in _objects(document, "topics"):
        name = str(found.get("topic") or "")
        partitions = found.get("partitions")
        if not name or not isinstance(partitions, Mapping):
            continue
        topic = instance.topics.setdefault(name, _Topic())
        before = topic.again
        _count_up(topic, partitions)
        grown += topic.again - before
        yield "record-send-total", name, float(topic.transmitted - topic.again)
        yield "record-retry-total", name, float(topic.again)
        if elapsed_s > 0:
            yield "record-retry-rate", name, (topic.again - before) / elapsed_s
    known = instance.topics.values()
    yield "record-send-total", "", float(sum(t.transmitted - t.again for t in known))
    yield "record-retry-total", "", float(sum(t.again for t in known))
    if elapsed_s > 0:
        yield "record-retry-rate", "", grown / elapsed_s


def _count_up(topic: _Topic, partitions: Mapping[str, Any]) -> None:
    """Take in what the partitions of *topic* have counted; no count ever falls."""
    for number, partition in partitions.items():
        if number == "-1" or not isinstance(partition, Mapping):
            continue  # messages that have no partition yet
        sent = _count(partition, "txmsgs")
        most, again = topic.by_partition.get(number, (0, 0))
        more = max(sent - _count(partition, "msgs"), again), max(sent, most)
        topic.by_partition[number] = (more[1], more[0])
        topic.again += more[0] - again
        topic.transmitted += more[1] - most


def _objects(document: Mapping[str, Any], key: str) -> list[Mapping[str, Any]]:
    found = document.get(key)
    listed = found.values() if isinstance(found, Mapping) else ()
    return [each for each in listed if isinstance(each, Mapping)]


def _count(found: Mapping[str, Any], key: str) -> int:
    value = found.get(key)
    return value if isinstance(value, int) else 0


def _is_count(value: object) -> bool:
    return isinstance(value, int) and not isinstance(value, bool) and 0 < value < 1 << 40
