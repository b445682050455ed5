"""View 7: clients hour by hour; and the list of producers, each with what is known of it."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from datetime import UTC, datetime

from acktrail.answers.inquiry import Inquiry
from acktrail.answers.reliability import ClientHours, HourColumns, KnownProducer, worst_level
from acktrail.links import CLIENT, anchor
from acktrail.pages.html import Child, Html, join, tag
from acktrail.pages.parts import (
    badge,
    chart,
    details,
    empty,
    left_out,
    legend,
    row,
    section,
    table,
    to,
)
from acktrail.pages.svg import AxisTick, Cell, Scale, axis, few, matrix
from acktrail.pages.words import GUARANTEES, count, rate, span
from acktrail.retries.fleet import Burning
from acktrail.retries.state import BudgetState

LEVEL_WORDS = {
    "clean": "clean",
    "retries": "retries",
    "failures": "failed sends",
    "lost": "messages lost",
    "none": "no evidence",
}
_LEGEND = (
    ("clean", "clean"),
    ("retries", "retries"),
    ("failures", "failed sends"),
    ("lost", "messages lost"),
    ("gap", "no evidence"),
)
Ends = Mapping[tuple[str, str], Burning]
"""The most urgent live budget of each cluster and client."""


def heat_map(asked: Inquiry, clients: Sequence[ClientHours], most: int, most_columns: int) -> Html:
    """Client by hour; the higher and darker a cell, the worse."""
    title = "Producers, hour by hour"
    if not clients:
        return section(
            "producers",
            title,
            "No producer is known in this window.",
            empty("Producers are known by logs, metrics or audits: docs/agents.md."),
        )
    columns = HourColumns.over(asked.since, asked.until, most_columns)
    shown = clients[:most]
    rows = [row(to(CLIENT, c.client_id), history(c, columns), _sums(c)) for c in shown]
    bad = sum(1 for c in clients if c.lost)
    failing = sum(1 for c in clients if not c.lost and (c.failures or c.error_rate))
    also = f", {failing:,} more with failed sends" if failing else ""
    lede = f"{count(len(clients), 'producer')}: {bad:,} with losses{also}."
    each = "an hour" if columns.hours == 1 else f"{columns.hours} hours"
    more = len(clients) - len(shown)
    return section(
        "producers",
        title,
        lede,
        chart(
            "Producers, hour by hour",
            *rows,
            row(f"UTC, a cell is {each}", hour_axis(columns)),
            kind="map",
        ),
        legend(*_LEGEND),
        left_out(f"{count(more, 'better producer')} not drawn.") if more else None,
    )


def history(client: ClientHours | None, columns: HourColumns) -> Html:
    """One client's row of the map."""
    cells = []
    for start, hours in zip(columns.starts, columns.names, strict=True):
        level = None if client is None else worst_level(client.levels, hours)
        title = (
            f"{start:%m-%d %H:%M}Z {LEVEL_WORDS[level or 'none']}"
            if level not in (None, "clean")
            else ""
        )
        cells.append(Cell(level or "none", title))
    name = "" if client is None else client.client_id
    worst = worst_level(client.levels, list(client.levels)) if client else None
    return matrix(f"{name}: at worst {LEVEL_WORDS[worst or 'none']}", cells)


