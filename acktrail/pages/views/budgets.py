"""View 4: retry budgets as fuses: from the first retry to the earliest and the latest end."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import datetime

from acktrail.answers.burning import Budgets
from acktrail.links import CLIENT
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
from acktrail.pages.svg import Scale, axis, band, lane, rule, time_scale, time_ticks
from acktrail.pages.words import BUDGET_WORDS, clock, count, moment, place, span
from acktrail.retries.fleet import Burning
from acktrail.retries.state import BudgetState

_HEIGHT = 24
_OVER = (BudgetState.RECOVERED, BudgetState.RESTARTED, BudgetState.ENDED_UNKNOWN)
_BADGES = {
    BudgetState.EXHAUSTED: "bad",
    BudgetState.CRITICAL: "bad",
    BudgetState.BURNING: "warn",
    BudgetState.UNKNOWN: "unknown",
    BudgetState.QUIET: "unknown",
    BudgetState.ENDED_UNKNOWN: "unknown",
    BudgetState.RESTARTED: "info",
    BudgetState.RECOVERED: "ok",
}


def budgets(found: Budgets, most: int) -> Html:
    """One bar per chain of retries, the most urgent first."""
    title = "Retry budgets"
    if not found.listed or found.as_of is None:
        return section(
            "budgets",
            title,
            "No producer retried a batch in this window, as far as logs and metrics show.",
            empty("A budget opens with the first sign of a retry: docs/budgets.md."),
        )
    as_of = found.as_of
    alive = [b for b in found.listed if b.state(as_of) not in _OVER]
    alive.sort(key=lambda b: b.state(as_of) is BudgetState.EXHAUSTED)  # what can be saved is first
    shown = (alive or found.listed)[:most]
    ends = [e for b in shown for e in (b.budget.exhausts_at_latest, b.budget.ended_at, as_of) if e]
    first = min(b.budget.opened_at for b in shown)
    scale = time_scale(first, max(ends))
    rows = [_fuse(scale, one, as_of) for one in shown]
    over = len(found.listed) - len(alive) if alive else 0
    more = len(found.listed) - over - len(shown) + found.left_out
    ticks = row(f"{first:%Y-%m-%d}, UTC", axis(scale, time_ticks(scale), "Time, UTC"))
    return section(
        "budgets",
        title,
        _lede(found),
        chart(f"Retry budgets at {moment(as_of)}", *rows, ticks, kind="fuses"),
        legend(
            ("spent", "spent"),
            ("fuse", "left, at least"),
            ("fuse-end", "may end anywhere here"),
            ("now", "the moment of asking"),
        ),
        left_out(
            f"{count(over, 'chain')} that recovered or ended some other way "
            f"{'is' if over == 1 else 'are'} not drawn."
        )
        if over
        else None,
        left_out(
            f"{count(more, 'less urgent chain')} not shown: "
            "`acktrail budgets --batches --all` lists them."
        )
        if more
        else None,
        details("The budgets as a table", _table(found.listed[: most * 2], as_of)),
    )


def _lede(found: Budgets) -> str:
    states = found.by_state()
    said = [f"{n:,} {BUDGET_WORDS[state]}" for state, n in sorted(states.items(), key=_urgent)]
    listed = count(len(found.listed), "chain")
    return (
        f"{listed} of retries: {'; '.join(said)}. A critical one can still be saved until its end."
    )


def _urgent(item: tuple[BudgetState, int]) -> int:
    return list(BudgetState).index(item[0])


def _who(one: Burning) -> Html:
    budget = one.budget
    where = place(budget.topic, budget.partition) if budget.topic else "its connection"
    name = to(CLIENT, one.client_id) if one.client_id else join("unknown client")
    return join(name, " ", tag("span", where, class_="muted"))


def _fuse(scale: Scale, one: Burning, as_of: datetime) -> Html:
    budget, state, height = one.budget, one.state(as_of), _HEIGHT
    opened = budget.opened_at.timestamp()
    earliest, latest = budget.exhausts_at_earliest, budget.exhausts_at_latest
    over = budget.ended_at is not None and budget.ended_at <= as_of
    drawn: list[Html] = []
    if over and budget.ended_at is not None:
        kind = "fuse-lost" if state is BudgetState.EXHAUSTED else "fuse-over"
        ended = budget.ended_at.timestamp()
        drawn.append(
            band(scale, opened, ended, kind, 6, height - 12, f"ended {clock(budget.ended_at)}")
        )
    elif earliest is None or latest is None:
        drawn.append(band(scale, opened, scale.high, "gap", 6, height - 12, "the end is not known"))
    else:
        now = min(max(as_of.timestamp(), opened), earliest.timestamp())
        drawn = [
            band(
                scale,
                opened,
                now,
                "spent",
                6,
                height - 12,
                f"spent since {clock(budget.opened_at)}",
            ),
            band(
                scale,
                now,
                earliest.timestamp(),
                "fuse",
                6,
                height - 12,
                f"left until {clock(earliest)}",
            ),
            band(
                scale,
                earliest.timestamp(),
                latest.timestamp(),
                "fuse-end",
                6,
                height - 12,
                f"ends between {clock(earliest)} and {clock(latest)}",
            ),
        ]
    drawn.append(rule(scale, as_of.timestamp(), "now", height, f"asked at {clock(as_of)}"))
    title = f"{one.client_id} {place(budget.topic, budget.partition)}: {BUDGET_WORDS[state]}"
    said = f"opened {moment(budget.opened_at)}; {budget.because}"
    return row(_who(one), lane(title, said, height, *drawn), _left(one, as_of, state))


def _left(one: Burning, as_of: datetime, state: BudgetState) -> Child:
    end = one.budget.exhausts_at_earliest
    kind, words = _BADGES[state], BUDGET_WORDS[state]
    if state in (BudgetState.CRITICAL, BudgetState.BURNING) and end is not None:
        left = tag(
            "span", span(end - as_of), data_until=round(end.timestamp() * 1000), data_words=""
        )
        return join(badge(kind, words), " ", left)
    short = {
        BudgetState.UNKNOWN: "limit not known",
        BudgetState.QUIET: "quiet",
        BudgetState.ENDED_UNKNOWN: "over, not known",
    }
    return badge(kind, short.get(state, words))


def _table(shown: Sequence[Burning], as_of: datetime) -> Html:
    rows = []
    for one in shown:
        budget = one.budget
        why = budget.because if budget.unknown is None else f"{budget.because} ({budget.unknown})"
        rows.append(
            (
                BUDGET_WORDS[one.state(as_of)],
                one.client_id,
                place(budget.topic, budget.partition),
                budget.error or "",
                clock(budget.opened_at),
                clock(budget.exhausts_at_earliest),
                clock(budget.exhausts_at_latest),
                budget.attempts_left,
                budget.records_at_stake,
                why,
            )
        )
    columns = (
        "State",
        "Client",
        "Where",
        "Error",
        "Opened",
        "Ends, earliest",
        "Ends, latest",
        "Attempts left#",
        "At stake#",
        "Why",
    )
    return table("Retry budgets", columns, rows)
