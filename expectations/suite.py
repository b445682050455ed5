"""A suite: one table, how to read it for a question, and the checks on it."""

from __future__ import annotations

import re
from collections.abc import Callable
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import TYPE_CHECKING, Any

from acktrail.contracts import Table
from acktrail.contracts.vocabulary import Grade

if TYPE_CHECKING:
    import pandas as pd

    from acktrail.lake import Lake


@dataclass(frozen=True)
class Question:
    """What is asked: the state of things at *as_of*, looking back over *window*."""

    as_of: datetime
    window: timedelta

    @property
    def since(self) -> datetime:
        """Where the window begins."""
        return self.as_of - self.window


@dataclass(frozen=True)
class Check:
    """One expectation with its grade and the sentence for the person woken up."""

    expectation: Any
    grade: Grade
    sentence: str
    named: str = ""
    """A name of its own; else that of the expectation's class, as words."""
    runbook: str = ""
    """A page of its own; else the one in docs/runbooks."""

    @property
    def name(self) -> str:
        """Its name in results, alerts, the policy file and the runbooks."""
        if self.named:
            return self.named
        words = re.sub(r"(?<!^)(?=[A-Z])", "_", type(self.expectation).__name__).lower()
        return words.removeprefix("expect_")


View = Callable[["Lake", Question], "pd.DataFrame | None"]
"""Reads what a suite looks at; None where the table does not exist."""


@dataclass(frozen=True)
class Suite:
    """The checks on one table. *needs* is the kind of evidence without which they are blind."""

    table: Table
    view: View
    checks: tuple[Check, ...]
    needs: str = ""
    structural: bool = True
    """Whether the table's contract is checked too."""
    named: str = ""

    @property
    def name(self) -> str:
        """Name of the suite; that of its table unless it has its own."""
        return self.named or self.table.name


def fail(expectation: Any, sentence: str) -> Check:
    """A check whose failure wakes somebody up and fails the command."""
    return Check(expectation, Grade.FAIL, sentence)


def warn(expectation: Any, sentence: str) -> Check:
    """A check whose failure makes a ticket: it can wait for the morning."""
    return Check(expectation, Grade.WARN, sentence)
