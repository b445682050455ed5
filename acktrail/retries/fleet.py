"""The fleet: which producers retry on which broker, how fast, and what brokers report.

A single chain is a batch's trouble. Many producers that retry on one broker with one error are that
broker's trouble, and one sentence says so.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from datetime import datetime

from acktrail.retries.budget import Budget
from acktrail.retries.burn import SHORT, Growth, Rates, added, rates
from acktrail.retries.state import DEFAULTS, BudgetState, Thresholds, state_of

BURNING = (BudgetState.CRITICAL, BudgetState.BURNING, BudgetState.UNKNOWN)

NO_ERROR = "NONE"
"""Brokers count answers without an error too."""


@dataclass(frozen=True)
class Burning:
    """One budget with the client it belongs to, and the thresholds that hold for it."""

    cluster: str
    host: str
    client_id: str
    budget: Budget
    thresholds: Thresholds = DEFAULTS

    def state(self, as_of: datetime) -> BudgetState:
        """Its state at *as_of*."""
        return state_of(self.budget, as_of, self.thresholds)


@dataclass(frozen=True)
class Level:
    """A gauge of a broker at a time."""

    cluster: str
    broker: str
    metric: str
    at: datetime
    value: float


@dataclass(frozen=True)
class FleetProducer:
    """One producer of a front, and how fast it retries."""

    client_id: str
    host: str
    chains: int
    critical: int
    first_exhausts_at: datetime | None
    retries: Rates
    errors: Rates

    @property
    def name(self) -> str:
        """Client id and, where known, host."""
        return f"{self.client_id}@{self.host}" if self.host else self.client_id


@dataclass(frozen=True)
class Front:
    """The producers that retry on one broker with one error."""

    cluster: str
    broker: int | None
    error: str
    producers: tuple[FleetProducer, ...]
    """The one that retries fastest first."""
    chains: int
    critical: int
    records_at_stake: int | None
    first_exhausts_at: datetime | None
    retries: Rates
    errors: Rates
    brokers: tuple[str, ...]
    """Whose metrics are joined: the broker's own, or all brokers' where none is known."""
    failed_produce: Rates
    answers: Mapping[str, Rates]
    """How often produce requests were answered with each error code, the front's own first."""
    under_min_isr: float | None
    under_min_isr_broker: str | None
    sentence: str = field(default="", compare=False)


@dataclass(frozen=True)
class Measured:
    """What the metrics of the last hour say."""

    clients: Sequence[Growth] = ()
    brokers: Sequence[Growth] = ()
    levels: Sequence[Level] = ()


def fronts_of(burning: Iterable[Burning], measured: Measured, as_of: datetime) -> list[Front]:
    """The fronts at *as_of*, the one that exhausts first on top."""
    grouped: dict[tuple[str, int | None, str], list[Burning]] = {}
    for one in burning:
        if one.budget.opened_at <= as_of and one.state(as_of) in BURNING:
            key = (one.cluster, one.budget.node, one.budget.error or "no answer")
            grouped.setdefault(key, []).append(one)
    everyone = [m for members in grouped.values() for m in members]
    owned = _owned(everyone, measured.clients)
    fronts = []
    for (cluster, broker, error), members in grouped.items():
        producers = _producers(members, owned, as_of)
        theirs = replace(
            measured,
            brokers=[g for g in measured.brokers if _concerns(g.cluster, g.who, cluster, broker)],
            levels=[v for v in measured.levels if _concerns(v.cluster, v.broker, cluster, broker)],
        )
        fronts.append(_front((cluster, broker, error), members, producers, theirs, as_of))
    far = datetime.max.replace(tzinfo=as_of.tzinfo)
    return sorted(fronts, key=lambda f: (f.first_exhausts_at or far, -len(f.producers), f.error))


def _concerns(of_cluster: str, who: str, cluster: str, broker: int | None) -> bool:
    return of_cluster == cluster and (broker is None or who == str(broker))


Client = tuple[str, str, str]
"""Cluster, client id, host."""


def _owned(burning: Sequence[Burning], growth: Sequence[Growth]) -> dict[Client, list[Growth]]:
    """The samples of each client that retries: of its host, or of the only host there is.

    A client id alone is not a name: every host has a `producer-1`.
    """
    by_id: dict[tuple[str, str], dict[str, list[Growth]]] = {}
    for one in growth:
        by_id.setdefault((one.cluster, one.who), {}).setdefault(one.host, []).append(one)
    hosts: dict[tuple[str, str], set[str]] = {}
    for member in burning:
        hosts.setdefault((member.cluster, member.client_id), set()).add(member.host)
    found: dict[Client, list[Growth]] = {}
    for who, burn_on in hosts.items():
        measured = by_id.get(who, {})
        alone = len(burn_on) == 1 and len(measured) == 1
        for host in burn_on:
            own = next(iter(measured.values())) if alone else measured.get(host, [])
            found[*who, host] = own
    return found


