"""Kafka's own defaults that acktrail computes with where a client's or broker's is not known."""

from __future__ import annotations

from typing import Final

DELIVERY_TIMEOUT_MS: Final = 120_000
"""`delivery.timeout.ms` of Java producers since 2.1."""
LONGEST_DELIVERY_MS: Final = 300_000
"""`message.timeout.ms` of librdkafka: how long a client that is not known may try to deliver."""
RETRIES: Final = 2_147_483_647
"""`retries` of Java producers since 2.1: then only time ends a batch."""
REPLICA_LAG_MS: Final = 30_000
"""`replica.lag.time.max.ms` of brokers since 2.5."""
