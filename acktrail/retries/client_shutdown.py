"""Chains whose client itself was closed, failed for good, or was restarted.

A producer that is closed by force, or that met a fatal error, fails every batch it still holds
(Kafka clients, RecordAccumulator.abortIncompleteBatches). That prints one line for the client and
none for a batch, and record-error-total counts none of them. So after such a line the counter
proves nothing, and what the client held is over, but whether this chain's batch was still among it
is known only where its retry cannot have been sent yet. The same goes for a client that was
restarted: its counter begins at 0.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from datetime import datetime

from acktrail.retries.backoff import backoff
from acktrail.retries.chains import Chain, Ending
from acktrail.retries.signs import (
    DROPPED_AT_CLOSE,
    PRINTED_WITHIN,
    RETRY,
    RetrySettings,
    Sign,
    milliseconds,
)
from acktrail.retries.state import BudgetState


class ClientShutdowns:
    """The starts of one client, and its lines after which batches go uncounted."""

    def __init__(self, signs: Iterable[Sign], known: Sequence[RetrySettings]) -> None:
        everything = list(signs)
        self._lines = sorted((s for s in everything if s.uncounted), key=lambda s: (s.at, s.key))
        # An audit session (`until`) is heard of at some time, not started then.
        self._starts = sorted(
            (s.since, s.origin) for s in known if s.since is not None and s.until is None
        )
        self._begun: dict[str, datetime] = {}
        for at, origin in [*((s.at, s.origin) for s in everything), *self._starts]:
            self._begun[origin] = min(at, self._begun.get(origin, at))

    def ending(self, chain: Chain) -> Ending | None:
        """How the client that held *chain* ended within its life, by its own log."""
        ends = [self._let_go(chain), self._restarted(chain)]
        found = [(e.at, n, e) for n, e in enumerate(ends) if e is not None and e.at is not None]
        return min(found)[2] if found else None

    def may_hide_losses(self, chain: Chain, until: datetime) -> bool:
        """Whether batches of that time may be lost uncounted, or the counter with them."""
        first = chain.first.at
        lines = ((s.at, s.origin) for s in self._lines)
        return any(
            first <= at <= until and self._may_be_of(chain, origin)
            for at, origin in (*lines, *self._starts)
        )

    def _let_go(self, chain: Chain) -> Ending | None:
        """The line with which the client let go of all it held."""
        last = chain.last
        line = next(
            (
                s
                for s in self._lines
                if s.drops_all
                and s.origin
                and s.origin == last.origin
                and last.at <= s.at <= chain.lives_until()
            ),
            None,
        )
        if line is None:
            return None
        closed = line.kind == DROPPED_AT_CLOSE
        what = "the client was closed by force" if closed else "the client met a fatal error"
        if _retry_was_not_sent(chain, line.at):
            because = f"{what} before its next retry could be sent"
            return Ending(line.at, BudgetState.EXHAUSTED, because, (line.key,))
        because = f"{what}: what it still held was dropped; only an audit can show the rest"
        return Ending(line.at, BudgetState.ENDED_UNKNOWN, because, (line.key,))

    def _restarted(self, chain: Chain) -> Ending | None:
        """The same file shows the client starting again: what it still held is gone with it."""
        last = chain.last
        starts = (
            at
            for at, origin in self._starts
            if origin and origin == last.origin and last.at < at <= chain.lives_until()
        )
        at = next(starts, None)
        if at is None:
            return None
        because = "the client was restarted; only an audit can show the rest"
        return Ending(at, BudgetState.RESTARTED, because, ())

    def _may_be_of(self, chain: Chain, origin: str) -> bool:
        """Whether this log can be of the chain's process: its own, or one begun since (rotated).

        A log that was written beside the chain's own is of another process.
        """
        own = {s.origin for s in chain.signs}
        return not origin or "" in own or origin in own or self._begun[origin] > chain.last.at


def _retry_was_not_sent(chain: Chain, at: datetime) -> bool:
    """Whether the announced retry was still waiting for its backoff: then the batch was open."""
    if chain.first.kind != RETRY or chain.last.leader_moved:
        return False
    wait = backoff(chain.settings, chain.attempt).lowest
    return at < chain.last.at + milliseconds(wait) - PRINTED_WITHIN
