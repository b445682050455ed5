"""How long a Java producer waits before a retry, by version, as lowest and highest."""

from __future__ import annotations

from dataclasses import dataclass

from acktrail.kafka_defaults import RETRIES
from acktrail.retries.signs import RetrySettings

_BACKOFF_MS = 100
_BACKOFF_MAX_MS = 1_000
_REQUEST_TIMEOUT_MS = 30_000
_JITTER = 0.2
_DOUBLINGS = 40


@dataclass(frozen=True)
class Wait:
    """Lowest and highest wait in milliseconds."""

    lowest: float
    highest: float

    def __add__(self, other: Wait) -> Wait:
        return Wait(self.lowest + other.lowest, self.highest + other.highest)


NO_WAIT = Wait(0.0, 0.0)


def request_timeout_ms(settings: RetrySettings) -> int:
    """The request timeout, or the default of every version since 0.9."""
    known = settings.request_timeout_ms
    return _REQUEST_TIMEOUT_MS if known is None else known


def backoff(settings: RetrySettings, attempt: int) -> Wait:
    """The wait before retry number *attempt* (1 is the first).

    Kafka clients, RecordAccumulator: since 3.7 `ExponentialBackoff(retry.backoff.ms, 2,
    retry.backoff.max.ms, 0.2)`, capped after the jitter; a fixed `retry.backoff.ms` before. Where
    neither version nor settings tell, both kinds lie within the answer.
    """
    first = _BACKOFF_MS if settings.retry_backoff_ms is None else settings.retry_backoff_ms
    fixed = Wait(float(first), float(first))
    exponential = _exponential(settings, first, attempt)
    if settings.retry_backoff_max_ms is not None:
        return exponential
    if settings.version is not None:
        return exponential if settings.version >= (3, 7) else fixed
    return Wait(min(fixed.lowest, exponential.lowest), max(fixed.highest, exponential.highest))


def _exponential(settings: RetrySettings, first: int, attempt: int) -> Wait:
    known = settings.retry_backoff_max_ms
    ceiling = _BACKOFF_MAX_MS if known is None else known
    if first >= ceiling:
        return Wait(float(ceiling), float(ceiling))
    term = float(first) * 2.0 ** min(max(attempt - 1, 0), _DOUBLINGS)
    term = min(term, float(ceiling))
    return Wait(term * (1 - _JITTER), min(term * (1 + _JITTER), float(ceiling)))


def backoffs(settings: RetrySettings, first: int, count: int) -> Wait:
    """The waits before retries *first*, *first* + 1, ... added up, *count* of them."""
    if count <= 0 or count >= RETRIES // 2:
        return NO_WAIT if count <= 0 else Wait(float("inf"), float("inf"))
    total = NO_WAIT
    steady = first + _DOUBLINGS
    for attempt in range(first, min(first + count, steady)):
        total += backoff(settings, attempt)
    rest = max(0, count - _DOUBLINGS)
    flat = backoff(settings, steady)
    return total + Wait(flat.lowest * rest, flat.highest * rest)
