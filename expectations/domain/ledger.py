"""The accounts: states that add up, and promises of idempotence, order and few redeliveries."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, ClassVar

import pandas as pd

from acktrail.alerts.finding import Finding
from acktrail.contracts.vocabulary import Outcome
from expectations.domain.expectation import (
    DomainExpectation,
    instant,
    keys_of,
    missing,
    number,
    texts,
)

_KEY = ("session", "topic", "group", "block")


class _LedgerExpectation(DomainExpectation):
    """Findings per topic and group over the blocks of the window."""

    def grouped(
        self,
        blocks: pd.DataFrame,
        state: str,
        cause: str,
        column: str,
        said: Callable[[int, str], str],
        **facts: Any,
    ) -> list[Finding]:
        """One finding for each topic and group among *blocks*, counting *column*."""
        return [
            Finding(
                outcome=Outcome.FAIL,
                cluster=str(cluster),
                topic=str(topic),
                group=str(group),
                state=state,
                cause=cause,
                starts_at=instant(rows["first_at"].min(), self.asked_at),
                ends_at=None,
                because=said(
                    int(rows[column].abs().sum()),
                    f"topic {topic}" + (f", group {group}" if group else ""),
                ),
                count=int(rows[column].abs().sum()),
                keys=keys_of(rows, _KEY),
                clients=texts(rows["client_id"]),
                **facts,
            )
            for (cluster, topic, group), rows in blocks.groupby(["cluster", "topic", "group"])
        ]


class ExpectLedgerBalances(_LedgerExpectation):
    """What was sent is the sum of what became of it, for every session, topic and group."""

    def findings(self, frame: pd.DataFrame) -> list[Finding]:
        """One finding for each topic and group with a residual."""
        return self.grouped(
            frame[frame["residual"] != 0],
            "books_do_not_balance",
            "residual",
            "residual",
            lambda n, where: f"{number(n, 'message')} of {where}: no state, or two states.",
            loss=True,
        )


class _PromiseKept(_LedgerExpectation):
    """Something that must be 0 where the producer's settings promise it."""

    counted: ClassVar[str] = ""
    promise: ClassVar[str] = ""
    state: ClassVar[str] = ""
    cause: ClassVar[str] = ""

    def _counted(self, count: int) -> str:
        """`1 duplicate`, `5 out of order`."""
        noun = self.counted.replace("_", " ")
        return f"{count:,} {noun.removesuffix('s') if count == 1 else noun}"

    def findings(self, frame: pd.DataFrame) -> list[Finding]:
        """Broken promises; undecided where it happened and nobody knows what was promised."""
        # Steps back and records beyond one per id are facts of the log: they repeat in each group.
        happened = frame[frame[self.counted] > 0].drop_duplicates(
            ["cluster", "session", "topic", "block"]
        )
        happened = happened.assign(group="")
        promised = happened[self.promise].map(lambda known: known is True).astype(bool)
        unknown = happened[self.promise].isna()
        found = self.grouped(happened[promised], self.state, self.cause, self.counted, self._broken)
        for cluster, rows in happened[unknown].groupby("cluster"):
            found.append(
                missing(
                    cluster=str(cluster),
                    cause=f"no_settings_{self.promise}",
                    starts_at=instant(rows["first_at"].min(), self.asked_at),
                    because=(
                        f"{self._counted(int(rows[self.counted].sum()))} in "
                        f"cluster {cluster}, and it is not known whether their producers are "
                        f"{self.promise}: collect their start-up log, or set it in the audit."
                    ),
                    keys=keys_of(rows, _KEY),
                )
            )
        return found

    def _broken(self, count: int, where: str) -> str:
        return f"{count} {self.counted.replace('_', ' ')} in {where} from {self.promise} producers."


class ExpectNoDuplicateFromIdempotentProducer(_PromiseKept):
    """No record is in the log twice where the producer is idempotent."""

    counted: ClassVar[str] = "duplicates"
    promise: ClassVar[str] = "idempotent"
    state: ClassVar[str] = "duplicated"
    cause: ClassVar[str] = "idempotence_broken"


class ExpectOrderWherePromised(_PromiseKept):
    """Nothing is out of order in the log where the producer's settings keep the order."""

    counted: ClassVar[str] = "out_of_order"
    promise: ClassVar[str] = "ordered"
    state: ClassVar[str] = "out_of_order"
    cause: ClassVar[str] = "order_broken"


class ExpectRedeliveriesWithinBounds(_LedgerExpectation):
    """A rolling restart makes a group read again at most so many records of a topic."""

    thresholds: ClassVar[dict[str, float]] = {"redelivered": 1000}

    def findings(self, frame: pd.DataFrame) -> list[Finding]:
        """One finding for each topic and group above the bound."""
        totals = frame.groupby(["cluster", "topic", "group"])["redelivered"].sum().reset_index()
        above = totals[totals["redelivered"] > self.limit(totals, "redelivered")]
        blocks = frame[frame["redelivered"] > 0].merge(
            above[["cluster", "topic", "group"]], on=["cluster", "topic", "group"]
        )
        return self.grouped(
            blocks,
            "redelivered",
            "restart",
            "redelivered",
            lambda n, where: f"{number(n, 'record')} of {where} delivered again.",
        )
