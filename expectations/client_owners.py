"""Whose a finding is that names clients and no topic: those clients' topics decide.

A lost connection, and a rate of a client as a whole, are about no topic. Their page goes to the
owner of the topics that the client writes to, where they have one owner, else to the default one.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING

import pyarrow.dataset as ds

from acktrail.alerts.finding import CheckResult, Finding
from acktrail.contracts.gold import PRODUCER_RELIABILITY, RETRY_BUDGETS
from acktrail.contracts.vocabulary import Outcome
from acktrail.policy import Policy
from acktrail.window import hour_of
from expectations.suite import Question

if TYPE_CHECKING:
    from acktrail.lake import Lake

Topics = Mapping[tuple[str, str], frozenset[str]]
"""By cluster and client id: the topics that the client writes to."""


def with_owners(
    lake: Lake, results: Sequence[CheckResult], policy: Policy, question: Question
) -> list[CheckResult]:
    """*results*, each finding without a topic with the owner that its clients' topics have."""
    open_ = [f for result in results for f in result.findings if _is_meant(f)]
    if not open_:
        return list(results)
    topics = topics_of(lake, {(f.cluster, c) for f in open_ for c in f.clients}, question)
    return [
        replace(r, findings=tuple(owned(f, topics, policy) for f in r.findings)) for r in results
    ]


def owned(finding: Finding, topics: Topics, policy: Policy) -> Finding:
    """*finding* with the owner of its clients' *topics*, where these have exactly one."""
    if not _is_meant(finding):
        return finding
    known = {t for c in finding.clients for t in topics.get((finding.cluster, c), ())}
    owners = {policy.owner_of(replace(finding, topic=topic)) for topic in known}
    return replace(finding, owner=owners.pop()) if len(owners) == 1 else finding


def _is_meant(finding: Finding) -> bool:
    return finding.outcome is Outcome.FAIL and not finding.topic and bool(finding.clients)


def topics_of(lake: Lake, clients: Iterable[tuple[str, str]], question: Question) -> Topics:
    """The topics that *clients* wrote to within the window, by metrics, lines and audits."""
    wanted = set(clients)
    named = ds.field("client_id").isin(sorted({client for _, client in wanted}))
    since = hour_of(question.since)
    found: dict[tuple[str, str], set[str]] = {}
    for table, hour in ((PRODUCER_RELIABILITY, "hour"), (RETRY_BUDGETS, "opened_hour")):
        columns = ["cluster", "client_id", "topic"]
        rows = lake.read(table, named & (ds.field(hour) >= since), columns).to_pylist()
        for row in rows:
            place = (row["cluster"], row["client_id"])
            if row["topic"] and place in wanted:
                found.setdefault(place, set()).add(row["topic"])
    return {place: frozenset(topics) for place, topics in found.items()}