def _producers(
    members: Sequence[Burning], owned: Mapping[Client, Sequence[Growth]], as_of: datetime
) -> tuple[FleetProducer, ...]:
    """The producers of one front, the one that retries fastest first."""
    by_client: dict[Client, list[Burning]] = {}
    for m in members:
        by_client.setdefault((m.cluster, m.client_id, m.host), []).append(m)
    found = [
        FleetProducer(
            client_id=client[1],
            host=client[2],
            chains=len(own),
            critical=_critical(own, as_of),
            first_exhausts_at=_first_end(own),
            retries=rates(_of(owned[client], "record-retry-total"), as_of),
            errors=rates(_of(owned[client], "record-error-total"), as_of),
        )
        for client, own in by_client.items()
    ]
    return tuple(sorted(found, key=_burn))


def _burn(producer: FleetProducer) -> tuple[float, float, float, str]:
    per_s = [
        0.0 if rate is None else -rate.per_s
        for rate in (producer.retries.short, producer.errors.short, producer.retries.long)
    ]
    return per_s[0], per_s[1], per_s[2], producer.name


def _first_end(members: Sequence[Burning]) -> datetime | None:
    ends = [m.budget.exhausts_at_earliest for m in members if m.budget.exhausts_at_earliest]
    return min(ends, default=None)


def _critical(members: Sequence[Burning], as_of: datetime) -> int:
    return sum(m.state(as_of) is BudgetState.CRITICAL for m in members)


def _front(
    place: tuple[str, int | None, str],
    members: Sequence[Burning],
    producers: tuple[FleetProducer, ...],
    theirs: Measured,
    as_of: datetime,
) -> Front:
    cluster, broker, error = place
    stakes = [m.budget.records_at_stake for m in members if m.budget.records_at_stake is not None]
    worst = _highest(theirs.levels, "under-min-isr-partitions", as_of)
    front = Front(
        cluster=cluster,
        broker=broker,
        error=error,
        producers=producers,
        chains=len(members),
        critical=_critical(members, as_of),
        records_at_stake=sum(stakes) if stakes else None,
        first_exhausts_at=_first_end(members),
        retries=added(p.retries for p in producers),
        errors=added(p.errors for p in producers),
        brokers=tuple(sorted({g.who for g in theirs.brokers} | {v.broker for v in theirs.levels})),
        failed_produce=_of_brokers(_of(theirs.brokers, "failed-produce-requests-total"), as_of),
        answers=_answers(theirs.brokers, error, as_of),
        under_min_isr=None if worst is None else worst.value,
        under_min_isr_broker=None if worst is None else worst.broker,
    )
    return replace(front, sentence=sentence_of(front, as_of))


def _of(growth: Sequence[Growth], metric: str) -> list[Growth]:
    return [g for g in growth if g.metric == metric]


def _answers(growth: Sequence[Growth], error: str, as_of: datetime) -> dict[str, Rates]:
    """Every code that was answered lately: the *error* first, then the most frequent.

    A code's series begins with its first answer: any metric of the broker says it was looked at.
    """
    answers = [g for g in _of(growth, "request-errors-total") if g.error != NO_ERROR]
    found: dict[str, Rates] = {}
    for code in {g.error for g in answers if g.increase > 0}:
        found[code] = _of_brokers([g for g in answers if g.error == code], as_of, growth)
    often = {code: r.long.per_s if r.long else 0.0 for code, r in found.items()}
    return {c: found[c] for c in sorted(found, key=lambda c: (c != error, -often[c], c))}


def _of_brokers(
    growth: Sequence[Growth], as_of: datetime, measured: Sequence[Growth] | None = None
) -> Rates:
    """Each broker's rate over the time it was measured, added up."""
    seen = growth if measured is None else measured
    return added(
        rates([g for g in growth if g.who == who], as_of, [g for g in seen if g.who == who])
        for who in sorted({g.who for g in seen})
    )


def _highest(levels: Sequence[Level], metric: str, as_of: datetime) -> Level | None:
    """The highest of the brokers' newest answers within the short window."""
    newest: Mapping[str, Level] = {
        v.broker: v
        for v in sorted(levels, key=lambda v: v.at)
        if v.metric == metric and as_of - SHORT < v.at <= as_of
    }
    return max(newest.values(), key=lambda v: v.value, default=None)


def exhausts(end: datetime, as_of: datetime) -> str:
    """ "may give up in 71 s"."""
    left = (end - as_of).total_seconds()
    return "may give up at any moment" if left < 1 else f"may give up in {left:.0f} s"


def sentence_of(front: Front, as_of: datetime) -> str:
    """ "14 producers retry on broker 2, NOT_ENOUGH_REPLICAS, the first may give up in 71 s"."""
    count = len(front.producers)
    who = "1 producer retries" if count == 1 else f"{count} producers retry"
    where = "" if front.broker is None else f" on broker {front.broker}"
    said = [f"{who}{where}", front.error]
    end = front.first_exhausts_at
    known = end is not None and f"the first {exhausts(end, as_of)}"
    said.append(known or "when the first gives up is not known")
    if front.under_min_isr:
        # Where no broker is known, the one that says so is a hint.
        on = f" on broker {front.under_min_isr_broker}" if front.broker is None else ""
        said.append(f"{front.under_min_isr:.0f} partitions under min ISR{on}")
    return ", ".join(said)
