"""Which clusters and topics the lake has evidence of, audited or not."""

from __future__ import annotations

from collections.abc import Iterable

from acktrail.contracts import Table
from acktrail.contracts.bronze import (
    AUDIT_REPORTS,
    CLUSTER_STATES,
    GROUP_OFFSETS,
    LOG_RECORDS,
    METRIC_SAMPLES,
)
from acktrail.contracts.gold import DELIVERY_LEDGER, LOSS_INCIDENTS, RETRY_BUDGETS
from acktrail.contracts.silver import (
    BROKER_EVENTS,
    BROKER_METRICS,
    CLIENT_METRICS,
    CONSUMER_EVENTS,
    PRODUCER_EVENTS,
)
from acktrail.errors import UsageError
from acktrail.lake import Lake
from acktrail.nearest import did_you_mean

_WITH_TOPICS = (
    *(AUDIT_REPORTS, CLUSTER_STATES, GROUP_OFFSETS, PRODUCER_EVENTS, CONSUMER_EVENTS),
    *(BROKER_EVENTS, CLIENT_METRICS, BROKER_METRICS, RETRY_BUDGETS, DELIVERY_LEDGER),
    LOSS_INCIDENTS,
)
_WITHOUT_TOPICS = (LOG_RECORDS, METRIC_SAMPLES)
_READ_BY_RUN = {LOG_RECORDS: PRODUCER_EVENTS, METRIC_SAMPLES: CLIENT_METRICS}
"""Raw evidence, and the table in which `acktrail run` writes which topics it names."""
_SHOWN = 3

Place = tuple[str, str]
"""Cluster and topic; the topic is empty where a row names only the cluster."""


def require_known(lake: Lake, cluster: str | None, topic: str | None) -> None:
    """UsageError where no row of the lake names *cluster*, or *topic* in it; None: any."""
    places = _known_places(lake)
    clusters = {name for name, _ in places}
    if cluster is not None and cluster not in clusters:
        raise UsageError(
            f"No evidence in this lake names cluster {cluster}.{near(cluster, clusters)}"
        )
    topics = {name for where, name in places if name and cluster in (None, where)}
    if topic is not None and topic not in topics:
        place = "this lake" if cluster is None else f"this lake from cluster {cluster}"
        raise UsageError(
            f"No evidence in {place} names topic {topic}.{near(topic, topics)}{_not_searched(lake)}"
        )


def near(name: str, known: Iterable[str]) -> str:
    """A sentence with the *known* names that look like *name*; else with some of them."""
    names = sorted(known)
    if not names:
        return " It names none at all."
    if meant := did_you_mean(name, names):
        return meant
    more = "" if len(names) <= _SHOWN else f" and {len(names) - _SHOWN} more"
    return f" Known: {', '.join(names[:_SHOWN])}{more}."


def _known_places(lake: Lake) -> set[Place]:
    found: set[Place] = set()
    for table in _WITH_TOPICS:
        found |= _places(lake, table, ("cluster", "topic"))
    for table in _WITHOUT_TOPICS:
        found |= _places(lake, table, ("cluster",))
    return found


def _places(lake: Lake, table: Table, columns: tuple[str, ...]) -> set[Place]:
    rows = lake.read(table, None, columns).group_by(list(columns)).aggregate([]).to_pylist()
    return {(row["cluster"] or "", row.get("topic") or "") for row in rows}


def _not_searched(lake: Lake) -> str:
    unread = [
        raw.name for raw, made in _READ_BY_RUN.items() if lake.exists(raw) and not lake.exists(made)
    ]
    if not unread:
        return ""
    return f" {' and '.join(unread)} could not be searched yet: run `acktrail run` first."
