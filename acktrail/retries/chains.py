"""Which retry lines belong to one batch: a chain; and what an ending of one is.

A line carries no batch id. Two laws of the client tell batches apart: the number of attempts left
falls by exactly one with each retry of a batch, and a batch's later request has a higher
correlation id. Where both fit several chains, the one whose next line was due is taken.
"""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime, timedelta

from acktrail.kafka_defaults import RETRIES
from acktrail.retries.backoff import backoff, backoffs, request_timeout_ms
from acktrail.retries.signs import (
    CONNECTION_FAILURE,
    LONGEST,
    NO_LEADER,
    OPENING_KINDS,
    RETRY,
    SPLIT_RETRY,
    RetrySettings,
    Sign,
    milliseconds,
    settings_in_force,
)
from acktrail.retries.state import BudgetState

_RECONNECTED = timedelta(seconds=12)
"""A connection is tried again after a second; one that gets no answer fails after ten."""

_PRINTING = timedelta(seconds=1)
"""How late a line may be printed."""

_ASKED_AGAIN = timedelta(seconds=45)
"""The cluster is asked every 30 s, and its answers take a while to arrive."""


_Place = tuple[str, str, int]


@dataclass(frozen=True)
class Ending:
    """When and how a chain ended, and what proves it.

    Without *at* and *by* nothing is proven: then *because* is only what was seen of it.
    """

    at: datetime | None
    by: BudgetState | None
    because: str
    evidence: tuple[str, ...]


@dataclass
class Chain:
    """The signs of one batch, in time order; *quiet_at* is when the next one was due."""

    settings: RetrySettings
    signs: list[Sign]
    quiet_at: datetime
    missed: int = 0
    """Retries before the first sign whose lines are not there."""
    skipped: int = 0
    """Lines missing in the middle."""
    queued_since: datetime | None = None
    """Since when other batches of the partition are retried: this one may have waited for them."""
    cancelled: Sign | None = None
    """The request whose failure opened it, where the client said how long that had waited."""
    parent: Chain | None = None
    """The chain of the batch this one was split from."""
    companions: list[Sign] = field(default_factory=list)
    """Connection failures, and answers that there is no leader, that keep it waiting."""

    @property
    def first(self) -> Sign:
        """The sign that opened it."""
        return self.signs[0]

    @property
    def last(self) -> Sign:
        """Its latest own sign."""
        return self.signs[-1]

    @property
    def retries(self) -> int | None:
        """Configured retries: from the settings, or plain from the number printed."""
        if self.settings.retries is not None:
            return self.settings.retries
        return _default_retries(self.first)

    @property
    def attempt(self) -> int:
        """Number of the retry announced last; 1 is the first."""
        left = self.last.attempts_left
        if self.retries is not None and left is not None and self.retries >= left:
            return max(1, self.retries - left)
        return len(self.signs) + self.missed + self.skipped

    def lives_until(self) -> datetime:
        """No sign after this belongs to the batch."""
        timeout = self.settings.delivery_timeout_ms
        life = LONGEST if timeout is None else min(LONGEST, milliseconds(timeout))
        return self.first.at + life + _PRINTING


def chains_of(signs: Iterable[Sign], known: Sequence[RetrySettings]) -> list[Chain]:
    """The chains of one client, by the time they opened. The order of *signs* does not matter."""
    given = list(signs)
    distinct = {s.key: s for s in given if s.kind in OPENING_KINDS and not _is_bootstrap(s)}
    ordered = sorted(distinct.values(), key=_order)
    cancelled = {(s.origin, s.correlation_id): s for s in ordered if _is_cancelled(s)}
    everything: list[Chain] = []
    live: dict[_Place, list[Chain]] = {}
    for sign in ordered:
        here = [c for c in live.get(_place(sign), ()) if sign.at <= c.lives_until()]
        found = _belongs_to(sign, here)
        if found is None:
            found = _opened(sign, settings_in_force(known, sign.at, sign.origin), here)
            found.parent = _split_parent(live, sign)
            found.cancelled = _cancelled(sign, cancelled)
            here.append(found)
            everything.append(found)
        else:
            found.skipped += max(0, _steps(found, sign) - 1)
            found.signs.append(sign)
        found.quiet_at = _due(found, sign)
        live[_place(sign)] = here
    _keep_waiting(everything, [s for s in given if s.kind == NO_LEADER])
    _wait_in_line(everything)
    return everything


