"""Chains that a printed loss ended: which line is about which batch.

No line names a batch. An expiry line says when it was created, others its partition or its topic
alone. One printed loss ends at most one chain, and a chain only if the client can have given it up
then: after its last retry was announced, or when its time was over.
"""

from __future__ import annotations

from bisect import bisect_left, bisect_right
from collections.abc import Iterable, Iterator, Sequence
from datetime import datetime, timedelta

from acktrail.logs.pairing import RetryLines
from acktrail.retries.backoff import request_timeout_ms
from acktrail.retries.chains import Chain, Ending
from acktrail.retries.exhaustion import SLACK, age_at_first_sign, exhaustion_of, giving_up
from acktrail.retries.signs import (
    EXPIRED,
    INVALID_METADATA,
    LONGEST,
    PRINTED_WITHIN,
    RETRY,
    SEND_FAILED,
    SEQUENCE_RESET,
    SPLIT_RETRY,
    Sign,
    milliseconds,
)
from acktrail.retries.state import BudgetState

_ONE_LOSS = timedelta(seconds=1)
"""A callback prints a line for each record of a batch, one right after the other."""

Endings = dict[int, Ending]
"""By the chain's number."""


class Candidates:
    """The chains of a client, and when each can have been given up."""

    def __init__(self, chains: Sequence[Chain]) -> None:
        self.chains = chains
        self._opened = [c.first.at for c in chains]
        self._spans = [giving_up(c) for c in chains]

    def given_up(self, at: datetime, *, answered_late: bool = False) -> Iterator[int]:
        """The numbers of those that can have been given up by *at*, and printed then."""
        begun = bisect_left(self._opened, at - 2 * LONGEST)
        for number in range(begun, bisect_left(self._opened, at)):
            span = self._spans[number]
            if span is None or span.earliest is None or at <= span.earliest:
                continue
            timeout = milliseconds(request_timeout_ms(self.chains[number].settings))
            late = timeout if answered_late else SLACK
            if span.latest is None or at <= span.latest + late:
                yield number

    def given_up_at(self, line: Sign) -> list[int]:
        """Those of the line's partition; the answer it is about may be late."""
        late = self.given_up(line.at, answered_late=True)
        return [n for n in late if _partition_of(self.chains[n].first) == _partition_of(line)]


def by_expiry_lines(chains: Sequence[Chain], signs: Iterable[Sign], endings: Endings) -> None:
    """ "Expiring 12 record(s) for orders-3:120004 ms has passed since batch creation".

    The line is printed once per record; its elapsed time says when the batch was created.
    """
    opened = [c.first.at for c in chains]
    for line in _expired_batches(signs):
        created = line.at - milliseconds(line.elapsed_ms or 0)
        since = opened[0] if line.elapsed_ms is None and opened else created - PRINTED_WITHIN
        among = range(bisect_left(opened, since), bisect_right(opened, line.at))
        fitting = (n for n in among if n not in endings and _could_be(chains[n], line, created))
        chosen = next(fitting, None)
        if chosen is None:
            continue
        count = "its" if line.records is None else f"{line.records}"
        what = f"{count} records of {line.topic}-{line.partition} expired"
        endings[chosen] = Ending(line.at, BudgetState.EXHAUSTED, what, (line.key,))


def _expired_batches(signs: Iterable[Sign]) -> list[Sign]:
    """One line per batch: the client prints it for each record."""
    seen: dict[tuple[str, int, int | None], datetime] = {}
    batches = []
    for line in _of_kind(signs, EXPIRED):
        place = (line.topic, line.partition, line.records)
        created = line.at - milliseconds(line.elapsed_ms or 0)
        before = seen.get(place)
        if before is None or abs(created - before) > timedelta(milliseconds=20):
            batches.append(line)
        seen[place] = created
    return batches


def _could_be(chain: Chain, line: Sign, created: datetime) -> bool:
    """Whether the batch created then can be the one of this chain."""
    first = chain.first
    if first.topic and (first.topic, first.partition) != (line.topic, line.partition):
        return False
    if chain.last.at > line.at + SLACK:
        return False
    if line.elapsed_ms is None:
        return line.at <= chain.lives_until() + SLACK
    if chain.parent is not None:
        return True
    _, oldest = age_at_first_sign(chain)
    return first.at - milliseconds(oldest) - SLACK <= created <= first.at + PRINTED_WITHIN


