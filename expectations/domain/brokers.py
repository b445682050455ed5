"""What brokers say of themselves: partitions without a leader, or without enough replicas."""

from __future__ import annotations

from collections.abc import Iterator
from datetime import datetime, timedelta
from typing import ClassVar

import pandas as pd

from acktrail.alerts.finding import Finding
from acktrail.contracts.vocabulary import Outcome
from expectations.domain.expectation import (
    DomainExpectation,
    instant,
    keys_of,
    missing,
    not_collected,
    number,
    texts,
)
from expectations.stretches import Stretch, above_zero

_KEY = ("instance", "metric", "at")
_APART = timedelta(seconds=60)


class BrokerExpectation(DomainExpectation):
    """Findings from samples of broker metrics; undecided where brokers were not measured."""

    def findings(self, frame: pd.DataFrame) -> list[Finding]:
        """What the samples show; undecided without any."""
        if frame.empty:
            return [
                missing(
                    cluster="",
                    cause="no_broker_metrics",
                    starts_at=self.asked_at,
                    because=not_collected("metrics", "No metrics of brokers"),
                    needs="metrics",
                )
            ]
        return list(self.found(frame))

    def found(self, frame: pd.DataFrame) -> Iterator[Finding]:
        """What is wrong in the samples, of which there are some."""
        raise NotImplementedError


class _GaugeAtZero(BrokerExpectation):
    """A number of partitions that must be 0, or be 0 again soon."""

    metric: ClassVar[str] = ""
    state: ClassVar[str] = ""
    allowed_s: ClassVar[str] = ""
    """The threshold for how long it may be above 0; empty: not at all."""
    said: ClassVar[tuple[str, str]] = ("", "")
    """Of one partition, and of several."""
    was: ClassVar[tuple[str, str]] = ("", "")
    fix: ClassVar[str] = ""

    def found(self, frame: pd.DataFrame) -> Iterator[Finding]:
        """One finding for each cluster and time."""
        own = frame[frame["metric"] == self.metric]
        for cluster, samples in own.groupby("cluster"):
            high = samples[samples["value"] > 0]
            allowed = timedelta(0)
            if self.allowed_s and len(high):
                allowed = timedelta(seconds=float(self.limit(high, self.allowed_s).iloc[0]))
            seen = [
                (instant(at, self.asked_at), str(instance), float(value))
                for at, instance, value in samples[["at", "instance", "value"]].itertuples(
                    index=False, name=None
                )
                if pd.notna(value)
            ]
            for stretch in above_zero(seen, self.asked_at):
                if (stretch.ends_at or self.asked_at) - stretch.starts_at >= allowed:
                    yield self._finding(str(cluster), stretch, high)

    def _finding(self, cluster: str, stretch: Stretch, high: pd.DataFrame) -> Finding:
        at = high["at"].map(lambda value: instant(value, self.asked_at))
        rows = high[(at >= stretch.starts_at) & (at <= stretch.last_at)]
        # Each broker counts the partitions that it leads: the cluster's number is their sum.
        count = int(rows.groupby("instance", dropna=False)["value"].max().sum())
        partitions = number(count, "partition")
        said, was = (text[count != 1] for text in (self.said, self.was))
        return Finding(
            outcome=Outcome.FAIL,
            cluster=cluster,
            topic="",
            group="",
            state=self.state,
            cause="",
            starts_at=stretch.starts_at,
            ends_at=stretch.ends_at,
            because=f"{partitions} of cluster {cluster} {said}.",
            what=f"{partitions} of cluster {cluster} {said}",
            past=f"{partitions} of cluster {cluster} {was}",
            fix=self.fix,
            count=count,
            keys=keys_of(rows, _KEY),
        )


