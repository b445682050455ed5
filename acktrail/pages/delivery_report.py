"""The report: ten views in one file that needs nothing else, of a size that is bounded."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, fields, replace
from datetime import timedelta

from acktrail.answers import (
    burning,
    check_history,
    evidence,
    partitions,
    readers,
    reliability,
    strips,
)
from acktrail.answers import rates as rate_answers
from acktrail.answers.inquiry import Inquiry
from acktrail.answers.losses import events_where
from acktrail.answers.lost import Ledger, Lost
from acktrail.answers.lost import ledger as ledger_of
from acktrail.answers.lost import lost as losses_of
from acktrail.answers.many import Row, top
from acktrail.answers.timeline import timeline_of
from acktrail.contracts.gold import LOSS_EVENTS
from acktrail.lake import Lake
from acktrail.pages.document import page
from acktrail.pages.html import Html, join, tag
from acktrail.pages.parts import section
from acktrail.pages.views import (
    budgets,
    checks,
    clients,
    coverage,
    groups,
    incidents,
    ledger,
    verdict,
)
from acktrail.pages.views import rates as rate_view
from acktrail.pages.words import moment
from acktrail.policy.model import Policy
from acktrail.retries.fleet import Burning

LARGEST = 2_000_000
"""Bytes of a report."""
AROUND = timedelta(seconds=60)
"""How much of the time around an incident its timeline has."""
_LOSSES = 500
"""Ranges of an incident that its timeline names, at most."""
VIEWS = (
    ("#verdict", "Verdict"),
    ("#incidents", "Incidents"),
    ("#rates", "Rates"),
    ("#budgets", "Budgets"),
    ("#ledger", "Ledger"),
    ("#offsets", "Offsets"),
    ("#producers", "Producers"),
    ("#groups", "Groups"),
    ("#coverage", "Coverage"),
    ("#checks", "Checks"),
)


@dataclass(frozen=True)
class Limits:
    """How much of each kind a page shows; what is left out is counted."""

    incidents: int = 20
    stories: int = 6
    """Incidents with a timeline."""
    events: int = 150
    series: int = 8
    budgets: int = 40
    accounts: int = 60
    strips: int = 12
    clients: int = 40
    columns: int = 72
    producers: int = 200
    groups: int = 40
    readers: int = 200
    sources: int = 40
    checks: int = 60

    def halved(self) -> Limits:
        """Half as much of everything."""
        return replace(self, **{f.name: max(1, getattr(self, f.name) // 2) for f in fields(self)})


@dataclass(frozen=True)
class Facts:
    """Every answer that the views show."""

    asked: Inquiry
    seen: evidence.EvidenceSeen
    lost: Lost
    ledger: Ledger
    budgets: burning.Budgets
    faults: partitions.Faults
    rates: Sequence[rate_answers.RateChart]
    strips: tuple[list[strips.Strip], int]
    hours: Sequence[reliability.ClientHours]
    producers: Sequence[reliability.KnownProducer]
    readers: Sequence[readers.Reader]
    checks: check_history.Checks
    stories: dict[str, incidents.Story]


def facts(
    lake: Lake, asked: Inquiry, policy: Policy, limits: Limits, incident: str | None = None
) -> Facts:
    """Ask the lake for everything that a report shows."""
    found = losses_of(lake, asked, limits.incidents, incident)
    faults = partitions.faults(lake, asked)
    hours = reliability.client_hours(lake, asked)
    return Facts(
        asked=asked,
        seen=evidence.evidence_seen(lake, asked),
        lost=found,
        ledger=ledger_of(lake, asked),
        budgets=burning.budgets(lake, asked, policy, 2_000),
        faults=faults,
        rates=rate_answers.rates(lake, asked, limits.series),
        strips=strips.strips(lake, asked, faults, limits.strips),
        hours=hours,
        producers=reliability.producers(lake, asked, hours),
        readers=readers.readers(lake, asked),
        checks=check_history.checks(lake, asked),
        stories={
            one["incident"]: story(lake, asked, one)
            for one in found.incidents.rows[: limits.stories]
        },
    )


def story(lake: Lake, asked: Inquiry, incident: Row) -> incidents.Story:
    """What happened around *incident*."""
    where = events_where(incident)
    order = [("count", "descending"), ("session", "ascending"), ("first_seq", "ascending")]
    losses = top(lake, LOSS_EVENTS, where, LOSS_EVENTS.names, order, _LOSSES)
    events = timeline_of(lake, incident, losses.rows, AROUND)
    near = Inquiry(asked.since, asked.until, asked.as_of, incident["cluster"], incident["topic"])
    if incident["started_at"] is not None:
        near = replace(
            near,
            since=incident["started_at"] - AROUND,
            until=(incident["ended_at"] or incident["started_at"]) + AROUND,
        )
    return incidents.Story(incident, events, partitions.faults(lake, near), losses.left_out)


def most_urgent(found: burning.Budgets) -> dict[tuple[str, str], Burning]:
    """Of each client the most urgent budget that has not ended."""
    ends: dict[tuple[str, str], Burning] = {}
    for one in found.listed:
        if found.as_of is not None and one.state(found.as_of) in burning.ALIVE[1:4]:
            ends.setdefault((one.cluster, one.client_id), one)
    return ends


def report(lake: Lake, asked: Inquiry, policy: Policy, incident: str | None = None) -> str:
    """The report as text of at most LARGEST bytes."""
    limits = Limits()
    with lake.one_look():
        found = facts(lake, asked, policy, limits, incident)
    text = render(found, limits)
    while len(text.encode()) > LARGEST and limits != limits.halved():
        limits = limits.halved()
        text = render(found, limits)
    return text


def render(found: Facts, limits: Limits) -> str:
    """The page of *found*, with at most *limits* of each kind."""
    asked = found.asked
    named = [str(v) for v in (asked.cluster, asked.topic, asked.client_id) if v is not None]
    clusters = sorted({str(row["cluster"]) for row in found.seen.hours})
    of = ", ".join(named or clusters[:5]) or "an empty lake"
    title = f"acktrail: delivery report of {of}"
    header = join(
        tag("h1", "Delivery report: ", of),
        tag("p", f"{moment(asked.since)} to {moment(asked.until)}, asked at {moment(asked.as_of)}"),
    )
    lost_rows = found.lost.incidents.rows
    cards = replace(
        found.lost, incidents=replace(found.lost.incidents, rows=lost_rows[: limits.incidents])
    )
    stories = dict(list(found.stories.items())[: limits.stories])
    reliable = reliability.HourColumns.over(asked.since, asked.until, limits.columns)
    short = reliability.HourColumns.over(asked.since, asked.until, 24)
    ends = most_urgent(found.budgets)
    body = join(
        verdict.verdict(found.lost, found.ledger, found.budgets, found.checks, found.seen),
        incidents.incidents(cards, stories, limits.events),
        rate_view.rates(asked, [_fewer(r, limits.series) for r in found.rates], found.faults),
        budgets.budgets(found.budgets, limits.budgets),
        ledger.ledger(found.ledger, limits.accounts),
        _strips(found, limits),
        clients.heat_map(asked, found.hours, limits.clients, len(reliable.starts)),
        _producers(found, ends, limits, short),
        groups.groups(found.readers, limits.groups, limits.readers),
        coverage.coverage(asked, found.seen, limits.sources, limits.columns),
        checks.checks(found.checks, limits.checks),
    )
    return page(title, header, VIEWS, body)


def _fewer(rate: rate_answers.RateChart, most: int) -> rate_answers.RateChart:
    more = max(0, len(rate.series) - most)
    return replace(rate, series=rate.series[:most], left_out=rate.left_out + more)


def _strips(found: Facts, limits: Limits) -> Html:
    drawn, more = found.strips
    return ledger.strips(drawn[: limits.strips], more + max(0, len(drawn) - limits.strips))


def _producers(
    found: Facts,
    ends: dict[tuple[str, str], Burning],
    limits: Limits,
    columns: reliability.HourColumns,
) -> Html:
    as_of = found.budgets.as_of or found.asked.as_of
    return section(
        "producer-list",
        "Producers, one by one",
        "Each with its guarantee, rates, budget and losses.",
        clients.producer_table(found.producers, ends, limits.producers, columns, as_of),
    )
