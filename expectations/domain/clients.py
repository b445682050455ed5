"""Whether logs, metrics and audits of one client are joined, or kept apart by host names.

A client that restarts under a new host or a new random id, prints nothing, or has no metrics is
not a mistake in any name. Only a client id that two kinds of evidence know, on hosts of which
none is the same, shows that names do not agree.
"""

from __future__ import annotations

import re
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
    texts,
)

_KINDS = ("logs", "metrics", "audits")
_UUID = r"[0-9a-f]{8}-(?:[0-9a-f]{4}-){3}[0-9a-f]{12}"
_RANDOM = re.compile(rf"[-_.#:](?:{_UUID}|[0-9a-f]{{8,40}}|\d+)(?=[-_.#:]|\Z)", re.IGNORECASE)
_DEFAULTS = frozenset(
    {
        *("producer", "consumer", "admin", "client", "rdkafka", "sarama", "kafkajs", "kgo"),
        *("console-producer", "perf-producer-client", "kafka-python-producer", "kafka-python"),
        *("confluent-kafka", "node-rdkafka", "default", ""),
    }
)
"""Names that libraries and tools give to every client: two hosts with one are two clients."""


def client_name(client_id: str) -> str:
    """*client_id* without random parts and counters: one name for all its restarts."""
    return _RANDOM.sub("", client_id)


class ExpectClientsMatchedAcrossSources(DomainExpectation):
    """No client id is known to two kinds of evidence under host names that do not agree."""

    thresholds: ClassVar[dict[str, float]] = {"unmatched_share": 0.05}

    def findings(self, frame: pd.DataFrame) -> list[Finding]:
        """One finding for each cluster with too many unmatched clients.

        Undecided where only one kind of evidence names clients: there is nothing to match.
        """
        if not frame.empty and len(_kinds(frame)) < 2:
            return [self._unmatchable("", frame)]
        found = []
        for cluster, clients in frame.groupby("cluster"):
            if len(_kinds(clients)) < 2:
                found.append(self._unmatchable(str(cluster), clients))
                continue
            apart, compared = _compared(clients)
            share = len(apart) / compared if compared else 0.0
            if share > self.limit(clients.head(1), "unmatched_share").iloc[0]:
                rows = clients[clients["client_id"].map(client_name).isin(apart)]
                found.append(self._finding(str(cluster), apart, compared, rows))
        return found

    def _finding(
        self, cluster: str, apart: dict[str, str], compared: int, rows: pd.DataFrame
    ) -> Finding:
        name, hosts = next(iter(apart.items()))
        return Finding(
            outcome=Outcome.FAIL,
            cluster=cluster,
            topic="",
            group="",
            state="clients_unmatched",
            cause="names_do_not_agree",
            starts_at=instant(rows["first_seen_at"].min(), self.asked_at),
            ends_at=None,
            because=(
                f"{len(apart)} of {compared} clients have host names that do not agree, e.g. "
                f"{name}: {hosts}. Add alias rules ([[aliases]] in the settings) that give "
                "them one host."
            ),
            count=len(apart),
            keys=keys_of(rows, ("client_id", "host", "session")),
            clients=texts(rows["client_id"]),
        )

    def _unmatchable(self, cluster: str, clients: pd.DataFrame) -> Finding:
        # The cause is that of every check without this kind: one thing missing is one alert.
        needs = "logs" if "metrics" in _kinds(clients) else "metrics"
        return missing(
            cluster=cluster,
            cause=f"no_{needs}",
            starts_at=self.asked_at,
            because=not_collected(needs),
            needs=needs,
        )


def _compared(clients: pd.DataFrame) -> tuple[dict[str, str], int]:
    """Client names whose hosts do not agree, with those hosts; how many could be compared."""
    apart: dict[str, str] = {}
    compared = 0
    for name, rows in clients.groupby(clients["client_id"].map(client_name)):
        hosts = {kind: set(rows[rows[f"in_{kind}"].astype(bool)]["host"]) for kind in _KINDS}
        seen = {kind: found for kind, found in hosts.items() if found}
        if len(seen) < 2 or str(name).lower() in _DEFAULTS:
            continue
        compared += 1
        if (rows[[f"in_{kind}" for kind in _KINDS]].sum(axis=1) < 2).all():
            apart[str(name)] = ", ".join(
                f"{sorted(found)[0] or 'no host'} in {kind}" for kind, found in seen.items()
            )
    return apart, compared


def _kinds(clients: pd.DataFrame) -> list[str]:
    """The kinds of evidence that name any of *clients*."""
    return [kind for kind in _KINDS if clients[f"in_{kind}"].any()]
