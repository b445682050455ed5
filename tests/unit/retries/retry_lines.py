"""Retry lines for tests: one by one, or as a client would print them."""

from __future__ import annotations

import random
from dataclasses import replace
from datetime import UTC, datetime, timedelta

from acktrail.kafka_defaults import RETRIES
from acktrail.retries.backoff import backoff
from acktrail.retries.error_counter import CounterSample
from acktrail.retries.signs import RetrySettings, Sign

NOON = datetime(2026, 1, 31, 12, tzinfo=UTC)
DEFAULTS = RetrySettings(
    known_from="config",
    since=NOON - timedelta(hours=1),
    retries=RETRIES,
    delivery_timeout_ms=120_000,
    request_timeout_ms=30_000,
    linger_ms=5,
    retry_backoff_ms=100,
    retry_backoff_max_ms=1_000,
    client_version="4.3.1",
)
FIVE = RetrySettings(**{**DEFAULTS.__dict__, "retries": 5, "retry_backoff_ms": 500})
NO_TIMEOUT = replace(FIVE, delivery_timeout_ms=None)
MAX = RETRIES


def at(second: float) -> datetime:
    return NOON + timedelta(seconds=second)


def line(
    second: float,
    left: int,
    correlation: int | None = None,
    *,
    partition: int = 3,
    error: str = "NOT_ENOUGH_REPLICAS",
    kind: str = "retry",
    origin: str = "app.log",
) -> Sign:
    return Sign(
        key=f"{origin}/{second}/{left}/{correlation}/{partition}/{kind}",
        kind=kind,
        at=NOON + timedelta(seconds=second),
        topic="orders",
        partition=partition,
        correlation_id=correlation,
        attempts_left=left,
        error=error,
        origin=origin,
    )


SPENT = [line(0, 4, 1), line(1, 3, 2), line(2, 2, 3), line(3, 1, 4), line(4, 0, 5)]


def simulate(seed: int, batches: int, config: RetrySettings) -> tuple[list[Sign], list[int]]:
    """A client's lines for batches that fail at once each time, and the length of each chain."""
    rng = random.Random(seed)
    sent: list[tuple[float, int, int]] = []  # when answered, batch, attempt
    lengths = []
    for number in range(batches):
        when = rng.uniform(0, 300)
        length = rng.randint(1, 5 if config.retries == 5 else 12)
        lengths.append(length)
        for attempt in range(1, length + 1):
            sent.append((when, number, attempt))
            wait = backoff(config, attempt)
            when += rng.uniform(wait.lowest, wait.highest) / 1000 + rng.uniform(0.001, 0.01)
    signs = [
        Sign(
            key=f"{seed}-{position}",
            kind="retry",
            at=NOON + timedelta(seconds=when),
            topic="orders",
            partition=3,
            correlation_id=position,
            attempts_left=(config.retries or 0) - attempt,
            error="NOT_ENOUGH_REPLICAS",
            origin="app.log",
        )
        for position, (when, _, attempt) in enumerate(sorted(sent))
    ]
    return signs, lengths


def expiry(second: float, elapsed_s: float, partition: int = 3, key: str = "x") -> Sign:
    return Sign(f"expiry{second}{key}", "expired", at(second), "orders", partition, records=12,
                elapsed_ms=round(elapsed_s * 1000), error="TimeoutException")  # fmt: skip


def counter(*grown: float, step: float = 15, until: float = 180) -> list[CounterSample]:
    """Samples every *step* seconds; the counter moves in those that hold an instant of *grown*."""
    samples, now = [], -30.0
    while now < until:
        up = sum(7.0 for g in grown if now < g <= now + step)
        samples.append(CounterSample(f"m{now}", at(now), at(now + step), up))
        now += step
    return samples