class ExpectNoPartitionOffline(_GaugeAtZero):
    """Every partition has a leader."""

    metric: ClassVar[str] = "offline-partitions"
    state: ClassVar[str] = "partitions_offline"
    said: ClassVar[tuple[str, str]] = (
        "has no leader: nobody can write to or read from it",
        "have no leader: nobody can write to or read from them",
    )
    was: ClassVar[tuple[str, str]] = ("had no leader", "had no leader")
    fix: ClassVar[str] = (
        "Start a broker that was in sync for them. Do not allow an unclean election before you "
        "know what it would lose."
    )


class ExpectPartitionsAboveMinIsr(_GaugeAtZero):
    """Every partition has as many replicas in sync as min.insync.replicas asks for."""

    metric: ClassVar[str] = "under-min-isr-partitions"
    state: ClassVar[str] = "under_min_isr"
    said: ClassVar[tuple[str, str]] = (
        "is under min.insync.replicas: sends with acks=all are refused",
        "are under min.insync.replicas: sends with acks=all are refused",
    )
    was: ClassVar[tuple[str, str]] = (
        "was under min.insync.replicas",
        "were under min.insync.replicas",
    )
    fix: ClassVar[str] = "Bring the missing replicas back."


class ExpectPartitionsReplicated(_GaugeAtZero):
    """Every partition has all of its replicas in sync again within five minutes."""

    thresholds: ClassVar[dict[str, float]] = {"under_replicated_s": 300}
    metric: ClassVar[str] = "under-replicated-partitions"
    state: ClassVar[str] = "under_replicated"
    allowed_s: ClassVar[str] = "under_replicated_s"
    said: ClassVar[tuple[str, str]] = (
        "lacks a replica: the next broker that stops may cost messages",
        "lack a replica: the next broker that stops may cost messages",
    )
    was: ClassVar[tuple[str, str]] = ("lacked a replica", "lacked a replica")
    fix: ClassVar[str] = "Bring the missing replicas back before another broker stops."


class ExpectIsrStable(BrokerExpectation):
    """No broker shrinks the in-sync replicas of its partitions again and again within an hour."""

    thresholds: ClassVar[dict[str, float]] = {"isr_shrink_times": 3}

    def found(self, frame: pd.DataFrame) -> Iterator[Finding]:
        """One finding for each broker that does."""
        since = pd.Timestamp(self.asked_at - timedelta(hours=1))
        own = frame[(frame["metric"] == "isr-shrinks-total") & (frame["increase"] > 0)]
        own = own[own["at"] > since]
        own = own.assign(instance=own["instance"].fillna(""))
        for (cluster, instance), rows in own.groupby(["cluster", "instance"]):
            times = _apart(sorted(instant(at, self.asked_at) for at in rows["at"]))
            if len(times) < self.limit(rows.head(1), "isr_shrink_times").iloc[0]:
                continue
            brokers = texts(str(int(b)) for b in rows["broker"].dropna())
            who = f"Broker {brokers[0]}" if brokers else f"The broker at {instance}"
            shrinks = int(rows["increase"].sum())
            said = f"{number(shrinks, 'time')} at {number(len(times), 'moment')} within an hour"
            yield Finding(
                outcome=Outcome.FAIL,
                cluster=str(cluster),
                topic="",
                group="",
                state="isr_flapping",
                cause=brokers[0] if brokers else str(instance),
                starts_at=times[0],
                ends_at=None,
                because=f"{who} removed replicas from the in-sync set {said}.",
                what=f"{who} removes replicas from the in-sync set again and again",
                past=f"{who} removed replicas from the in-sync set {said}",
                fix="Look at the followers: their disks, their pauses, and the network to them.",
                count=shrinks,
                keys=keys_of(rows, _KEY),
                brokers=brokers,
            )


def _apart(times: list[datetime]) -> list[datetime]:
    """Those that are more than a minute after the one before: one broker that stops is one time."""
    found: list[datetime] = []
    last: datetime | None = None
    for at in times:
        if last is None or at - last > _APART:
            found.append(at)
        last = at
    return found
