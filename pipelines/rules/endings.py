"""How a chain ended, on evidence only: recovered, exhausted, or its client was started anew.

The client prints nothing when a batch succeeds after all, and nothing when it gives up. So an end
is said only where an exception line, the error counter or an audit speaks; else it stays open and
is "ended, unknown" to whoever asks after its time.
"""

from __future__ import annotations

from bisect import bisect_left, bisect_right
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta

from pipelines.rules.audit_trail import Audits, Retried
from pipelines.rules.backoff import request_timeout_ms
from pipelines.rules.chains import Chain
from pipelines.rules.error_counter import CounterSample, ErrorCounter
from pipelines.rules.exhaustion import (
    Interval,
    age_at_first_sign,
    exhaustion_of,
    finite_attempts,
)
from pipelines.rules.retry_signs import (
    EXPIRED,
    LONGEST,
    RETRY,
    SEND_FAILED,
    SEQUENCE_RESET,
    ProducerSettings,
    Sign,
    epoch_ms,
    milliseconds,
)

RECOVERED = "recovered"
EXHAUSTED = "exhausted"
RESTARTED = "restarted"

_SLACK = timedelta(seconds=2)
"""Between the client's decision and the application's line."""

_PRINTING = timedelta(milliseconds=50)


@dataclass(frozen=True)
class Ending:
    """When and how a chain ended, and what proves it."""

    at: datetime
    by: str
    because: str
    evidence: tuple[str, ...]


def ending_of(
    chains: Sequence[Chain],
    signs: Iterable[Sign],
    known: Sequence[ProducerSettings],
    errors: Sequence[CounterSample],
    audits: Audits,
) -> list[Ending | None]:
    """How each chain ended, in the order of *chains*. Strongest evidence first:

    an exception line names the batch, an audit all records it can be, the error counter the client.
    """
    endings: dict[int, Ending] = {}
    _by_expiry_lines(chains, signs, endings)
    _by_failure_lines(chains, signs, endings)
    ends = [exhaustion_of(c).at for c in chains]
    _by_sequence_resets(chains, ends, signs, endings)
    counter = ErrorCounter(errors, ends)
    for number, chain in enumerate(chains):
        if number in endings:
            continue
        found = (
            _by_audit(chain, audits)
            or _by_counter(chain, ends[number], counter)
            or _by_restart(chain, known)
        )
        if found is not None:
            endings[number] = found
    return [endings.get(number) for number in range(len(chains))]


def _by_expiry_lines(
    chains: Sequence[Chain], signs: Iterable[Sign], endings: dict[int, Ending]
) -> None:
    """ "Expiring 12 record(s) for orders-3:120004 ms has passed since batch creation".

    The line is printed once per record; its elapsed time says when the batch was created.
    """
    opened = [c.first.at for c in chains]
    for line in _expired_batches(signs):
        created = line.at - milliseconds(line.elapsed_ms or 0)
        since = opened[0] if line.elapsed_ms is None and opened else created - _PRINTING
        among = range(bisect_left(opened, since), bisect_right(opened, line.at))
        fitting = (n for n in among if n not in endings and _could_be(chains[n], line, created))
        chosen = next(fitting, None)
        if chosen is None:
            continue
        count = "its" if line.records is None else f"{line.records}"
        what = f"{count} records of {line.topic}-{line.partition} expired"
        endings[chosen] = Ending(line.at, EXHAUSTED, what, (line.key,))


def _expired_batches(signs: Iterable[Sign]) -> list[Sign]:
    """One line per batch: the client prints it for each record."""
    lines = sorted((s for s in signs if s.kind == EXPIRED), key=lambda s: (s.at, s.key))
    seen: dict[tuple[str, int, int | None], datetime] = {}
    batches = []
    for line in lines:
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
    if chain.last.at > line.at + _SLACK:
        return False
    if line.elapsed_ms is None:
        return line.at <= chain.lives_until() + _SLACK
    if chain.parent is not None:
        return True
    _, oldest = age_at_first_sign(chain)
    return first.at - milliseconds(oldest) - _SLACK <= created <= first.at + _PRINTING


