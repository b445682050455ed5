"""librdkafka's statistics as the few numbers that heartbeats carry."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any


def metrics_of(statistics: Mapping[str, Any]) -> dict[str, float]:
    """Retries (of requests: librdkafka counts no records), latency and requests under way."""
    brokers = [b for b in statistics.get("brokers", {}).values() if b.get("nodeid", -1) >= 0]
    timed = [b["rtt"] for b in brokers if b.get("rtt", {}).get("cnt")]
    found = {
        "record-retry-total": float(sum(b.get("txretries", 0) for b in brokers)),
        "requests-in-flight": float(sum(b.get("waitresp_cnt", 0) for b in brokers)),
    }
    count = sum(rtt["cnt"] for rtt in timed)
    if count:
        total = sum(rtt["avg"] * rtt["cnt"] for rtt in timed)
        found["request-latency-avg"] = total / count / 1000
        found["request-latency-max"] = max(rtt["max"] for rtt in timed) / 1000
    return found
