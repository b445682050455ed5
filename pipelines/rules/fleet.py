"""The fleet: which producers burn their budgets on which broker, how fast, and what brokers say.

A single chain is a batch's trouble. Many producers that burn on one broker with one error are that
broker's trouble, and one sentence says so.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime, timedelta

from pipelines.rules.budget import Budget, BudgetState, state_of

SHORT = timedelta(minutes=5)
LONG = timedelta(hours=1)
BURNING = (BudgetState.CRITICAL, BudgetState.BURNING, BudgetState.UNKNOWN)

NO_ERROR = "NONE"
"""Brokers count answers without an error too."""


@dataclass(frozen=True)
class Burning:
    """One budget with the client it belongs to."""

    cluster: str
    host: str
    client_id: str
    budget: Budget


@dataclass(frozen=True)
class Growth:
    """How much a total of a client or a broker grew up to *at*, in *elapsed*."""

    cluster: str
    who: str
    """Client id, or broker id as text."""
    metric: str
    at: datetime
    increase: float
    error: str = ""


@dataclass(frozen=True)
class Level:
    """A gauge of a broker at a time."""

    cluster: str
    broker: str
    metric: str
    at: datetime
    value: float


@dataclass(frozen=True)
class Rates:
    """A rate over the short and the long window; None where nothing was measured in it."""

    short_per_s: float | None = None
    long_per_s: float | None = None

    @property
    def rising(self) -> bool:
        """Whether it burns faster now than over the hour."""
        return (self.short_per_s or 0.0) > (self.long_per_s or 0.0)


@dataclass(frozen=True)
class Front:
    """The producers that burn on one broker with one error."""

    cluster: str
    broker: int | None
    error: str
    producers: tuple[str, ...]
    chains: int
    critical: int
    records_at_stake: int | None
    first_exhausts_at: datetime | None
    retries: Rates
    errors: Rates
    failed_produce: Rates
    answered_with_error: Rates
    under_min_isr: float | None
    sentence: str = field(default="", compare=False)


def fronts_of(
    burning: Iterable[Burning],
    client_growth: Sequence[Growth],
    broker_growth: Sequence[Growth],
    broker_levels: Sequence[Level],
    as_of: datetime,
) -> list[Front]:
    """The fronts at *as_of*, the one that exhausts first on top."""
    grouped: dict[tuple[str, int | None, str], list[Burning]] = {}
    for one in burning:
        if one.budget.opened_at <= as_of and state_of(one.budget, as_of) in BURNING:
            key = (one.cluster, one.budget.node, one.budget.error or "no answer")
            grouped.setdefault(key, []).append(one)
    fronts = []
    for (cluster, broker, error), members in grouped.items():
        clients = {m.client_id for m in members}
        ours = [g for g in client_growth if g.cluster == cluster and g.who in clients]
        theirs = [g for g in broker_growth if g.cluster == cluster and broker in (None, _id(g.who))]
        levels = [
            v for v in broker_levels if v.cluster == cluster and broker in (None, _id(v.broker))
        ]
        fronts.append(_front(cluster, broker, error, members, (ours, theirs, levels), as_of))
    far = datetime.max.replace(tzinfo=as_of.tzinfo)
    return sorted(fronts, key=lambda f: (f.first_exhausts_at or far, -len(f.producers), f.error))


def _id(text: str) -> int | None:
    return int(text) if text.lstrip("-").isdigit() else None


def _front(
    cluster: str,
    broker: int | None,
    error: str,
    members: Sequence[Burning],
    measured: tuple[Sequence[Growth], Sequence[Growth], Sequence[Level]],
    as_of: datetime,
) -> Front:
    ours, theirs, levels = measured
    producers = tuple(
        sorted({f"{m.client_id}@{m.host}" if m.host else m.client_id for m in members})
    )
    ends = [m.budget.exhausts_at_earliest for m in members if m.budget.exhausts_at_earliest]
    stakes = [m.budget.records_at_stake for m in members if m.budget.records_at_stake is not None]
    errors = [g for g in theirs if g.metric == "request-errors-total"]
    named = [g for g in errors if g.error == error] or [g for g in errors if g.error != NO_ERROR]
    front = Front(
        cluster=cluster,
        broker=broker,
        error=error,
        producers=producers,
        chains=len(members),
        critical=sum(state_of(m.budget, as_of) is BudgetState.CRITICAL for m in members),
        records_at_stake=sum(stakes) if stakes else None,
        first_exhausts_at=min(ends, default=None),
        retries=rates(_of(ours, "record-retry-total"), as_of),
        errors=rates(_of(ours, "record-error-total"), as_of),
        failed_produce=rates(_of(theirs, "failed-produce-requests-total"), as_of),
        answered_with_error=rates(named, as_of),
        under_min_isr=_highest(levels, "under-min-isr-partitions", as_of),
    )
    return Front(**{**front.__dict__, "sentence": sentence_of(front, as_of)})


def _of(growth: Sequence[Growth], metric: str) -> list[Growth]:
    return [g for g in growth if g.metric == metric]


def rates(growth: Sequence[Growth], as_of: datetime) -> Rates:
    """The growth per second over the last five minutes and the last hour."""
    found: dict[timedelta, float | None] = {}
    for window in (SHORT, LONG):
        within = [g.increase for g in growth if as_of - window < g.at <= as_of]
        found[window] = sum(within) / window.total_seconds() if within else None
    return Rates(found[SHORT], found[LONG])


def _highest(levels: Sequence[Level], metric: str, as_of: datetime) -> float | None:
    """The highest of the brokers' newest answers within the short window."""
    newest: Mapping[str, Level] = {
        v.broker: v
        for v in sorted(levels, key=lambda v: v.at)
        if v.metric == metric and as_of - SHORT < v.at <= as_of
    }
    return max((v.value for v in newest.values()), default=None)


def sentence_of(front: Front, as_of: datetime) -> str:
    """ "14 producers burn on broker 2, NOT_ENOUGH_REPLICAS, first exhausts in 71 s"."""
    count = len(front.producers)
    who = "1 producer burns" if count == 1 else f"{count} producers burn"
    where = "" if front.broker is None else f" on broker {front.broker}"
    said = [f"{who}{where}", front.error]
    if front.first_exhausts_at is None:
        said.append("when the first exhausts is not known")
    else:
        left = (front.first_exhausts_at - as_of).total_seconds()
        said.append(
            "first exhausts at any moment" if left < 1 else f"first exhausts in {left:.0f} s"
        )
    if front.under_min_isr:
        said.append(f"{front.under_min_isr:.0f} partitions under min ISR")
    return ", ".join(said)
