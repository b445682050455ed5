"""What a rule of a cause finds."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

from acktrail.audit.loss_evidence import Fact, Loss
from acktrail.contracts.vocabulary import Cause, Confidence

MOST_KEYS = 50
"""Of so many rows at most the keys are kept."""


@dataclass(frozen=True)
class Explained:
    """A cause with its evidence, and what a person reads: why, and what to change."""

    cause: Cause
    confidence: Confidence
    why: str
    evidence: tuple[str, ...] = ()
    fix: str = ""

    @property
    def because(self) -> str:
        """One line: the cause, and what to do."""
        return f"{self.why}. Fix: {self.fix}" if self.fix else self.why


Rule = Callable[[Loss], Explained | None]


def keys(*facts: Sequence[Fact]) -> tuple[str, ...]:
    """Keys of the rows, each once."""
    return tuple(dict.fromkeys(f.key for some in facts for f in some))[:MOST_KEYS]


def with_account(loss: Loss, *facts: Sequence[Fact]) -> tuple[str, ...]:
    """The same after the row that names the ids."""
    own = (loss.account,) if loss.account else ()
    return (*own, *keys(*facts))[:MOST_KEYS]


def place(loss: Loss) -> str:
    """Topic and partition, as Kafka prints them; as far as known."""
    partition = loss.finding.partition
    if partition is None:
        return loss.topic or "the topic"
    return f"{loss.topic}-{partition}" if loss.topic else f"partition {partition}"
