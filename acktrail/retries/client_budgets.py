"""From the rows of one client and one hour to its budgets: rows become what the rules take."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime, timedelta
from typing import Any, Final

from acktrail.aliases import host_of
from acktrail.kafka_defaults import DELIVERY_TIMEOUT_MS
from acktrail.logs.kafka_errors import retriable
from acktrail.retries.audited_chains import Audits
from acktrail.retries.budget import Budget, budgets_of
from acktrail.retries.client_sessions import is_audit_of, sessions_of
from acktrail.retries.client_settings import listed, settings_known
from acktrail.retries.error_counter import CounterSample
from acktrail.retries.signs import (
    CONNECTION_FAILURE,
    LONGEST,
    NO_LEADER,
    QUEUE_TIME,
    RETRY,
    SPLIT_RETRY,
    RetrySettings,
    Sign,
    settings_in_force,
)

SETTLING: Final = LONGEST + timedelta(minutes=15)
"""How long after its hour evidence still belongs to chains opened in it."""

QUEUE_SHARE: Final = 0.25
"""A queue time above this share of the delivery timeout opens a chain."""
QUEUE_MS: Final = int(QUEUE_SHARE * DELIVERY_TIMEOUT_MS)
"""The same where the delivery timeout is not known: a quarter of the default."""
LOWEST_QUEUE_MS: Final = 250
"""Below this no queue time matters, even to a delivery timeout of one second."""

LEADER_BUCKET_S: Final = 300
"""A partition's leader is looked up among the cluster's answers of the same five minutes."""

Place = tuple[str, str, int, int]
"""Cluster, topic, partition, number of the five minutes."""

LEADERLESS_BUCKET_S: Final = 10
"""To how many seconds the cluster's answers that there is no leader are rounded down."""


@dataclass(frozen=True)
class Leaders:
    """What the cluster reported about the partitions with signs."""

    known: Mapping[Place, int] = field(default_factory=dict)
    """Who led, in each five minutes."""
    without: Mapping[Place, Sequence[int]] = field(default_factory=dict)
    """When nobody led in each five minutes: epoch seconds."""
    replicas: Mapping[Place, Sequence[int]] = field(default_factory=dict)
    """The brokers that could lead, where nobody did."""


EVENT, CONFIG, ERRORS, RETRIES, QUEUE, AUDIT = (
    "event", "config", "errors", "retries", "queue", "audit",
)  # fmt: skip


@dataclass(frozen=True)
class ClientHour:
    """One client of one cluster, and the hour whose chains are wanted."""

    cluster: str
    client_id: str
    hour: datetime


def hours_concerned(at: datetime) -> list[datetime]:
    """The hours whose chains evidence of *at* can change."""
    own = at.replace(minute=0, second=0, microsecond=0)
    hours = [own, own + timedelta(hours=1)]
    if at - own < SETTLING:
        hours.insert(0, own - timedelta(hours=1))
    return hours


def budgets_of_hour(
    wanted: ClientHour,
    rows: Iterable[Mapping[str, Any]],
    inventory: Mapping[str, Mapping[str, str]],
    leaders: Leaders,
) -> list[tuple[str, Budget]]:
    """The budgets opened in the hour, each with its host. *rows* are tagged; see the fold.

    The broker behind an error that names none is the partition's leader at that time.
    """
    tagged: dict[str, list[Mapping[str, Any]]] = defaultdict(list)
    for row in rows:
        tagged[row["tag"]].append(row)
    by_host: dict[str, list[Mapping[str, Any]]] = defaultdict(list)
    for row in tagged[EVENT]:
        by_host[row["host"] or ""].append(row)
    hosts = sorted({*by_host, *_hosts_of_queues(tagged[QUEUE], sorted(by_host))})
    sessions = sessions_of(tagged[AUDIT])
    end = wanted.hour + timedelta(hours=1)
    found = []
    for host in hosts:
        audited = [s for s in sessions if is_audit_of(s, host, hosts, sessions)]
        known = settings_known(tagged[CONFIG], host, audited, listed(wanted.client_id, inventory))
        metrics = {
            tag: [r for r in tagged[tag] if _is_of(r, host, hosts, tagged[tag])]
            for tag in (ERRORS, RETRIES, QUEUE)
        }
        signs = [_sign(row, leaders.known, known) for row in by_host[host]]
        signs += _leaderless(signs, wanted.cluster, leaders)
        signs += _queue_signs(metrics[QUEUE], known)
        budgets = budgets_of(
            signs,
            known,
            errors=[_sample(r) for r in metrics[ERRORS]],
            audits=Audits(report for session in audited for report in session.reports),
            retried=[_sample(r) for r in metrics[RETRIES]],
        )
        found += [(host, b) for b in budgets if wanted.hour <= b.opened_at < end]
    return found


