"""How chains ended, on evidence only: recovered, exhausted, or the client was restarted.

The client prints nothing when a batch succeeds after all, and nothing when it gives up. So a chain
has an ending only where an exception line, the error counter or an audit proves it. Without one it
stays open, and its state after its time is "ended, unknown".
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from acktrail.retries.audited_chains import Audits, Retried
from acktrail.retries.chains import Chain, Ending
from acktrail.retries.client_shutdown import ClientShutdowns
from acktrail.retries.error_counter import CounterSample, ErrorCounter
from acktrail.retries.exhaustion import (
    Interval,
    exhaustion_of,
    finite_attempts,
    last_possible_end,
    time_end,
)
from acktrail.retries.failure_lines import (
    Candidates,
    by_expiry_lines,
    by_failure_lines,
    by_sequence_resets,
    by_unpaired_lines,
    unpaired_lines,
)
from acktrail.retries.signs import (
    FAILURES,
    LONGEST,
    RetrySettings,
    Sign,
    milliseconds,
)
from acktrail.retries.state import BudgetState
from acktrail.window import epoch_ms, from_epoch_ms


def endings_of(
    chains: Sequence[Chain],
    signs: Iterable[Sign],
    known: Sequence[RetrySettings],
    errors: Sequence[CounterSample],
    audits: Audits,
) -> list[Ending | None]:
    """How each chain ended, in the order of *chains*. Strongest evidence first:

    an exception line names the batch, an audit all records it can be, a line without its retry the
    partition, the client's own end all it held. The error counter is of the client, and silent
    about what goes with it: so it is asked last.
    """
    everything = list(signs)
    endings: dict[int, Ending] = {}
    by_expiry_lines(chains, everything, endings)
    among = Candidates(chains)
    by_failure_lines(among, everything, endings)
    by_sequence_resets(among, everything, endings)
    for number, chain in enumerate(chains):
        audited = None if number in endings else _by_audit(chain, audits)
        if audited is not None:
            endings[number] = audited
    unpaired = unpaired_lines(everything)
    seen = by_unpaired_lines(among, unpaired, endings)
    shutdowns = ClientShutdowns(everything, known)
    failures = [s.at for s in (*(s for s in everything if s.kind in FAILURES), *unpaired)]
    counter = ErrorCounter(errors, [exhaustion_of(c).at for c in chains], failures)
    for number, chain in enumerate(chains):
        if number in endings:
            continue
        ending = shutdowns.ending(chain) or _by_counter(chain, counter, shutdowns)
        ending = ending or seen.get(number)
        if ending is not None:
            endings[number] = ending
    return [endings.get(number) for number in range(len(chains))]


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
    at = from_epoch_ms(min(fates.until_ms, batch.over_ms))
    fate = f"{fates.failed} records in flight at that time failed"
    if fates.acked:
        fate = f"{fates.acked} records in flight at that time were acknowledged"
    what = f"audit: all {fate}"
    return Ending(
        at, BudgetState.EXHAUSTED if fates.failed else BudgetState.RECOVERED, what, fates.evidence
    )


def _by_counter(chain: Chain, counter: ErrorCounter, shutdowns: ClientShutdowns) -> Ending | None:
    """record-error-total across the end: unmoved is recovered; moved for no other: exhausted."""
    over = last_possible_end(chain)
    still = [] if over is None else counter.unmoved(chain.first.at, over)
    if still:
        until = max(e.at for e in still)
        if shutdowns.may_hide_losses(chain, until):
            return None
        what = "record-error-total did not move until its time was over"
        return Ending(until, BudgetState.RECOVERED, what, tuple(e.key for e in still))
    moved = counter.moved_for(_given_up_within(chain))
    if not moved or shutdowns.may_hide_losses(chain, max(e.at for e in moved)):
        return None
    lost = sum(e.increase for e in moved)
    return Ending(
        min(e.at for e in moved),
        BudgetState.EXHAUSTED,
        f"record-error-total grew by {lost:.0f} when its time was over",
        tuple(e.key for e in moved[:5]),
    )


def _given_up_within(chain: Chain) -> Interval:
    """When the client can have given it up: while attempts are left, only its time ends it.

    Each of them would have printed a line.
    """
    if finite_attempts(chain) == 0:
        return exhaustion_of(chain).at
    return time_end(chain) or Interval(None, None)
