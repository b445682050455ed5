"""What a page says: of the fault while it goes on, and of what it came to once it is over.

Nothing here depends on the clock: a page's words change when what is known of its fault changes.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from datetime import datetime

from acktrail import links
from acktrail.alerts.fault import (
    BROKER_STATES,
    BROKERS,
    CONSUMERS,
    LEDGER,
    PRODUCER,
    REFUSED,
    UNEXPLAINED,
    WEAK_STATES,
    FaultIdentity,
)
from acktrail.alerts.finding import OUT_OF_SYNC
from acktrail.alerts.symptom import MOST_KEYS, Symptom
from acktrail.contracts.vocabulary import Grade

_IN_SUMMARY = 2
_IN_DESCRIPTION = 8
_NAMES = 8
_SENTENCES = re.compile(r"(?<=[.!?]) (?=[A-Z])")
_LEADS: dict[str, str] = {
    BROKERS: "Brokers",
    REFUSED: "SendsRefused",
    PRODUCER: "ProducerEnded",
    CONSUMERS: "ConsumerMissesRecords",
    LEDGER: "AccountsWrong",
    UNEXPLAINED: "MessagesInTrouble",
}


def alert_name(fault: FaultIdentity) -> str:
    """The `alertname` of a page about *fault*."""
    words = _LEADS.get(fault.kind) or "".join(
        word.capitalize() for word in fault.kind.replace("-", "_").split("_")
    )
    return f"Acktrail{words}"


def page_annotations(
    symptoms: Sequence[Symptom], starts_at: datetime, ends_at: datetime | None, outcome: str
) -> dict[str, str]:
    """What receivers show of a page; *outcome* is what is known of it in the end, if anything.

    *ends_at* is None while the page is open.
    """
    ordered = sorted(symptoms, key=_weight if ends_at is None else _weight_in_the_end)
    alive = [s for s in ordered if not s.over]
    told = alive if alive and ends_at is None else ordered
    first = _to_do_first if ends_at is None else _weight_in_the_end
    given = {
        "summary": _open(told) if ends_at is None else _over(ordered, starts_at, ends_at, outcome),
        "description": _description(told, ordered, ends_at is not None, outcome),
        "state": _names(s.state for s in told),
        "checks": _names(s.check for s in told),
        "cause": _names(s.cause for s in told if s.state not in WEAK_STATES),
        "count": str(_count(told)),
        "topics": _names(s.topic for s in told),
        "groups": _names(s.group for s in told),
        "clients": _names(c for s in told for c in s.clients),
        "hosts": _names(h for s in told for h in s.hosts),
        "brokers": _brokers(told),
        "partitions": _names(p for s in told for p in s.partitions),
        "records_at_stake": _stake(alive),
        "first_deadline": moment(_deadline(alive)),
        "what_to_do": " ".join(_fixes(told)),
        "runbook_url": next((s.runbook for s in sorted(told, key=first) if s.runbook), ""),
        "explain": _explain(told),
        "keys": "\n".join(list(dict.fromkeys(k for s in told for k in s.keys))[:MOST_KEYS]),
    }
    return {name: value for name, value in given.items() if value}


def report_link(url: str, symptoms: Sequence[Symptom]) -> str:
    """The part of the report at *url* that shows what *symptoms* are about."""
    told = sorted(symptoms, key=_weight)
    named = (
        (links.INCIDENT, (s.incident for s in told)),
        (links.CLIENT, (name for s in told for name in s.clients)),
        (links.TOPIC, (s.topic for s in told)),
    )
    for kind, names in named:
        found = next((name for name in names if name), None)
        if found is not None:
            return links.link(url, kind, found)
    return url


def lost_in_the_end(symptoms: Iterable[Symptom]) -> dict[str, int]:
    """Messages that are gone, by state: losses whose verdict stands."""
    found: dict[str, int] = {}
    for symptom in symptoms:
        if symptom.loss and not symptom.over:
            found[symptom.state] = found.get(symptom.state, 0) + symptom.count
    return found


def moment(at: datetime | None) -> str:
    """`2026-01-31T12:00:05Z`; empty for None."""
    return "" if at is None else at.isoformat(timespec="seconds").replace("+00:00", "Z")


def span(start: datetime, end: datetime) -> str:
    """`75 s`, `12 min`, `3 h`."""
    seconds = max(0.0, (end - start).total_seconds())
    if seconds < 120:
        return f"{seconds:.0f} s"
    return f"{seconds / 60:.0f} min" if seconds < 7200 else f"{seconds / 3600:.0f} h"


def _weight(symptom: Symptom) -> tuple[object, ...]:
    """Losses first, then what pages, then the most."""
    urgent = (symptom.over, not symptom.loss, symptom.grade is not Grade.FAIL)
    return (*urgent, symptom.began_at, -symptom.count, symptom.key)


def _weight_in_the_end(symptom: Symptom) -> tuple[object, ...]:
    """As *_weight*, of signs of which it does not matter any more which went on for longest."""
    return (bool(symptom.gone) and symptom.loss, *_weight(symptom)[1:])


def _open(symptoms: Sequence[Symptom]) -> str:
    said = list(dict.fromkeys(s.because for s in symptoms))
    more = len(said) - _IN_SUMMARY
    parts = [_sentence(text) for text in said[:_IN_SUMMARY]]
    if more > 0:
        parts.append(f"{more} more sign{'' if more == 1 else 's'}.")
    brokers = _brokers(symptoms)
    if brokers:
        parts.append(f"Broker{'s' if ',' in brokers else ''} concerned: {brokers}.")
    stake, first = _stake(symptoms), _deadline(symptoms)
    if stake:
        parts.append(f"{stake} record{'' if stake == '1' else 's'} can still be saved.")
    if first is not None:
        parts.append(f"The first may be given up at {moment(first)}.")
    return " ".join(parts)


def _over(symptoms: Sequence[Symptom], start: datetime, end: datetime, outcome: str) -> str:
    said = list(dict.fromkeys(s.past for s in symptoms))
    more = len(said) - _IN_SUMMARY
    parts = [f"Over: {moment(start)} to {moment(end)} ({span(start, end)})."]
    parts += [_sentence(text) for text in said[:_IN_SUMMARY]]
    if more > 0:
        parts.append(f"{more} more sign{'' if more == 1 else 's'}.")
    return " ".join([*parts, outcome]).strip()


def _description(
    told: Sequence[Symptom], known: Sequence[Symptom], over: bool, outcome: str
) -> str:
    """Everything a person needs, one thing to a line."""
    said = list(dict.fromkeys(_sentence(s.past if over else s.because) for s in told))
    lines = [f"- {text}" for text in said[:_IN_DESCRIPTION]]
    if len(said) > _IN_DESCRIPTION:
        lines.append(f"- {len(said) - _IN_DESCRIPTION} more signs: `acktrail alerts list`")
    lines += [
        f"{title}: {text}"
        for title, text in (
            ("Topics", _names(s.topic for s in told)),
            ("Clients", _names(c for s in told for c in s.clients)),
            ("Hosts", _names(h for s in told for h in s.hosts)),
            ("Brokers", _brokers(told)),
            ("Partitions", _names(p for s in told for p in s.partitions)),
            ("Before", " ".join(dict.fromkeys(_sentence(s.past) for s in known if s not in told))),
            ("What to do", " ".join(_fixes(told))),
            ("Timeline", _explain(told)),
            ("Outcome", outcome),
        )
        if text
    ]
    return "\n".join(lines)


def _fixes(symptoms: Sequence[Symptom]) -> list[str]:
    ordered = sorted(symptoms, key=_to_do_first)
    fixes = list(dict.fromkeys(_sentence(s.fix[0].upper() + s.fix[1:]) for s in ordered if s.fix))
    return list(dict.fromkeys(text for fix in fixes[:3] for text in _SENTENCES.split(fix)))


def _to_do_first(symptom: Symptom) -> tuple[object, ...]:
    """What can still be saved comes before what is lost, and that before what only warns."""
    warns = symptom.grade is not Grade.FAIL
    return (symptom.over, symptom.deadline is None, not symptom.loss, warns)


def _explain(symptoms: Sequence[Symptom]) -> str:
    """The command that shows more."""
    incident = next((s.incident for s in symptoms if s.incident), "")
    if incident:
        return f"acktrail explain {incident}"
    burning = any(s.deadline is not None or s.at_stake is not None for s in symptoms)
    of_sends = any(s.state in (*BROKER_STATES, *WEAK_STATES) for s in symptoms)
    return "acktrail budgets --fleet" if burning or of_sends else ""


def _count(symptoms: Sequence[Symptom]) -> int:
    """Lost messages; without any, what the first sign counts: others count other things."""
    lost = [s.count for s in symptoms if s.loss]
    return sum(lost) if lost else next((s.count for s in symptoms), 0)


def _stake(symptoms: Sequence[Symptom]) -> str:
    known = [s.at_stake for s in symptoms if s.at_stake is not None]
    return f"{sum(known):,}" if known else ""


def _deadline(symptoms: Sequence[Symptom]) -> datetime | None:
    return min((s.deadline for s in symptoms if s.deadline is not None), default=None)


def _brokers(symptoms: Sequence[Symptom]) -> str:
    """The brokers behind it: by the cluster's own answers, else by what clients suspect."""
    named = [b for s in symptoms for b in s.brokers]
    return _names([b for b in named if b.endswith(OUT_OF_SYNC)] or named)


def _names(names: Iterable[str]) -> str:
    listed = list(dict.fromkeys(name for name in names if name))
    more = len(listed) - _NAMES
    return ", ".join(listed[:_NAMES]) + (f" and {more} more" if more > 0 else "")


def _sentence(text: str) -> str:
    return text if text.endswith((".", "!", "?")) else f"{text}."
