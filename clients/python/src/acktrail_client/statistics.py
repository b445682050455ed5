"""librdkafka's statistics as the few numbers that heartbeats carry."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any


class Statistics:
    """Reads one client's documents, in order.

    librdkafka counts no retried records. Messages that were put into requests (`txmsgs`) beyond
    those that the application handed over (`msgs`) were sent again: the highest difference so far
    is never too high. `txretries` does not count produce requests that a broker refused.
    """

    def __init__(self) -> None:
        self._again: dict[tuple[str, str], int] = {}

    def metrics_of(self, document: Mapping[str, Any]) -> dict[str, float]:
        """Retried records, latency and requests under way."""
        for place, again in _sent_again(document):
            self._again[place] = max(again, self._again.get(place, 0))
        brokers = [b for b in document.get("brokers", {}).values() if b.get("nodeid", -1) >= 0]
        timed = [b["rtt"] for b in brokers if b.get("rtt", {}).get("cnt")]
        found = {
            "record-retry-total": float(sum(self._again.values())),
            "requests-in-flight": float(sum(b.get("waitresp_cnt", 0) for b in brokers)),
        }
        count = sum(rtt["cnt"] for rtt in timed)
        if count:
            total = sum(rtt["avg"] * rtt["cnt"] for rtt in timed)
            found["request-latency-avg"] = total / count / 1000
            found["request-latency-max"] = max(rtt["max"] for rtt in timed) / 1000
        return found


def _sent_again(document: Mapping[str, Any]) -> Iterator[tuple[tuple[str, str], int]]:
    """By topic and partition: messages put into requests beyond those handed over."""
    for topic, found in document.get("topics", {}).items():
        for number, partition in found.get("partitions", {}).items():
            if number != "-1":  # messages that have no partition yet
                yield (topic, number), partition.get("txmsgs", 0) - partition.get("msgs", 0)
