"""The pages of the live view: the views of the report, each asked for what it needs."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass

from acktrail.answers import (
    check_history,
    evidence,
    partitions,
    rates,
    readers,
    reliability,
    strips,
)
from acktrail.answers.burning import budgets as budgets_of
from acktrail.answers.inquiry import Inquiry
from acktrail.answers.lost import ledger as ledger_of
from acktrail.answers.lost import lost as losses_of
from acktrail.lake import Lake
from acktrail.pages.delivery_report import Limits, most_urgent, story
from acktrail.pages.html import Html, join, tag
from acktrail.pages.parts import section
from acktrail.pages.views import budgets, checks, clients, coverage, groups, incidents, ledger
from acktrail.pages.views import rates as rate_view
from acktrail.pages.views.verdict import verdict
from acktrail.policy.model import Policy

LIMITS = Limits(stories=2, budgets=60, producers=300)
_BUDGETS = 1_000


@dataclass(frozen=True)
class PageRequest:
    """What a page is asked."""

    lake: Lake
    asked: Inquiry
    policy: Policy
    incident: str | None = None


def producers(question: PageRequest) -> Html:
    """The page to start from: the verdict, then each producer; of one client everything."""
    lake, asked = question.lake, question.asked
    hours = reliability.client_hours(lake, asked)
    found = budgets_of(lake, asked, question.policy, _BUDGETS)
    lost = losses_of(lake, asked, LIMITS.incidents)
    known = reliability.producers(lake, asked, hours)
    columns = reliability.HourColumns.over(asked.since, asked.until, 24)
    table = clients.producer_table(
        known, most_urgent(found), LIMITS.producers, columns, found.as_of or asked.as_of
    )
    parts = [
        verdict(
            lost,
            ledger_of(lake, asked),
            found,
            check_history.checks(lake, asked),
            evidence.evidence_seen(lake, asked),
        ),
        section(
            "producers",
            "Producers",
            "Each with its guarantee, rates, budget, losses and history; the worst first.",
            table,
        ),
    ]
    if asked.client_id is not None or asked.topic is not None:
        faults = partitions.faults(lake, asked)
        shown = rates.rates(lake, asked, LIMITS.series)
        parts += [
            incidents.incidents(lost, {}, 0),
            budgets.budgets(found, LIMITS.budgets),
            rate_view.rates(asked, shown, faults),
        ]
    return join(parts)


def incident_page(question: PageRequest) -> Html:
    """Incidents with their timelines, offsets and accounts."""
    lake, asked = question.lake, question.asked
    lost = losses_of(lake, asked, LIMITS.incidents, question.incident)
    rows = lost.incidents.rows[: LIMITS.stories]
    stories = {one["incident"]: story(lake, asked, one) for one in rows}
    faults = partitions.faults(lake, asked)
    drawn, more = strips.strips(lake, asked, faults, LIMITS.strips)
    return join(
        incidents.incidents(lost, stories, LIMITS.events),
        ledger.strips(drawn, more),
        ledger.ledger(ledger_of(lake, asked), LIMITS.accounts),
    )


def budget_page(question: PageRequest) -> Html:
    """Retry budgets, counting down; and the rates behind them."""
    lake, asked = question.lake, question.asked
    found = budgets_of(lake, asked, question.policy, _BUDGETS)
    faults = partitions.faults(lake, asked)
    shown = rates.rates(lake, asked, LIMITS.series)
    return join(budgets.budgets(found, LIMITS.budgets), rate_view.rates(asked, shown, faults))


def group_page(question: PageRequest) -> Html:
    """Consumer groups."""
    return groups.groups(
        readers.readers(question.lake, question.asked), LIMITS.groups, LIMITS.readers
    )


def coverage_page(question: PageRequest) -> Html:
    """What was seen, and what was not."""
    seen = evidence.evidence_seen(question.lake, question.asked)
    return coverage.coverage(question.asked, seen, LIMITS.sources, LIMITS.columns)


def check_page(question: PageRequest) -> Html:
    """Checks and corrected verdicts."""
    return checks.checks(check_history.checks(question.lake, question.asked), LIMITS.checks)


PAGES: Mapping[str, tuple[str, Callable[[PageRequest], Html]]] = {
    "/": ("Producers", producers),
    "/incidents": ("Incidents", incident_page),
    "/budgets": ("Budgets", budget_page),
    "/groups": ("Groups", group_page),
    "/coverage": ("Coverage", coverage_page),
    "/checks": ("Checks", check_page),
}
"""Address to name and page."""


def problem(title: str, lines: Sequence[str]) -> Html:
    """What is said where there is no page."""
    return tag("section", tag("h2", title), *(tag("p", line) for line in lines))