def _by_failure_lines(
    chains: Sequence[Chain], signs: Iterable[Sign], endings: dict[int, Ending]
) -> None:
    """An application's line with the error of a chain whose last attempt was announced."""
    lines = sorted((s for s in signs if s.kind == SEND_FAILED), key=lambda s: (s.at, s.key))
    for number, chain in enumerate(chains):
        if number in endings or chain.first.kind != RETRY or finite_attempts(chain) != 0:
            continue
        latest = exhaustion_of(chain).at.latest
        for line in lines:
            if line.topic not in ("", chain.first.topic) or _names(line) != _names(chain.last):
                continue
            if chain.last.at < line.at and (latest is None or line.at <= latest + _SLACK):
                endings[number] = Ending(
                    line.at,
                    EXHAUSTED,
                    f"the last retry failed too: {line.error}",
                    (line.key,),
                )
                break


def _by_sequence_resets(
    chains: Sequence[Chain],
    ends: Sequence[Interval],
    signs: Iterable[Sign],
    endings: dict[int, Ending],
) -> None:
    """An idempotent producer gave up a batch of the partition, and starts its numbers anew."""
    for line in sorted((s for s in signs if s.kind == SEQUENCE_RESET), key=lambda s: (s.at, s.key)):
        for number, chain in enumerate(chains):
            at = ends[number]
            if number in endings or at.earliest is None or at.latest is None:
                continue
            if (chain.first.topic, chain.first.partition) != (line.topic, line.partition):
                continue
            late = at.latest + milliseconds(request_timeout_ms(chain.settings))
            if at.earliest - _SLACK <= line.at <= late:
                what = f"a batch of {line.topic}-{line.partition} was given up"
                endings[number] = Ending(line.at, EXHAUSTED, what, (line.key,))
                break


def _names(sign: Sign) -> str:
    """An error's name, however spelt: NOT_ENOUGH_REPLICAS, NotEnoughReplicasException."""
    name = (sign.error or "").rpartition(".")[2].removesuffix("Exception")
    return name.replace("_", "").lower()


def retried_batch(chain: Chain) -> Retried | None:
    """The batch of *chain* as audits can be asked of it; None where it may outlive what is read."""
    timeout = chain.settings.delivery_timeout_ms
    longest = round(LONGEST / milliseconds(1))
    if timeout is not None and timeout > longest:
        return None
    return Retried(
        at_ms=epoch_ms(chain.first.at),
        timeout_ms=longest if timeout is None else timeout,
        topic=chain.first.topic,
        partition=chain.first.partition,
    )


def _by_audit(chain: Chain, audits: Audits) -> Ending | None:
    """All records that can be the batch's were acknowledged, or none was and they failed."""
    batch = retried_batch(chain)
    fates = None if batch is None else audits.became(batch)
    if batch is None or fates is None or fates.other or fates.until_ms < epoch_ms(chain.last.at):
        return None
    if bool(fates.acked) == bool(fates.failed):
        return None  # some of both: which batch was which cannot be told
    at = datetime.fromtimestamp(min(fates.until_ms, batch.over_ms) / 1000, UTC)
    what = f"the audit has all {fates.acked} records of then acknowledged"
    if fates.failed:
        what = f"the audit has {fates.failed} records of then failed, none acknowledged"
    return Ending(at, EXHAUSTED if fates.failed else RECOVERED, what, fates.evidence)


def _by_counter(chain: Chain, at: Interval, counter: ErrorCounter) -> Ending | None:
    """record-error-total across the end: unmoved is recovered; moved for no other: exhausted."""
    if at.earliest is None or at.latest is None:
        return None
    across = counter.across(chain.first.at, at.latest)
    if across and not any(e.increase > 0 for e in across):
        return Ending(
            across[-1].at,
            RECOVERED,
            "record-error-total did not move until its time was over",
            (across[0].key, across[-1].key),
        )
    then = counter.grown_between(at.earliest, at.latest)
    if not then or any(counter.candidates(e) > 1 for e in then):
        return None
    lost = sum(e.increase for e in then)
    return Ending(
        then[0].at,
        EXHAUSTED,
        f"record-error-total grew by {lost:.0f} when its time was over",
        tuple(e.key for e in then[:5]),
    )


def _by_restart(chain: Chain, known: Sequence[ProducerSettings]) -> Ending | None:
    """The same file shows the client starting anew: what it still held is gone with it."""
    starts = sorted(
        s.since
        for s in known
        if s.since is not None
        and s.origin
        and s.origin == chain.first.origin
        and chain.last.at < s.since <= chain.lives_until()
    )
    if not starts:
        return None
    return Ending(
        starts[0], RESTARTED, "the client was started anew; only an audit can tell the rest", ()
    )
