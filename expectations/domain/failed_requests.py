"""Produce requests that brokers failed, and the clients that know of them.

Brokers count failures per topic, from the first one on, and for all topics together. A topic's
failures are explained by a client that is known to send to that topic. What the topics do not add
up to belongs to topics that are not exported: no client can be said to explain it.
"""

from __future__ import annotations

from collections.abc import Iterator
from datetime import datetime, timedelta
from typing import ClassVar

import pandas as pd

from acktrail.alerts.finding import Finding
from acktrail.contracts.vocabulary import Outcome
from acktrail.window import hour_of
from expectations.domain.expectation import (
    DomainExpectation,
    hour_start,
    keys_of,
    missing,
    number,
)
from expectations.domain.rates import missing_metrics
from expectations.rate_samples import FAILED
from expectations.stretches import stretches

_COUNT = "failed_produce_requests_total"
_EXPLAINING = (
    *("retry_lines", "expired_lines", "failure_lines"),
    *("errors_total", "retries_total", "lost"),
)
_BETWEEN = 0.1
"""The part of a total that its topics may lack: an exporter reads one counter after the other,
while requests go on failing."""
_HOUR = timedelta(hours=1)
_PLACE = ["cluster", "topic", "hour"]


class ExpectFailedProduceRequestsExplained(DomainExpectation):
    """Every topic on which brokers failed produce requests has a client that reports errors there.

    A client that reports errors without naming topics explains those it is known to send to. The
    hours before and after count too: brokers and clients are not measured at the same moment.
    """

    thresholds: ClassVar[dict[str, float]] = {"failed_produce_requests": 0}

    def findings(self, frame: pd.DataFrame) -> list[Finding]:
        """One finding for each topic; undecided where brokers or their topics were not measured."""
        if not frame[_COUNT].notna().any():
            return [missing_metrics(frame, self.asked_at)]
        # A topic's count stands beside each of its clients: it is one count all the same.
        failed = frame[frame[_COUNT].notna()].groupby(_PLACE)[_COUNT].max().reset_index()
        topics, whole = failed[failed["topic"] != ""], failed[failed["topic"] == ""]
        above = topics[topics[_COUNT] > self.limit(topics, "failed_produce_requests")]
        known = explained(frame)
        unknown = [place not in known for place in above[_PLACE].itertuples(index=False, name=None)]
        silent = above[pd.Series(unknown, index=above.index, dtype=bool)]
        return [*self._unexplained(silent, frame), *self._without_topic(whole, topics)]

    def _unexplained(self, silent: pd.DataFrame, frame: pd.DataFrame) -> Iterator[Finding]:
        """One for each topic and time; for its hours where the samples are not kept any more."""
        for (cluster, topic), rows in silent.groupby(["cluster", "topic"]):
            mine = frame[(frame["cluster"] == cluster) & (frame["topic"] == topic)]
            samples = _samples(mine[mine["hour"].isin(rows["hour"])])
            for stretch in stretches((at for at, _ in samples), self.asked_at):
                inside = [v for at, v in samples if stretch.starts_at <= at <= stretch.last_at]
                times = (stretch.starts_at, stretch.ends_at)
                yield _silence(str(cluster), str(topic), times, sum(inside), rows)
            if not samples:
                whole = (hour_start(rows["hour"].min(), self.asked_at), None)
                yield _silence(str(cluster), str(topic), whole, rows[_COUNT].sum(), rows)

    def _without_topic(self, whole: pd.DataFrame, topics: pd.DataFrame) -> Iterator[Finding]:
        """Failures that are in the total of all topics and in no topic's own count."""
        named = topics.groupby(["cluster", "hour"])[_COUNT].sum().rename("named").reset_index()
        rest = whole.merge(named, on=["cluster", "hour"], how="left").fillna({"named": 0.0})
        rest = rest.assign(rest=rest[_COUNT] - rest["named"])
        above = rest[rest["rest"] > self.limit(rest, "failed_produce_requests")]
        above = above[above["rest"] > _BETWEEN * above[_COUNT]]
        for cluster, rows in above.groupby("cluster"):
            yield missing(
                cluster=str(cluster),
                cause="failed_produce_topics_not_exported",
                starts_at=hour_start(rows["hour"].min(), self.asked_at),
                because=(
                    f"Brokers of {cluster} failed {rows['rest'].sum():.0f} produce requests on "
                    "topics that their metrics do not name, so it is not known whether a client "
                    "reports them. Export FailedProduceRequestsPerSec with its `topic` label."
                ),
                keys=keys_of(rows, ("hour",)),
            )


def _samples(rows: pd.DataFrame) -> list[tuple[datetime, float]]:
    """When failed requests were counted, and how many; an hour's list stands at each client."""
    if FAILED not in rows.columns:
        return []
    by_hour = rows.drop_duplicates("hour")[FAILED]
    return sorted((at, float(value)) for listed in by_hour for at, value in listed)


def _silence(
    cluster: str,
    topic: str,
    times: tuple[datetime, datetime | None],
    count: float,
    rows: pd.DataFrame,
) -> Finding:
    failed = f"Brokers failed {number(round(count), 'produce request')} on topic {topic}"
    said = f"{failed}, and no log or metric of a client reports errors there"
    return Finding(
        outcome=Outcome.FAIL,
        cluster=cluster,
        topic=topic,
        group="",
        state="failed_produce_unexplained",
        cause="client_not_watched",
        starts_at=times[0],
        ends_at=times[1],
        because=f"{said}. Collect the logs or metrics of the clients that send to it.",
        what=said,
        past=said,
        fix=f"Collect the logs or metrics of the clients that send to {topic}.",
        count=round(count),
        keys=keys_of(rows, ("topic", "hour")),
    )


def explained(frame: pd.DataFrame) -> set[tuple[str, str, str]]:
    """Cluster, topic and hour of which a client reports errors, with the hours beside them."""
    loud = frame[frame[list(_EXPLAINING)].fillna(0).sum(axis=1) > 0]
    found = {tuple(p) for p in loud[_PLACE].itertuples(index=False, name=None) if p[1] != ""}
    sends = frame[(frame["topic"] != "") & (frame["client_id"] != "")]
    everywhere = loud[(loud["topic"] == "") & (loud["client_id"] != "")]
    both = everywhere[["cluster", "client_id", "hour"]].merge(
        sends[["cluster", "client_id", "topic"]].drop_duplicates(), on=["cluster", "client_id"]
    )
    found |= {tuple(p) for p in both[_PLACE].itertuples(index=False, name=None)}
    return {(c, t, h) for cluster, t, hour in found for c, h in _beside(cluster, hour)}


def _beside(cluster: str, hour: str) -> Iterator[tuple[str, str]]:
    start = hour_start(hour, datetime.min)
    yield cluster, hour
    if start != datetime.min:
        yield cluster, hour_of(start - _HOUR)
        yield cluster, hour_of(start + _HOUR)
