"""Producers that are about to run out of retries."""

from __future__ import annotations

from datetime import timedelta
from typing import ClassVar

import pandas as pd

from acktrail.alerts.finding import Finding
from expectations.domain.expectation import (
    DomainExpectation,
    failure,
    instant,
    keys_of,
    number,
    texts,
)

SHARE = 0.75
"""A budget of time is critical only once a quarter of it is gone, however short it is."""

_KEY = ("cluster", "host", "client_id", "topic", "partition", "opened_at", "chain")


class ExpectRetriesNotAboutToRunOut(DomainExpectation):
    """No batch is within reach of its last attempt or of its delivery timeout.

    A chain counts while it can still be saved: it has not ended, its budget has not surely run
    out, and it has not gone quiet. The warning is cut to three quarters of a short budget of time.
    """

    thresholds: ClassVar[dict[str, float]] = {"attempts_left": 1, "retry_warning_s": 85}

    def findings(self, frame: pd.DataFrame) -> list[Finding]:
        """One finding for each topic and error that burns budgets there."""
        close = frame[self._running_out(frame)]
        close = close.assign(error=close["error"].fillna("unknown error"))
        return [
            self._finding(str(cluster), str(topic), str(error), chains)
            for (cluster, topic, error), chains in close.groupby(["cluster", "topic", "error"])
        ]

    def _running_out(self, frame: pd.DataFrame) -> pd.Series:
        now = pd.Timestamp(self.asked_at)
        ended = frame["ended_at"].notna() & (frame["ended_at"] <= now)
        over = frame["exhausts_at_latest"].notna() & (frame["exhausts_at_latest"] <= now)
        burning = (frame["opened_at"] <= now) & (frame["quiet_at"] > now) & ~ended & ~over
        seconds = self.limit(frame, "retry_warning_s")
        short = frame["delivery_timeout_ms"].astype("float64") * SHARE / 1000
        by_time = (frame["exhausted_by"] != "attempts") & (short < seconds)
        warning = pd.to_timedelta(seconds.mask(by_time, short), unit="s")
        soon = frame["exhausts_at_earliest"].notna() & (
            frame["exhausts_at_earliest"] - warning <= now
        )
        few = frame["attempts_left"].notna() & (
            frame["attempts_left"] <= self.limit(frame, "attempts_left")
        )
        return burning & (soon | few)

    def _finding(self, cluster: str, topic: str, error: str, chains: pd.DataFrame) -> Finding:
        clients = texts(chains["client_id"])
        who = clients[0] if len(clients) == 1 else f"{len(clients) or 'some'} producers"
        verb = "retries" if len(clients) == 1 else "retry"
        where = f"on topic {topic}" if topic else "to brokers that do not answer"
        return failure(
            cluster=cluster,
            topic=topic,
            group="",
            state="retries_running_out",
            cause=error,
            starts_at=instant(chains["opened_at"].min(), self.asked_at),
            ends_at=None,
            count=len(chains),
            keys=keys_of(chains, _KEY),
            clients=clients,
            because=(
                f"{who} {verb} {number(len(chains), 'batch')} {where} ({error})"
                f"{_stake(chains)}; {self._left(chains)}."
            ),
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


def _stake(chains: pd.DataFrame) -> str:
    records = chains["records_at_stake"].sum(min_count=1)
    return "" if pd.isna(records) else f", {number(int(records), 'record')} at stake"