def by_failure_lines(among: Candidates, signs: Iterable[Sign], endings: Endings) -> None:
    """An application's line with the error of a chain that can have been given up then.

    Lines that name a partition choose first.
    """
    for line in sorted(_printed_losses(signs), key=lambda s: s.partition < 0):
        fitting = [
            (*_misfit(among.chains[number], line), number)
            for number in among.given_up(line.at)
            if number not in endings and _fails_as(among.chains[number], line)
        ]
        if fitting:
            what = f"the last retry failed too: {line.error}"
            endings[min(fitting)[-1]] = Ending(line.at, BudgetState.EXHAUSTED, what, (line.key,))


def _printed_losses(signs: Iterable[Sign]) -> list[Sign]:
    """One line per loss: callbacks print the same for every record of a batch."""
    latest: dict[tuple[str, int, str, str], datetime] = {}
    losses = []
    for line in _of_kind(signs, SEND_FAILED):
        said = (line.topic, line.partition, _error_name(line), line.origin)
        before = latest.get(said)
        if before is None or line.at - before > _ONE_LOSS:
            losses.append(line)
        latest[said] = line.at
    return losses


def _fails_as(chain: Chain, line: Sign) -> bool:
    """Whether *line* can be of this chain: its error, and its place as far as that is printed."""
    first = chain.first
    return (
        first.kind == RETRY
        and line.topic in ("", first.topic)
        and line.partition in (-1, first.partition)
        and _error_name(line) == _error_name(chain.last)
    )


def _misfit(chain: Chain, line: Sign) -> tuple[bool, bool, timedelta]:
    """How badly *line* fits: the partition is not printed, another file, far from the end."""
    end = exhaustion_of(chain).at.earliest
    return (
        line.partition != chain.first.partition,
        line.origin != chain.last.origin,
        abs(line.at - (chain.last.at if end is None else end)),
    )


def _error_name(sign: Sign) -> str:
    """An error's name, however spelt: NOT_ENOUGH_REPLICAS, NotEnoughReplicasException."""
    name = (sign.error or "").rpartition(".")[2].removesuffix("Exception")
    return name.replace("_", "").lower()


def by_sequence_resets(among: Candidates, signs: Iterable[Sign], endings: Endings) -> None:
    """An idempotent producer gave up a batch of the partition, and restarts its numbers."""
    for line in _of_kind(signs, SEQUENCE_RESET):
        fitting = (n for n in among.given_up_at(line) if n not in endings)
        chosen = next(fitting, None)
        if chosen is not None:
            what = f"a batch of {line.topic}-{line.partition} was given up"
            endings[chosen] = Ending(line.at, BudgetState.EXHAUSTED, what, (line.key,))


def by_unpaired_lines(among: Candidates, unpaired: Iterable[Sign], endings: Endings) -> Endings:
    """A batch of the partition was not retried: it failed for good, or expired before its answer.

    Either way it was given up. It is this chain's where only this one can have been. Returned is
    what else was seen of chains that are still open: no proof.
    """
    seen: Endings = {}
    for line in unpaired:
        lost = [n for n in among.given_up_at(line) if _can_be_lost(endings.get(n))]
        if len(lost) == 1:
            what = f"a batch of {line.topic}-{line.partition} was not retried: {line.error}"
            endings.setdefault(lost[0], Ending(line.at, BudgetState.EXHAUSTED, what, (line.key,)))
            continue
        what = "an answer that was not retried: a batch of its partition failed or came too late"
        for number, chain in enumerate(among.chains):
            alive = chain.last.at < line.at <= chain.lives_until()
            if (
                number not in endings
                and alive
                and _partition_of(chain.first) == _partition_of(line)
            ):
                seen.setdefault(number, Ending(None, None, what, (line.key,)))
    return {number: ending for number, ending in seen.items() if number not in endings}


def unpaired_lines(signs: Iterable[Sign]) -> list[Sign]:
    """The invalid-metadata lines that no retry line of the partition precedes."""
    kinds = (RETRY, SPLIT_RETRY, INVALID_METADATA)
    retries = RetryLines()
    alone = []
    spoken = (s for s in signs if s.kind in kinds and s.topic and s.partition >= 0)
    for sign in sorted(spoken, key=lambda s: (s.at, s.kind == INVALID_METADATA, s.key)):
        if sign.kind != INVALID_METADATA:
            retries.add(_partition_of(sign), sign.at, sign.error)
        elif not retries.precede(_partition_of(sign), sign.at, sign.error):
            alone.append(sign)
    return alone


def _can_be_lost(ending: Ending | None) -> bool:
    return ending is None or ending.by != BudgetState.RECOVERED


def _partition_of(sign: Sign) -> tuple[str, int]:
    return (sign.topic, sign.partition)


def _of_kind(signs: Iterable[Sign], kind: str) -> list[Sign]:
    return sorted((s for s in signs if s.kind == kind), key=lambda s: (s.at, s.key))