def _is_bootstrap(sign: Sign) -> bool:
    """Brokers known by address only have negative ids; no batch ever waits for one."""
    return sign.kind == CONNECTION_FAILURE and sign.node is not None and sign.node < 0


def _order(sign: Sign) -> tuple[datetime, int, int, str]:
    number = -1 if sign.correlation_id is None else sign.correlation_id
    return (sign.at, number, -(sign.attempts_left or 0), sign.key)


def _place(sign: Sign) -> _Place:
    """Chains of different places never mix: kind, topic, partition (or broker)."""
    if sign.kind == CONNECTION_FAILURE:
        return (sign.kind, "", -1 if sign.node is None else sign.node)
    return (sign.kind, sign.topic, sign.partition)


def _belongs_to(sign: Sign, live: Sequence[Chain]) -> Chain | None:
    fitting = [c for c in live if _later_request(c.last, sign)]
    if sign.kind != RETRY:
        return fitting[-1] if fitting else None
    next_lines = [c for c in fitting if _steps(c, sign) == 1]
    if next_lines:
        return min(next_lines, key=lambda c: _surprise(c, sign))
    if _opens(sign, fitting[-1].retries if fitting else None):
        return None
    with_gap = [c for c in fitting if _steps(c, sign) > 1 and _can_have_skipped(c, sign)]
    return min(with_gap, key=lambda c: (_steps(c, sign), _surprise(c, sign)), default=None)


def _later_request(before: Sign, sign: Sign) -> bool:
    if before.correlation_id is None or sign.correlation_id is None:
        return True
    if sign.kind == RETRY:
        return sign.correlation_id > before.correlation_id
    return sign.correlation_id >= before.correlation_id


def _steps(chain: Chain, sign: Sign) -> int:
    """By how many attempts *sign* is further than the chain; below 1: it is another batch."""
    if chain.last.attempts_left is None or sign.attempts_left is None:
        return 1
    return chain.last.attempts_left - sign.attempts_left


def _surprise(chain: Chain, sign: Sign) -> tuple[bool, float, datetime]:
    """How far from its due time *sign* would be as this chain's next line; own file first."""
    wait = backoff(chain.settings, chain.attempt)
    expected = (wait.lowest + wait.highest) / 2
    if sign.waited:
        expected += request_timeout_ms(chain.settings)
    elapsed = (sign.at - chain.last.at) / timedelta(milliseconds=1)
    return (sign.origin != chain.last.origin, abs(elapsed - expected), chain.last.at)


def _opens(sign: Sign, retries: int | None) -> bool:
    """Whether *sign* can only be the first retry of a batch."""
    allowed = retries if retries is not None else _default_retries(sign)
    return allowed is not None and sign.attempts_left == allowed - 1


def _can_have_skipped(chain: Chain, sign: Sign) -> bool:
    """Whether the missing lines fit into the time between."""
    steps = _steps(chain, sign)
    wait = backoffs(chain.settings, chain.attempt, steps)
    slowest = wait.highest + steps * request_timeout_ms(chain.settings)
    quickest = 0.0 if sign.leader_moved else wait.lowest
    elapsed = (sign.at - chain.last.at) / timedelta(milliseconds=1)
    return quickest <= elapsed <= slowest


def _opened(sign: Sign, settings: RetrySettings, here: Sequence[Chain]) -> Chain:
    """The chain that *sign* opens beside those that are alive *here*, on its partition.

    At most five requests are in flight: batches behind those that are retried age in the queue.
    """
    chain = Chain(settings, [sign], quiet_at=sign.at)
    burning = [c.queued_since or c.first.at for c in here if sign.at <= c.quiet_at]
    chain.queued_since = min(burning, default=None)
    if sign.kind == RETRY and chain.retries is not None and sign.attempts_left is not None:
        chain.missed = max(0, chain.retries - sign.attempts_left - 1)
    return chain


