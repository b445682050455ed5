"""When a chain's budget ends: an interval on each axis, and which axis ends first.

Attempts: after "N attempts left" the announced retry and N more are sent; the last failure prints
nothing. Time: the clock starts when the batch is created, before its first retry line. So both
ends are intervals. Warnings use the early end.
"""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime, timedelta

from acktrail.kafka_defaults import DELIVERY_TIMEOUT_MS, RETRIES
from acktrail.retries.backoff import backoffs, request_timeout_ms
from acktrail.retries.chains import Chain
from acktrail.retries.signs import (
    CONNECTION_FAILURE,
    QUEUE_TIME,
    RETRY,
    SPLIT_RETRY,
    milliseconds,
)
from acktrail.retries.state import ATTEMPTS

TIME = "time"
UNKNOWN = "unknown"

SLACK = timedelta(seconds=2)
"""Between the client's decision and the evidence of it: a line, or another clock."""

_SETTLE = (
    "let the client log its ProducerConfig block (INFO), audit the producer, "
    "or put it into the inventory"
)


@dataclass(frozen=True)
class Interval:
    """Between these two instants; a missing end is not known."""

    earliest: datetime | None
    latest: datetime | None


@dataclass(frozen=True)
class Exhaustion:
    """When the budget ends, by which axis, and what is not known about it."""

    at: Interval
    by: str
    unknown: str | None = None

    @property
    def confidence(self) -> str:
        """bounded: nothing is assumed; partly: some setting or line is; else unknown."""
        if self.by == UNKNOWN:
            return UNKNOWN
        return "bounded" if self.unknown is None else "partly"


def exhaustion_of(chain: Chain) -> Exhaustion:
    """When the budget of *chain* ends."""
    time = time_end(chain)
    attempts = _by_attempts(chain)
    if time is None and attempts is None:
        return Exhaustion(Interval(None, None), UNKNOWN, _unknown(chain))
    if time is None or attempts is None:
        known = time if attempts is None else attempts
        assert known is not None
        return Exhaustion(known, TIME if attempts is None else ATTEMPTS, _unknown(chain))
    first = _earliest(time)
    by = ATTEMPTS if _earliest(attempts) <= first else TIME
    latest = [t for t in (time.latest, attempts.latest) if t is not None]
    both = Interval(min(first, _earliest(attempts)), min(latest, default=None))
    return Exhaustion(both, by, _unknown(chain))


def finite_attempts(chain: Chain) -> int | None:
    """The lowest number of attempts left that was printed; None where they are not the limit."""
    printed = [s.attempts_left for s in chain.signs if s.attempts_left is not None]
    if chain.first.kind not in (RETRY, SPLIT_RETRY) or not printed:
        return None
    lowest = min(printed)
    return None if lowest > RETRIES // 2 else lowest


def giving_up(chain: Chain) -> Interval | None:
    """After which instant, and until when, the client can give the batch up; None: not known.

    It must print every retry: so its last one was announced, or its time was over. A last retry
    may wait for its broker until then.
    """
    time = time_end(chain)
    last = chain.last.at
    if finite_attempts(chain) == 0:
        return Interval(last, (time or exhaustion_of(chain).at).latest)
    if time is None:
        return None
    return Interval(max(last, _earliest(time) - SLACK), time.latest)


def last_possible_end(chain: Chain) -> datetime | None:
    """When the batch is over at the latest, even if it waits for its broker; None: not known.

    Attempts bound it only where there is no delivery timeout at all (before 2.1).
    """
    time = time_end(chain)
    if time is not None:
        return time.latest
    return exhaustion_of(chain).at.latest if chain.settings.timeless else None


def time_end(chain: Chain) -> Interval | None:
    """When its time is over: at the latest first sign + delivery timeout.

    Earlier by what passed before that sign. None where the delivery timeout is not known.
    """
    timeout = chain.settings.delivery_timeout_ms
    if timeout is None:
        return None
    lowest, highest = age_at_first_sign(chain)
    end = chain.first.at + milliseconds(timeout)
    earliest = max(chain.first.at, end - milliseconds(highest))
    latest = end - milliseconds(min(lowest, timeout))
    if chain.parent is not None:
        whole = time_end(chain.parent)
        if whole is not None and whole.earliest is not None and whole.latest is not None:
            earliest, latest = min(earliest, whole.earliest), min(latest, whole.latest)
    return Interval(earliest, latest)


def age_at_first_sign(chain: Chain) -> tuple[float, float]:
    """How old the batch was, in ms, when its first sign was printed: lowest and highest."""
    settings = chain.settings
    linger = float(settings.linger_ms or 0)
    if chain.first.kind == QUEUE_TIME:
        return (0.0, float(chain.first.elapsed_ms or 0))
    highest = linger + _waited_for_answer(chain)
    if chain.queued_since is not None:
        queued = (chain.first.at - chain.queued_since) / milliseconds(1)
        highest = max(highest, linger + queued)
    if not chain.missed:
        return (0.0, highest)
    missed = backoffs(settings, 1, chain.missed)
    slowest = missed.highest + chain.missed * request_timeout_ms(settings)
    return (0.0 if chain.first.leader_moved else missed.lowest, highest + slowest)


def _waited_for_answer(chain: Chain) -> float:
    """How long the request behind the first sign was under way, in ms, at most."""
    if not chain.first.waited or chain.first.kind == CONNECTION_FAILURE:
        return 0.0
    timeout = float(request_timeout_ms(chain.settings))
    if chain.cancelled is None or chain.cancelled.elapsed_ms is None:
        return timeout
    since = (chain.first.at - chain.cancelled.at) / milliseconds(1)
    return min(timeout, chain.cancelled.elapsed_ms + max(0.0, since))


def _by_attempts(chain: Chain) -> Interval | None:
    """After the announced retry and those left have failed too."""
    left = finite_attempts(chain)
    if left is None or chain.last.attempts_left is None or chain.first.kind != RETRY:
        return None
    wait = backoffs(chain.settings, chain.attempt, left + 1)
    quickest = 0.0 if chain.last.leader_moved else wait.lowest
    slowest = wait.highest + (left + 1) * request_timeout_ms(chain.settings)
    at = chain.last.at
    return Interval(at + milliseconds(quickest), at + milliseconds(slowest))


def _earliest(interval: Interval) -> datetime:
    assert interval.earliest is not None
    return interval.earliest


def _unknown(chain: Chain) -> str | None:
    """What is not known, and what would settle it; None where all is."""
    notes = []
    settings = chain.settings
    if settings.delivery_timeout_ms is None and not settings.timeless:
        would = chain.first.at + milliseconds(DELIVERY_TIMEOUT_MS)
        notes.append(
            f"delivery.timeout.ms is not known: {_SETTLE}; "
            f"with the default of {DELIVERY_TIMEOUT_MS // 1000} s it would end by {would:%H:%M:%S}"
        )
    elif settings.request_timeout_ms is None or settings.linger_ms is None:
        notes.append(f"request.timeout.ms or linger.ms is not known: {_SETTLE}")
    if chain.missed:
        notes.append(
            f"the lines of {chain.missed} earlier retries are missing, so its age is uncertain"
        )
    return "; ".join(notes) or None
