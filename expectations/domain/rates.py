"""What the metrics say of producers, beside what their logs say."""

from __future__ import annotations

from collections.abc import Iterator
from datetime import datetime, timedelta
from typing import ClassVar

import pandas as pd

from acktrail.alerts.finding import Finding
from acktrail.contracts.vocabulary import Outcome
from expectations.domain.expectation import (
    DomainExpectation,
    clock,
    hour_start,
    keys_of,
    missing,
    not_collected,
    texts,
)
from expectations.rate_samples import ERRORS, RETRIES
from expectations.stretches import RECOVERED, Stretch, stretches

_KEY = ("client_id", "topic", "hour")
_HOUR = timedelta(hours=1)
_MOMENT = timedelta(seconds=1)


class _RateWithinBounds(DomainExpectation):
    """A rate of each client stays at or below its bound in every hour of the window."""

    column: ClassVar[str] = ""
    samples: ClassVar[str] = ""
    state: ClassVar[str] = ""
    name: ClassVar[str] = ""
    fix: ClassVar[str] = ""

    def findings(self, frame: pd.DataFrame) -> list[Finding]:
        """One for each client, topic and time; undecided where nothing was measured."""
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
        bounds = self.limit(above, self.column)
        return [
            finding
            for (cluster, topic, client), rows in above.groupby(["cluster", "topic", "client_id"])
            for finding in self._stretches(
                (str(cluster), str(topic), str(client)), rows, bounds.loc[rows.index]
            )
        ]

    def _stretches(
        self, place: tuple[str, str, str], rows: pd.DataFrame, bounds: pd.Series
    ) -> Iterator[Finding]:
        """One finding for each time that the rate was high."""
        samples = []
        for (_, row), bound in zip(rows.iterrows(), bounds, strict=True):
            listed = row[self.samples] if self.samples in rows.columns else []
            above = [(at, value) for at, value in listed if value > bound]
            start = hour_start(row["hour"], self.asked_at)
            end = min(start + _HOUR - _MOMENT, max(start, self.asked_at))
            # Where the samples are not kept any more, the whole hour counts.
            samples += above or [(start, row[self.column]), (end, row[self.column])]
        whole = not any(self.samples in rows.columns and len(v) for v in rows.get(self.samples, ()))
        times = [at for at, _ in samples]
        found = _hours_of(times, self.asked_at) if whole else stretches(times, self.asked_at)
        for stretch in found:
            highest = max(v for at, v in samples if stretch.starts_at <= at <= stretch.last_at)
            yield self._finding(place, stretch, float(highest), rows)

    def _finding(
        self, place: tuple[str, str, str], stretch: Stretch, highest: float, rows: pd.DataFrame
    ) -> Finding:
        cluster, topic, client = place
        where = f" on topic {topic}" if topic else ""
        who = client or "A client without a name"
        rate = (
            f"{who} {'had' if stretch.ends_at else 'has'} a {self.name} of up to {_rate(highest)}/s"
        )
        when = f"{clock(stretch.starts_at)} to {clock(stretch.last_at)}"
        return Finding(
            outcome=Outcome.FAIL,
            cluster=cluster,
            topic=topic,
            group="",
            state=self.state,
            cause=client or "unknown client",
            starts_at=stretch.starts_at,
            ends_at=stretch.ends_at,
            because=f"{rate}{where}, seen from {when}.",
            what=f"{rate}{where}",
            past=f"{who} had a {self.name} of up to {_rate(highest)}/s{where}",
            fix=self.fix,
            count=len(rows),
            keys=keys_of(rows, _KEY),
            clients=texts([client]),
        )


def _hours_of(times: list[datetime], asked_at: datetime) -> list[Stretch]:
    """One stretch from the first to the last of *times*: nothing in between is known."""
    first, last = min(times), max(times)
    return [Stretch(first, last, None if asked_at - last <= RECOVERED else last)]


class ExpectErrorRateWithinBounds(_RateWithinBounds):
    """The record-error-rate of every producer is within its bound."""

    thresholds: ClassVar[dict[str, float]] = {"error_rate_per_s": 0.0}
    column: ClassVar[str] = "error_rate_per_s"
    state: ClassVar[str] = "error_rate_high"
    name: ClassVar[str] = "record-error-rate"
    samples: ClassVar[str] = ERRORS
    fix: ClassVar[str] = (
        "Records were given up: find their errors in the application's log, and send them again."
    )


class ExpectRetryRateWithinBounds(_RateWithinBounds):
    """The record-retry-rate of every producer is within its bound."""

    thresholds: ClassVar[dict[str, float]] = {"retry_rate_per_s": 1.0}
    column: ClassVar[str] = "retry_rate_per_s"
    state: ClassVar[str] = "retry_rate_high"
    name: ClassVar[str] = "record-retry-rate"
    samples: ClassVar[str] = RETRIES
    fix: ClassVar[str] = (
        "Look at the brokers that the client sends to before it runs out of retries."
    )


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


def _rate(value: float) -> str:
    """`0.0123`, `5.88`, `1,460`."""
    return f"{value:,.0f}" if value >= 100 else f"{value:.3g}"
