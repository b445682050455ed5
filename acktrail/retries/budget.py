"""The retry budgets of a client: its chains, when each ends and why, and the records at stake.

A stored budget holds instants only. Its state at a time is `acktrail.retries.state.state_of`.
"""

from __future__ import annotations

from bisect import bisect_left, bisect_right
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from datetime import datetime

from acktrail.retries.audited_chains import Audits
from acktrail.retries.chain_endings import endings_of, retried_batch
from acktrail.retries.chains import Chain, Ending, chains_of
from acktrail.retries.error_counter import CounterSample
from acktrail.retries.exhaustion import UNKNOWN, exhaustion_of, finite_attempts
from acktrail.retries.signs import (
    CONNECTION_FAILURE,
    QUEUE_TIME,
    RETRY,
    RetrySettings,
    Sign,
)
from acktrail.retries.state import ATTEMPTS
from acktrail.window import epoch_ms

_MOST_EVIDENCE = 20


@dataclass(frozen=True)
class Budget:
    """One row of `retry_budgets`, without the client it belongs to."""

    topic: str
    partition: int
    chain: int
    opened_at: datetime
    opened_by: str
    last_at: datetime
    quiet_at: datetime
    events: int
    retries: int | None
    attempts_left: int | None
    delivery_timeout_ms: int | None
    exhausts_at_earliest: datetime | None
    exhausts_at_latest: datetime | None
    exhausted_by: str
    confidence: str
    error: str | None
    retriable: bool | None
    category: str | None
    node: int | None
    records_at_stake: int | None
    ended_at: datetime | None
    ended_by: str | None
    because: str
    evidence: tuple[str, ...]
    unknown: str | None


def budgets_of(
    signs: Iterable[Sign],
    known: Sequence[RetrySettings] = (),
    errors: Sequence[CounterSample] = (),
    audits: Audits | None = None,
    retried: Sequence[CounterSample] = (),
) -> list[Budget]:
    """The budgets of one client (one cluster, host and client id), by the time they opened.

    *errors* and *retried* are its samples of record-error-total and record-retry-total, *audits*
    what its sessions reported. The order of none of them matters.
    """
    everything = list(signs)
    audits = audits or Audits()
    chains = chains_of(everything, known)
    endings = endings_of(chains, everything, known, errors, audits)
    stakes = _Stakes(everything, audits, retried)
    numbers: dict[tuple[str, int, datetime], int] = {}
    found = []
    for chain, ending in zip(chains, endings, strict=True):
        place = (chain.first.topic, chain.first.partition, chain.first.at)
        numbers[place] = numbers.get(place, -1) + 1
        found.append(_budget(chain, numbers[place], ending, stakes.of(chain)))
    return found


def _budget(
    chain: Chain, number: int, ending: Ending | None, records_at_stake: int | None
) -> Budget:
    ends = exhaustion_of(chain)
    last = chain.last
    return Budget(
        topic=chain.first.topic,
        partition=chain.first.partition,
        chain=number,
        opened_at=chain.first.at,
        opened_by=chain.first.kind,
        last_at=max([last.at, *(s.at for s in chain.companions)]),
        quiet_at=chain.quiet_at,
        events=len(chain.signs) + len(chain.companions),
        retries=chain.retries,
        attempts_left=finite_attempts(chain),
        delivery_timeout_ms=chain.settings.delivery_timeout_ms,
        exhausts_at_earliest=ends.at.earliest,
        exhausts_at_latest=ends.at.latest,
        exhausted_by=ends.by,
        confidence=ends.confidence,
        error=last.error,
        retriable=last.retriable,
        category=last.category,
        node=_node(chain),
        records_at_stake=records_at_stake,
        ended_at=None if ending is None else ending.at,
        ended_by=None if ending is None or ending.by is None else ending.by.value,
        because=_because(chain, ends.by, ending),
        evidence=_evidence(chain, ending),
        unknown=ends.unknown,
    )