def _hosts_of_queues(queues: Sequence[Mapping[str, Any]], hosts: Sequence[str]) -> set[str]:
    """Where a client is known by its metrics alone, its target stands for the host."""
    return set() if hosts else {_measured_on(r) for r in queues}


def _is_of(
    row: Mapping[str, Any],
    host: str,
    hosts: Sequence[str],
    all_rows: Sequence[Mapping[str, Any]],
) -> bool:
    """Whether a sample is of this host's client: the only one there is, or the same name."""
    target = _measured_on(row)
    if target and target == host:
        return True
    return len(hosts) == 1 and len({_measured_on(r) for r in all_rows}) == 1


def _measured_on(row: Mapping[str, Any]) -> str:
    """The host of a sample: after the alias rules, as lines have it."""
    return row["host"] or host_of(row["instance"]) or ""


def _sign(
    row: Mapping[str, Any], leaders: Mapping[Place, int], known: Sequence[RetrySettings]
) -> Sign:
    """A row of `producer_events` as the rules take it.

    Whether its error is retried is decided by the version that the client printed, where it did.
    """
    at, origin, error = row["at"].astimezone(UTC), row["origin"] or "", row["error"]
    version = settings_in_force(known, at, origin).client_version
    decided = row["retriable"] if version is None or error is None else retriable(error, version)
    node = row["node"]
    if node is None and row["kind"] in (RETRY, SPLIT_RETRY):
        bucket = int(row["at"].timestamp()) // LEADER_BUCKET_S
        node = leaders.get((row["cluster"], row["topic"], row["partition"], bucket))
    return Sign(
        key=row["key"],
        kind=row["kind"],
        at=at,
        topic=row["topic"] or "",
        partition=-1 if row["partition"] is None else row["partition"],
        correlation_id=row["correlation_id"],
        attempts_left=row["attempts_left"],
        error=error,
        retriable=decided,
        category=row["category"],
        node=node,
        records=row["records"],
        elapsed_ms=row["elapsed_ms"],
        origin=origin,
        detail=row.get("detail"),
    )


def _leaderless(signs: Sequence[Sign], cluster: str, leaders: Leaders) -> list[Sign]:
    """The answers that nobody leads: a partition of these *signs*, or one of a broker in them."""
    places = {(cluster, s.topic, s.partition) for s in signs if s.topic}
    lost = {s.node for s in signs if s.kind == CONNECTION_FAILURE and s.node is not None}
    found = []
    for place, seconds in leaders.without.items():
        if place[0] != cluster:
            continue
        if place[:3] in places:
            found += [_no_leader(place, second) for second in seconds]
        for node in sorted(lost.intersection(leaders.replicas.get(place, ()))):
            found += [replace(_no_leader(place, second), node=node) for second in seconds]
    return found


def _no_leader(place: Place, second: int) -> Sign:
    _, topic, partition, _ = place
    key = f"cluster_states/{topic}-{partition}/{second}"
    at = datetime.fromtimestamp(second, UTC)
    return Sign(key, NO_LEADER, at, topic, partition)


def _sample(row: Mapping[str, Any]) -> CounterSample:
    at = row["at"].astimezone(UTC)
    since = at - timedelta(milliseconds=row["elapsed_ms"] or 0)
    # A process has a target of its own; two sources may both see it.
    series = f"{row['instance'] or ''} {row['key'].rpartition('/')[0]}"
    return CounterSample(row["key"], since, at, row["value"] or 0.0, series, row.get("total"))


def _queue_signs(rows: Sequence[Mapping[str, Any]], known: Sequence[RetrySettings]) -> list[Sign]:
    """Samples of record-queue-time-max that say a batch waited for long before its first send."""
    timeouts = [s.delivery_timeout_ms for s in known if s.delivery_timeout_ms is not None]
    bar = min(timeouts) * QUEUE_SHARE if timeouts else float(QUEUE_MS)
    return [
        Sign(
            key=row["key"],
            kind=QUEUE_TIME,
            at=row["at"].astimezone(UTC),
            elapsed_ms=int(row["value"]),
            origin=row["instance"] or "",
        )
        for row in rows
        if row["value"] is not None and row["value"] >= bar
    ]
