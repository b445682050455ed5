"""Requests that brokers failed: seen without any client, by topic, broker and error."""

from __future__ import annotations

from collections.abc import Iterator
from typing import ClassVar

import pandas as pd

from acktrail.alerts.finding import Finding
from acktrail.contracts.vocabulary import Outcome
from acktrail.retries.fleet import NO_ERROR
from acktrail.retries.remedy import BRING_BACK, LACKS_REPLICAS
from expectations.domain.brokers import BrokerExpectation
from expectations.domain.expectation import instant, keys_of, number, texts
from expectations.stretches import Stretch, stretches

_KEY = ("instance", "metric", "topic", "at")
_OTHERS_FAULT = ("NOT_LEADER_OR_FOLLOWER", "UNKNOWN_TOPIC_OR_PARTITION", "UNKNOWN_TOPIC_ID")
"""Errors that are not counted as failed requests: clients ask the wrong broker, and go on."""


class _NoFailedRequests(BrokerExpectation):
    """A count of failed requests that does not grow."""

    metric: ClassVar[str] = ""
    request: ClassVar[str] = ""
    state: ClassVar[str] = ""
    noun: ClassVar[str] = ""
    fix: ClassVar[str] = ""

    def found(self, frame: pd.DataFrame) -> Iterator[Finding]:
        """One finding for each topic and time; for all topics together where none is named."""
        grown = frame[(frame["metric"] == self.metric) & (frame["increase"] > 0)]
        grown = grown.assign(topic=grown["topic"].fillna(""))
        named = set(grown.loc[grown["topic"] != "", "cluster"])
        own = grown[(grown["topic"] != "") | ~grown["cluster"].isin(named)]
        for (cluster, topic), rows in own.groupby(["cluster", "topic"]):
            times = rows["at"].map(lambda at: instant(at, self.asked_at))
            for stretch in stretches(times, self.asked_at):
                inside = rows[(times >= stretch.starts_at) & (times <= stretch.last_at)]
                if inside["increase"].sum() > self.limit(inside, "failed_requests").iloc[0]:
                    errors = self._errors(frame, str(cluster), stretch, inside)
                    yield self._finding(str(cluster), str(topic), stretch, inside, errors)

    def _errors(
        self, frame: pd.DataFrame, cluster: str, stretch: Stretch, inside: pd.DataFrame
    ) -> dict[str, int]:
        """What the same brokers answered at that time, the most frequent first."""
        answers = frame[
            (frame["metric"] == "request-errors-total")
            & (frame["request"] == self.request)
            & (frame["increase"] > 0)
            & (frame["cluster"] == cluster)
            & frame["instance"].isin(inside["instance"])
            & (frame["at"] >= pd.Timestamp(stretch.starts_at))
            & (frame["at"] <= pd.Timestamp(stretch.last_at))
            & ~frame["error"].isin((NO_ERROR, *_OTHERS_FAULT))
        ]
        counts = answers.groupby("error")["increase"].sum().sort_values(ascending=False)
        return {str(error): int(count) for error, count in counts.items()}

    def _finding(
        self,
        cluster: str,
        topic: str,
        stretch: Stretch,
        rows: pd.DataFrame,
        errors: dict[str, int],
    ) -> Finding:
        count = round(rows["increase"].sum())
        brokers = texts(str(int(b)) for b in rows["broker"].dropna())
        where = f" on topic {topic}" if topic else f" in cluster {cluster}"
        who = f"Broker {brokers[0]}" if len(brokers) == 1 else "Brokers"
        if len(brokers) > 1:
            who = f"Brokers {', '.join(brokers)}"
        why = ", ".join(list(errors)[:3])
        said = f"{number(count, self.noun)}{where}" + (f" ({why})" if why else "")
        lacks = next(iter(errors), "").startswith(LACKS_REPLICAS)
        return Finding(
            outcome=Outcome.FAIL,
            cluster=cluster,
            topic=topic,
            group="",
            state=self.state,
            cause=next(iter(errors), ""),
            starts_at=stretch.starts_at,
            ends_at=stretch.ends_at,
            because=f"{who} failed {said}.",
            what=f"{who} failed {said}",
            past=f"{who} failed {said}",
            fix=BRING_BACK if lacks else self.fix,
            count=count,
            keys=keys_of(rows, _KEY),
            brokers=() if lacks else brokers,
        )


class ExpectNoFailedProduceRequests(_NoFailedRequests):
    """No broker failed produce requests, whether or not a client reports it."""

    thresholds: ClassVar[dict[str, float]] = {"failed_requests": 10}
    metric: ClassVar[str] = "failed-produce-requests-total"
    request: ClassVar[str] = "Produce"
    state: ClassVar[str] = "failed_produce_requests"
    noun: ClassVar[str] = "produce request"
    fix: ClassVar[str] = "Look at the logs of these brokers, and at their disks and network."


class ExpectNoFailedFetchRequests(_NoFailedRequests):
    """No broker failed fetch requests of consumers or followers."""

    thresholds: ClassVar[dict[str, float]] = {"failed_requests": 10}
    metric: ClassVar[str] = "failed-fetch-requests-total"
    request: ClassVar[str] = "Fetch"
    state: ClassVar[str] = "failed_fetch_requests"
    noun: ClassVar[str] = "fetch request"
    fix: ClassVar[str] = "Look at the log and the disks of the brokers: they cannot read records."
