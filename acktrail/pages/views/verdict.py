"""View 1: the verdict. What was lost, what burns, what failed, and what could not be seen."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import datetime

from acktrail.answers.burning import Budgets
from acktrail.answers.check_history import Checks
from acktrail.answers.evidence import EvidenceSeen
from acktrail.answers.lost import Ledger, Lost
from acktrail.contracts.vocabulary import State
from acktrail.pages.html import Child, Html, tag
from acktrail.pages.parts import badge, several
from acktrail.pages.words import LOST_WORDS, count, span
from acktrail.retries.state import BudgetState

_SHOWN = 8


def verdict(
    lost: Lost, ledger: Ledger, budgets: Budgets, checks: Checks, seen: EvidenceSeen
) -> Html:
    """The strip at the top of a page."""
    unseen = [*_undecided(ledger), *seen.unseen()]
    tone, sentence = headline(lost, ledger, budgets, bool(unseen))
    tiles = [
        _lost_tile(lost, ledger),
        _budget_tile(budgets),
        _check_tile(checks),
        _unseen_tile(unseen),
    ]
    return tag(
        "section",
        tag("h2", "Verdict", id="verdict-title", class_="quiet"),
        tag("p", badge(tone, _TONES[tone]), " ", sentence, class_=f"headline {tone}"),
        tag("div", *tiles, class_="tiles"),
        _not_seen(unseen),
        id="verdict",
        aria_labelledby="verdict-title",
    )


_TONES = {"bad": "Lost", "warn": "At risk", "unknown": "Not known", "ok": "Clear"}


def headline(lost: Lost, ledger: Ledger, budgets: Budgets, unseen: bool) -> tuple[str, str]:
    """How it stands, in a word and a sentence or two."""
    found = lost.of_log()
    gone = found.get(State.LOST_AFTER_ACK.value, 0)
    other = sum(found.values()) - gone
    groups = sum(lost.of_groups().values())
    said = []
    if gone:
        said.append(f"{count(gone, 'acknowledged message')} {'is' if gone == 1 else 'are'} gone.")
    if other:
        more = " more" if gone else ""
        said.append(
            f"{other:,}{more} message{'' if other == 1 else 's'} "
            f"{'was' if other == 1 else 'were'} not stored."
        )
    if groups:
        said.append(f"Groups did not get {count(groups, 'stored message')}.")
    tone = "bad" if said else ""
    burning = budgets.by_state().get(BudgetState.CRITICAL, 0)
    if burning:
        said.append(
            f"{count(burning, 'retry budget')} {'is' if burning == 1 else 'are'} about to run out."
        )
        tone = tone or "warn"
    if tone:
        return tone, " ".join(said)
    if not ledger.log["sent"]:
        return "unknown", "Nothing is known about lost messages: none was audited in this window."
    messages = count(ledger.log["sent"], "audited message")
    if unseen:
        return "unknown", f"No losses found among {messages}. What could not be seen is below."
    return "ok", f"No losses in this window: {messages}, all accounted for."


def _tile(kind: str, number: str, title: str, lines: Sequence[Child], target: str) -> Html:
    return tag(
        "div",
        tag("h3", tag("a", title, href=target)),
        tag("p", number, class_="figure"),
        several(lines) if lines else None,
        class_=f"tile {kind}",
    )


def _lost_tile(lost: Lost, ledger: Ledger) -> Html:
    of_log, of_groups = lost.of_log(), lost.of_groups()
    lines = [f"{n:,} {LOST_WORDS.get(state, state)}" for state, n in of_log.items() if n]
    lines += [f"{n:,} {LOST_WORDS.get(state, state)}" for state, n in of_groups.items() if n]
    total = sum(of_log.values()) + sum(of_groups.values())
    if total:
        return _tile("bad", f"{total:,}", "Messages lost", lines, "#incidents")
    if not ledger.log["sent"]:
        return _tile("unknown", "?", "Messages lost", ["no audit: not known"], "#ledger")
    sent = f"of {ledger.log['sent']:,} audited"
    return _tile("ok", "0", "Messages lost", [sent], "#ledger")


def _budget_tile(budgets: Budgets) -> Html:
    states = budgets.by_state()
    critical = states.get(BudgetState.CRITICAL, 0)
    ends = [
        one.budget.exhausts_at_earliest
        for one in budgets.listed
        if budgets.as_of is not None
        and one.state(budgets.as_of) is BudgetState.CRITICAL
        and one.budget.exhausts_at_earliest is not None
    ]
    lines: list[Child] = []
    if ends and budgets.as_of is not None:
        lines.append(_first_end(min(ends), budgets.as_of))
    used_up = budgets.ended.get("exhausted", 0)
    if used_up:
        lines.append(f"{used_up:,} used up already")
    burning = states.get(BudgetState.BURNING, 0) + states.get(BudgetState.UNKNOWN, 0)
    if burning:
        lines.append(f"{burning:,} more retrying")
    kind = "bad" if critical or used_up else "warn" if burning else "ok"
    return _tile(kind, f"{critical:,}", "Retry budgets about to end", lines, "#budgets")


def _first_end(first: datetime, as_of: datetime) -> Html:
    words = f"the first in {span(first - as_of)}" if first > as_of else "the first at any moment"
    return tag(
        "span", words, data_until=round(first.timestamp() * 1000), data_words="the first in "
    )


def _check_tile(checks: Checks) -> Html:
    counted = checks.count()
    if not checks.runs:
        return _tile("unknown", "?", "Failed checks", ["no check ran in this window"], "#checks")
    failed = counted.get("fail", 0)
    lines = [
        f"{counted[result]:,} {words}"
        for result, words in (("warn", "warnings"), ("undecided", "undecided"), ("pass", "passed"))
        if counted.get(result)
    ]
    kind = "bad" if failed else "warn" if counted.get("warn") or counted.get("undecided") else "ok"
    return _tile(kind, f"{failed:,}", "Failed checks", lines, "#checks")


def _undecided(ledger: Ledger) -> list[str]:
    if not ledger.undecided:
        return []
    why = ", ".join(
        f"{n:,} {reason.replace('_', ' ')}" for reason, n in list(ledger.reasons.items())[:3]
    )
    return [
        f"{count(ledger.undecided, 'message')} of {ledger.log['sent']:,} "
        f"{'is' if ledger.undecided == 1 else 'are'} not decided{f': {why}' if why else ''}."
    ]


def _unseen_tile(unseen: Sequence[str]) -> Html:
    if not unseen:
        return _tile("ok", "0", "Not seen", ["every source gave evidence"], "#coverage")
    return _tile("unknown", f"{len(unseen):,}", "Not seen", ["listed below"], "#not-seen")


def _not_seen(unseen: Sequence[str]) -> Html:
    if not unseen:
        text = "Nothing is known to be missing: every source of the window gave evidence."
        return tag(
            "p", tag("strong", "What could not be seen. "), text, id="not-seen", class_="not-seen"
        )
    more = len(unseen) - _SHOWN
    shown = [*unseen[:_SHOWN], *([f"{more} more, under Coverage."] if more > 0 else [])]
    return tag(
        "div", tag("h3", "What could not be seen"), several(shown), id="not-seen", class_="not-seen"
    )
