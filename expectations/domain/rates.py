"""What the metrics say of producers, beside what their logs say."""

from __future__ import annotations

from datetime import datetime
from typing import ClassVar

import pandas as pd

from acktrail.alerts.finding import Finding
from expectations.domain.expectation import (
    DomainExpectation,
    failure,
    hour_start,
    keys_of,
    missing,
    not_collected,
    texts,
)

_KEY = ("client_id", "topic", "hour")


class _RateWithinBounds(DomainExpectation):
    """A rate of each client stays at or below its bound in every hour of the window."""

    column: ClassVar[str] = ""
    state: ClassVar[str] = ""
    name: ClassVar[str] = ""

    def findings(self, frame: pd.DataFrame) -> list[Finding]:
        """One finding for each client and topic; undecided where nothing was measured."""
        measured = frame[frame[self.column].notna()]
        if measured.empty:
            return [missing_metrics(frame, self.asked_at)]
        above = measured[measured[self.column] > self.limit(measured, self.column)]
        place = ["cluster", "client_id", "hour"]
        topics = set(above[above["topic"] != ""][place].itertuples(index=False, name=None))
        # The rate of a client as a whole is that of its topics together: not another fact.
        own = [
            topic != "" or tuple(where) not in topics
            for topic, *where in above[["topic", *place]].itertuples(index=False, name=None)
        ]
        above = above[pd.Series(own, index=above.index, dtype=bool)]
        return [
            self._finding(str(cluster), str(topic), str(client), rows)
            for (cluster, topic, client), rows in above.groupby(["cluster", "topic", "client_id"])
        ]

    def _finding(self, cluster: str, topic: str, client: str, rows: pd.DataFrame) -> Finding:
        hours = f"{len(rows)} hours, the last" if len(rows) > 1 else "the hour"
        return failure(
            cluster=cluster,
            topic=topic,
            group="",
            state=self.state,
            cause=client or "unknown client",
            starts_at=hour_start(rows["hour"].min(), self.asked_at),
            ends_at=None,
            because=(
                f"{client or 'A client without a name'} had a {self.name} of up to "
                f"{rows[self.column].max():.3g}/s"
                + (f" on topic {topic}" if topic else "")
                + f" in {hours} {rows['hour'].max()}."
            ),
            count=len(rows),
            keys=keys_of(rows, _KEY),
            clients=texts([client]),
        )


class ExpectErrorRateWithinBounds(_RateWithinBounds):
    """The record-error-rate of every producer is within its bound."""

    thresholds: ClassVar[dict[str, float]] = {"error_rate_per_s": 0.0}
    column: ClassVar[str] = "error_rate_per_s"
    state: ClassVar[str] = "error_rate_high"
    name: ClassVar[str] = "record-error-rate"


class ExpectRetryRateWithinBounds(_RateWithinBounds):
    """The record-retry-rate of every producer is within its bound."""

    thresholds: ClassVar[dict[str, float]] = {"retry_rate_per_s": 1.0}
    column: ClassVar[str] = "retry_rate_per_s"
    state: ClassVar[str] = "retry_rate_high"
    name: ClassVar[str] = "record-retry-rate"


def missing_metrics(frame: pd.DataFrame, asked_at: datetime) -> Finding:
    """The finding that metrics are not there: those of producers, those of brokers, or both."""
    of_clients = frame[["error_rate_per_s", "retry_rate_per_s"]].notna().any(axis=None)
    of_brokers = frame["failed_produce_requests_total"].notna().any()
    absent = "broker" if of_clients else "producer" if of_brokers else ""
    return missing(
        cluster="",
        cause=f"no_{absent}_metrics" if absent else "no_metrics",
        starts_at=asked_at,
        because=not_collected("metrics", f"No metrics of {absent}s" if absent else "No metrics"),
        needs="metrics",
    )