def _is_cancelled(sign: Sign) -> bool:
    """ "Cancelled in-flight PRODUCE request with correlation id 15 due to node 2 being
    disconnected (elapsed time since creation: 761ms, ...": at INFO since 3.1.
    """
    known = sign.correlation_id is not None and sign.elapsed_ms is not None
    return sign.kind == CONNECTION_FAILURE and known


def _cancelled(sign: Sign, cancelled: Mapping[tuple[str, int | None], Sign]) -> Sign | None:
    """The cancelled request that *sign* is about."""
    found = cancelled.get((sign.origin, sign.correlation_id))
    if sign.kind != RETRY or found is None:
        return None
    return found if abs(sign.at - found.at) <= _PRINTING * 5 else None


def _split_parent(live: dict[_Place, list[Chain]], sign: Sign) -> Chain | None:
    """A split batch's parts start with fresh attempts, but keep the age of the whole."""
    if sign.kind != RETRY:
        return None
    splits = live.get((SPLIT_RETRY, sign.topic, sign.partition), ())
    return next((c for c in splits if sign.at <= c.lives_until()), None)


def _due(chain: Chain, sign: Sign) -> datetime:
    """When the next sign must be there, if nothing has got better."""
    if sign.kind == CONNECTION_FAILURE:
        return max(chain.quiet_at, sign.at + _RECONNECTED)
    if sign.kind == NO_LEADER:
        return max(chain.quiet_at, sign.at + _ASKED_AGAIN)
    wait = backoff(chain.settings, chain.attempt).highest + request_timeout_ms(chain.settings)
    return max(chain.quiet_at, sign.at + milliseconds(wait))


def _keep_waiting(chains: Sequence[Chain], leaderless: Sequence[Sign]) -> None:
    """A batch that has no broker to go to prints nothing: other evidence shows it.

    Connection failures, where its own broker cannot be reached; and the cluster, where it says
    that the partition has no leader: then the client does not even try. A client that was only
    cut off from a broker waits while a partition of that broker has no leader.
    """
    failures = (s for c in chains for s in c.signs if s.kind == CONNECTION_FAILURE)
    spoken = sorted([*failures, *leaderless], key=_order)
    times = [s.at for s in spoken]
    for chain in (c for c in chains if c.first.kind in (RETRY, CONNECTION_FAILURE)):
        cut_off = chain.first.kind == CONNECTION_FAILURE
        patience = chain.last.at + _ASKED_AGAIN if cut_off else chain.quiet_at
        for sign in spoken[bisect_left(times, chain.last.at) :]:
            if sign.at > min(max(chain.quiet_at, patience), chain.lives_until()):
                break
            if _keeps_waiting(chain, sign):
                chain.companions.append(sign)
                chain.quiet_at = _due(chain, sign)


def _keeps_waiting(chain: Chain, sign: Sign) -> bool:
    """While its broker cannot be reached, the announced retry is not even sent."""
    first = chain.first
    if first.kind == CONNECTION_FAILURE:
        return sign.kind == NO_LEADER and sign.node is not None and sign.node == first.node
    if sign.kind == NO_LEADER:
        return (sign.topic, sign.partition) == (first.topic, first.partition)
    return chain.last.waited and chain.last.node in (None, sign.node)


def _wait_in_line(chains: Sequence[Chain]) -> None:
    """Batches of one partition keep their order: none is sent behind one that is retried.

    So chains that overlap on a partition go quiet together, each within its own time.
    """
    together: dict[_Place, list[Chain]] = {}
    last_words: dict[_Place, datetime] = {}
    for chain in (c for c in chains if c.first.kind == RETRY):
        place = _place(chain.first)
        group = together.setdefault(place, [])
        if group and chain.first.at > last_words[place]:
            _go_quiet_together(group)
            group.clear()
        last_words[place] = max(last_words.get(place, chain.quiet_at), chain.quiet_at)
        group.append(chain)
    for group in together.values():
        _go_quiet_together(group)


def _go_quiet_together(group: Sequence[Chain]) -> None:
    last_word = max(c.quiet_at for c in group)
    for chain in group:
        chain.quiet_at = max(chain.quiet_at, min(last_word, chain.lives_until()))


def _default_retries(sign: Sign) -> int | None:
    left = sign.attempts_left
    return RETRIES if left is not None and left > RETRIES // 2 else None