def _node(chain: Chain) -> int | None:
    spoken = (chain.cancelled, *chain.signs, *chain.companions)
    named = [s.node for s in spoken if s is not None and s.node is not None]
    return named[-1] if named else None


def _evidence(chain: Chain, ending: Ending | None) -> tuple[str, ...]:
    keys = [s.key for s in chain.signs]
    if len(keys) > _MOST_EVIDENCE:
        half = _MOST_EVIDENCE // 2
        keys = [*keys[:half], *keys[-half:]]
    if chain.settings.known_from:
        keys.append(chain.settings.known_from)
    if ending is not None:
        keys.extend(ending.evidence)
    return tuple(dict.fromkeys(keys))


def _because(chain: Chain, by: str, ending: Ending | None) -> str:
    """One clause a person can act on; with what was seen beside, where that proves no end."""
    if ending is None:
        return _burning(chain, by)
    return ending.because if ending.by else f"{_burning(chain, by)}; {ending.because}"


def _burning(chain: Chain, by: str) -> str:
    """Why it is retried, and which of attempts and time ends first."""
    first, last = chain.first, chain.last
    seconds = (last.at - first.at).total_seconds()
    where = f"{first.topic}-{first.partition}" if first.topic else "the client"
    if first.kind == CONNECTION_FAILURE:
        node = "a broker" if first.node is None else f"broker {first.node}"
        what = f"{node} could not be reached {len(chain.signs)} times in {seconds:.0f} s"
        return f"{what}; batches for it wait without a retry line"
    if first.kind == QUEUE_TIME:
        return f"batches waited {(last.elapsed_ms or 0) / 1000:.0f} s before their first send"
    what = f"{where}: {last.error or 'an error'}, {_retried(len(chain.signs), seconds)}"
    left = finite_attempts(chain)
    if left is not None:
        of = f" of {chain.retries}" if chain.retries is not None else ""
        what += f", {left}{of} attempts left"
    if by == UNKNOWN:
        return f"{what}; when it ends is not known"
    ends = "retries will be used up" if by == ATTEMPTS else "delivery.timeout.ms will expire"
    return f"{what}; {ends} first"


def _retried(count: int, seconds: float) -> str:
    retries = "1 retry" if count == 1 else f"{count} retries"
    return f"{retries} so far" if seconds < 1 else f"{retries} in {seconds:.0f} s"


class _Stakes:
    """How many records a chain puts at stake, where audits, lines or metrics show it."""

    def __init__(
        self, signs: Iterable[Sign], audits: Audits, retried: Sequence[CounterSample]
    ) -> None:
        self._lines = sorted(s.at for s in signs if s.kind == RETRY)
        self._audits = audits
        self._retried = sorted(retried, key=lambda r: (r.at, r.key))
        self._ats = [r.at for r in self._retried]

    def of(self, chain: Chain) -> int | None:
        """Records in doubt: as the audits said then, as printed, else as retried on average."""
        batch = retried_batch(chain)
        last_ms = epoch_ms(chain.last.at)
        audited = None if batch is None else self._audits.in_doubt(batch, last_ms)
        if audited is not None:
            return audited
        printed = [s.records for s in chain.signs if s.records is not None]
        return max(printed) if printed else self._mean_batch(chain)

    def _mean_batch(self, chain: Chain) -> int | None:
        """Records retried in the samples that hold the chain's lines, per line printed in them.

        record-retry-total counts the records of a batch again with each retry, and each retry
        prints one line: so the ratio is the size of a batch.
        """
        if chain.first.kind != RETRY:
            return None
        start = bisect_left(self._ats, chain.first.at)
        stop = bisect_left(self._ats, chain.last.at) + 1
        samples = self._retried[start:stop]
        records = sum(r.increase for r in samples)
        if not samples or records <= 0:
            return None
        begun = bisect_right(self._lines, min(r.since for r in samples))
        ended = bisect_right(self._lines, samples[-1].at)
        return max(1, round(records / max(1, ended - begun)))
