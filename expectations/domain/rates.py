"""What the metrics say of producers, beside what their logs say."""

from __future__ import annotations

from datetime import UTC, datetime
from typing import ClassVar

import pandas as pd

from expectations.domain.expectation import (
    DomainExpectation,
    failure,
    keys_of,
    missing,
    texts,
)
from expectations.result import Finding

_KEY = ("client_id", "topic", "hour")
_EXPLAINING = (
    "retry_lines",
    "expired_lines",
    "failure_lines",
    "errors_total",
    "retries_total",
)


class _RateWithinBounds(DomainExpectation):
    """A rate of each client stays at or below its bound in every hour of the window."""

    column: ClassVar[str] = ""
    state: ClassVar[str] = ""
    name: ClassVar[str] = ""

    def findings(self, frame: pd.DataFrame) -> list[Finding]:
        """One finding for each client and topic; undecided where nothing was measured."""
        measured = frame[frame[self.column].notna()]
        if measured.empty:
            return [missing_metrics(self.asked_at, f"No {self.name} was measured.")]
        above = measured[measured[self.column] > self.limit(measured, self.column)]
        return [
            failure(
                cluster=str(cluster),
                topic=str(topic),
                group="",
                state=self.state,
                cause=str(client) or "unknown client",
                starts_at=_hour(rows["hour"].min()),
                ends_at=None,
                because=(
                    f"{client or 'A client'} had a {self.name} of "
                    f"{rows[self.column].max():.3g}/s"
                    + (f" to topic {topic}" if topic else "")
                    + f" in {len(rows)} hour(s), the last {rows['hour'].max()}."
                ),
                count=len(rows),
                keys=keys_of(rows, _KEY),
                clients=texts([client]),
            )
            for (cluster, topic, client), rows in above.groupby(["cluster", "topic", "client_id"])
        ]


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


class ExpectFailedProduceRequestsExplained(DomainExpectation):
    """Brokers count no failed produce request that no client's log or metric speaks of."""

    thresholds: ClassVar[dict[str, float]] = {"failed_produce_requests": 0}

    def findings(self, frame: pd.DataFrame) -> list[Finding]:
        """One finding for each topic; undecided where brokers were not measured."""
        failed = frame["failed_produce_requests_total"]
        if not failed.notna().any():
            return [missing_metrics(self.asked_at, "No FailedProduceRequests were measured.")]
        above = frame[failed > self.limit(frame, "failed_produce_requests")]
        spoken = frame[frame[list(_EXPLAINING)].fillna(0).sum(axis=1) > 0]
        by_topic = set(spoken[["cluster", "topic", "hour"]].itertuples(index=False, name=None))
        by_hour = set(spoken[["cluster", "hour"]].itertuples(index=False, name=None))
        silent = [
            (r.cluster, r.hour) not in by_hour
            if r.topic == ""
            else (r.cluster, r.topic, r.hour) not in by_topic
            for r in above.itertuples()
        ]
        return [
            failure(
                cluster=str(cluster),
                topic=str(topic),
                group="",
                state="failed_produce_unexplained",
                cause="no_client_speaks_of_it",
                starts_at=_hour(rows["hour"].min()),
                ends_at=None,
                because=(
                    f"Brokers failed {rows['failed_produce_requests_total'].sum():.0f} produce "
                    f"request(s)" + (f" to topic {topic}" if topic else "") + ", and no client's "
                    "log or metric speaks of it: a client is not watched."
                ),
                count=len(rows),
                keys=keys_of(rows, _KEY),
            )
            for (cluster, topic), rows in above[silent].groupby(["cluster", "topic"])
        ]


def missing_metrics(asked_at: datetime, said: str) -> Finding:
    """The finding that metrics are not there."""
    return missing(
        cluster="",
        cause="no_metrics",
        starts_at=asked_at,
        because=f"{said} Collect client and broker metrics, or name `metrics` under "
        "`not_collected` in the policy file.",
        needs="metrics",
    )


def _hour(text: str) -> datetime:
    try:
        return datetime.strptime(text, "%Y-%m-%dT%H").replace(tzinfo=UTC)
    except ValueError:
        return datetime.fromtimestamp(0, UTC)
