"""Producers that are about to run out of retries."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import asdict
from datetime import timedelta
from typing import Any, ClassVar

import pandas as pd

from acktrail.alerts.finding import Finding
from acktrail.contracts.vocabulary import Outcome
from acktrail.retries.remedy import LACKS_REPLICAS, remedy
from acktrail.retries.state import DEFAULTS, RUNNING_OUT, BudgetState, Thresholds, state_of
from expectations.domain.expectation import (
    DomainExpectation,
    instant,
    keys_of,
    number,
    texts,
)

_DECIDES = (
    *("opened_at", "quiet_at", "attempts_left", "delivery_timeout_ms", "exhausts_at_earliest"),
    *("exhausts_at_latest", "exhausted_by", "ended_at", "ended_by"),
)
_KEY = ("cluster", "host", "client_id", "topic", "partition", "opened_at", "chain")


class ExpectRetryBudgetLeft(DomainExpectation):
    """No batch is within reach of its last attempt or of its delivery timeout.

    A chain counts while it can still be saved: it has not ended, its budget has not surely run
    out, and it has not gone quiet. The warning is cut to three quarters of a short budget of time.
    """

    thresholds: ClassVar[dict[str, float]] = asdict(DEFAULTS)

    def findings(self, frame: pd.DataFrame) -> list[Finding]:
        """One finding for each topic and error that is retried there."""
        now = self.asked_at
        # A chain without the times its contract requires is not critical.
        opened = frame[(frame["opened_at"] <= now) & frame["quiet_at"].notna()]
        columns = opened[list(_DECIDES)].astype(object)
        chains: Iterable[Any] = columns.where(columns.notna(), None).itertuples(index=False)
        limits = zip(*(self.limit(opened, name) for name in self.thresholds), strict=True)
        critical = [
            state_of(chain, now, Thresholds(*limit)) is BudgetState.CRITICAL
            for chain, limit in zip(chains, limits, strict=True)
        ]
        close = opened[pd.Series(critical, index=opened.index, dtype=bool)]
        close = close.assign(error=close["error"].fillna("unknown error"))
        return [
            self._finding(str(cluster), str(topic), str(error), chains)
            for (cluster, topic, error), chains in close.groupby(["cluster", "topic", "error"])
        ]

    def _finding(self, cluster: str, topic: str, error: str, chains: pd.DataFrame) -> Finding:
        clients = texts(chains["client_id"])
        who = clients[0] if len(clients) == 1 else f"{len(clients) or 'some'} producers"
        verb = "retries" if len(clients) == 1 else "retry"
        where = f"on topic {topic}" if topic else "to brokers that do not answer"
        stake = chains["records_at_stake"].sum(min_count=1)
        deadline = chains["exhausts_at_earliest"].min()
        numbers = sorted({int(n) for n in chains["partition"] if n >= 0}) if topic else []
        batches = number(len(chains), "batch")
        return Finding(
            outcome=Outcome.FAIL,
            cluster=cluster,
            topic=topic,
            group="",
            state=RUNNING_OUT,
            cause=error,
            starts_at=instant(chains["opened_at"].min(), self.asked_at),
            ends_at=None,
            count=len(chains),
            keys=keys_of(chains, _KEY),
            clients=clients,
            hosts=texts(chains["host"]),
            brokers=_behind(error, chains),
            partitions=tuple(f"{topic}-{n}" for n in numbers),
            at_stake=None if pd.isna(stake) else int(stake),
            deadline=None if pd.isna(deadline) else instant(deadline, self.asked_at),
            because=(
                f"{who} {verb} {batches} {where} ({error}){_stake(chains)}; {self._left(chains)}."
            ),
            what=f"{who} {verb} {batches} {where} ({error})",
            past=f"{who} retried {batches} {where} ({error})",
            fix=remedy(error),
        )

    def _left(self, chains: pd.DataFrame) -> str:
        soonest = chains["exhausts_at_earliest"].min()
        said = []
        if pd.notna(soonest):
            left = pd.Timestamp(soonest).to_pydatetime() - self.asked_at
            when = (
                f"in {left.total_seconds():.0f} s" if left > timedelta(0) else "at any moment now"
            )
            said.append(f"the first may be given up {when}")
        attempts = chains["attempts_left"].min()
        if pd.notna(attempts):
            said.append(f"{number(int(attempts), 'attempt')} left at the lowest")
        return ", ".join(said)


def _behind(error: str, chains: pd.DataFrame) -> tuple[str, ...]:
    """The brokers that do not answer; one that lacks replicas only reports what is missing."""
    if error.startswith(LACKS_REPLICAS):
        return ()
    return tuple(str(n) for n in sorted({int(n) for n in chains["node"].dropna()}))


def _stake(chains: pd.DataFrame) -> str:
    records = chains["records_at_stake"].sum(min_count=1)
    return "" if pd.isna(records) else f", {number(int(records), 'record')} at stake"