def hour_axis(columns: HourColumns) -> Html:
    """The hours below a map."""
    scale = Scale(0, len(columns.starts))
    every = max(1, -(-len(columns.starts) // 6))
    ticks = [
        AxisTick(
            number, f"{start:%m-%d}" if start.hour == 0 or columns.hours >= 24 else f"{start:%H:%M}"
        )
        for number, start in enumerate(columns.starts)
        if number % every == 0
    ]
    return axis(scale, ticks, "Hours, UTC", few(len(columns.starts)))


def _sums(client: ClientHours) -> str:
    if client.lost:
        return f"{client.lost:,} lost"
    if client.error_rate:
        return f"{rate(client.error_rate)} errors"
    if client.retry_rate:
        return f"{rate(client.retry_rate)} retries"
    return "clean" if client.levels else "not seen"


def producer_table(
    found: Sequence[KnownProducer],
    ends: Ends,
    most: int,
    columns: HourColumns,
    as_of: datetime,
) -> Html:
    """Each producer with guarantee, rates, budget, losses and history."""
    if not found:
        return empty("No producer was seen in this window.")
    rows = []
    ids = []
    used: set[str] = set()
    for one in found[:most]:
        hours = one.hours
        rows.append(
            (
                join(to(CLIENT, one.client_id or "unknown"), _hosts(one)),
                _guarantee(one),
                f"{hours.lost:,}"
                if hours and hours.sent is not None
                else tag("span", "not audited", class_="muted"),
                _measured(hours.error_rate if hours else None),
                _measured(hours.retry_rate if hours else None),
                _end(ends.get((one.cluster, one.client_id)), as_of),
                history(hours, columns),
            )
        )
        name = anchor(CLIENT, one.client_id or "unknown")
        ids.append("" if name in used else name)
        used.add(name)
    names = (
        "Producer",
        "Guarantee",
        "Lost#",
        "Errors, highest#",
        "Retries, highest#",
        "Budget",
        "History",
    )
    more = len(found) - len(rows)
    return tag(
        "div",
        table("Producers, the worst first", names, rows, ids),
        legend(*_LEGEND),
        left_out(f"{count(more, 'better producer')} not listed.") if more else None,
        class_="producers",
    )


def _measured(value: float | None) -> Child:
    return tag("span", "not measured", class_="muted") if value is None else rate(value)


def _hosts(one: KnownProducer) -> Html | None:
    if not one.hosts:
        return None
    more = len(one.hosts) - 2
    text = ", ".join(one.hosts[:2]) + (f" and {more} more" if more > 0 else "")
    return tag("span", text, class_="muted under")


def _guarantee(one: KnownProducer) -> Child:
    if one.guarantee is None:
        return tag("span", "settings not seen", class_="muted")
    acks = one.settings.get("acks")
    limit = one.settings.get("delivery_timeout_ms")
    words = GUARANTEES.get(one.guarantee, one.guarantee).partition(":")[0]
    said = [f"acks={acks}"] if acks is not None else []
    said += [f"{limit / 1000:g} s to deliver"] if limit else []
    badged = badge(_STRENGTH.get(one.guarantee, "unknown"), words)
    return join(badged, tag("span", ", ".join(said), class_="muted under") if said else None)


_STRENGTH = {
    "none": "bad",
    "at_most_once": "warn",
    "at_least_once": "ok",
    "exactly_once_per_partition": "ok",
}


def _end(one: Burning | None, as_of: datetime) -> Child:
    if one is None:
        return ""
    state = one.state(as_of)
    end = one.budget.exhausts_at_earliest
    if state not in (BudgetState.CRITICAL, BudgetState.BURNING) or end is None:
        return badge("unknown", "retrying")
    left = tag(
        "span",
        span(end - as_of),
        data_until=round(end.astimezone(UTC).timestamp() * 1000),
        data_words="",
    )
    return join(badge("bad" if state is BudgetState.CRITICAL else "warn", "ends in"), " ", left)


def clients_table(clients: Sequence[ClientHours], most: int) -> Html:
    """The map as a table."""
    rows = [
        (
            c.client_id,
            "" if c.sent is None else f"{c.sent:,}",
            f"{c.lost:,}",
            rate(c.error_rate),
            rate(c.retry_rate),
            f"{c.retry_lines:,}",
            f"{c.failures:,}",
        )
        for c in clients[:most]
    ]
    names = (
        "Client",
        "Sent#",
        "Lost#",
        "Errors, highest#",
        "Retries, highest#",
        "Retries in logs#",
        "Failed sends in logs#",
    )
    return details("The producers as a table", table("Producers", names, rows))
