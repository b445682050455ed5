"""Which alerts open, go on and are resolved: pure decisions over findings and the outbox."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import datetime
from typing import Protocol

from acktrail.alerts.alert import (
    OPEN,
    RESOLUTION,
    RESOLVED,
    Alert,
    fingerprint_of,
    identity_of,
    opened,
)
from acktrail.alerts.fault import BROKERS, UNEXPLAINED, FaultIdentity, fault_of
from acktrail.alerts.finding import NOT_EVALUATED, UNDECIDED, WAITING, Finding
from acktrail.alerts.grouping import Occurrence, near, occurrences
from acktrail.alerts.symptom import MOST_OVER, Symptom, symptoms_of
from acktrail.contracts.vocabulary import Grade, Outcome

_NO_CHECK, _WITHDRAWN = "no check", "withdrawn"


class Hindsight(Protocol):
    """What the lake knows of a fault once it is over."""

    def outcome(self, alert: Alert) -> str:
        """What was lost in the end, as a sentence."""

    def withdrawn(self, alert: Alert, losses: Sequence[Symptom]) -> str:
        """Why *losses* are not there any more: a corrected verdict, or the end of the window."""


class NothingKnown:
    """Where no lake can be asked."""

    def outcome(self, alert: Alert) -> str:
        """The losses that the alert itself has."""
        return f"{alert.lost:,} messages are lost." if alert.lost else ""

    def withdrawn(self, alert: Alert, losses: Sequence[Symptom]) -> str:  # noqa: ARG002
        """Nobody knows more than that they are not found any more."""
        return "The loss is not found any more."


@dataclass(frozen=True)
class _Looked:
    """Who looked this time, and could see."""

    evaluated: frozenset[str]
    existing: Collection[str] | None
    blind: Collection[tuple[str, str]]

    def finders(self, symptom: Symptom) -> set[str]:
        """The checks that must look again before *symptom* is over: those that found it and exist.

        A symptom of an earlier version does not name them: every check of its name.
        """
        known = {*(self.existing or symptom.found_by), *self.evaluated, WAITING}
        if symptom.found_by:
            return known & set(symptom.found_by)
        return {scope for scope in known if _check_of(scope) == symptom.check}

    def sees(self, symptom: Symptom, cluster: str) -> bool:
        """Whether all who found it have looked, with the evidence that they need."""
        finders = self.finders(symptom)
        if not finders or not finders <= self.evaluated:
            return False
        if symptom.state in (UNDECIDED, NOT_EVALUATED):
            return True
        return not {(symptom.check, cluster), (symptom.check, "")} & set(self.blind)

    def is_orphan(self, symptom: Symptom) -> bool:
        """Whether no check that exists can decide it."""
        return self.existing is not None and not self.finders(symptom)


def alerts_due(
    findings: Sequence[Finding],
    before: Mapping[str, Alert],
    evaluated: Collection[str],
    now: datetime,
    existing: Collection[str] | None = None,
    hindsight: Hindsight | None = None,
) -> list[Alert]:
    """The changes to record: alerts opened, refreshed, opened again and resolved.

    *evaluated* are the checks that ran, each as `table.check`, *existing* all there are (None: not
    known). A sign is over only when all checks that found it have run again with the evidence they
    need: a check whose evidence is missing keeps what it had found. A sign that only checks that no
    longer exist have found is over with a reason: no check can decide it.
    """
    blind = {(f.check, f.cluster) for f in findings if f.outcome is Outcome.UNDECIDED}
    looked = _Looked(frozenset(evaluated), existing, blind)
    known = hindsight or NothingKnown()
    continued: dict[str, list[Occurrence]] = {}
    begun: dict[str, Occurrence] = {}
    joined: dict[str, str] = {}
    for occurrence in occurrences(findings):
        alerts = _continued(occurrence, before.values())
        if alerts:
            first = alerts[0].fingerprint
            continued.setdefault(first, []).append(occurrence)
            others = [a for a in alerts[1:] if a.status == OPEN]
        elif occurrence.told:
            first = fingerprint_of(identity_of(occurrence), occurrence.starts_at)
            begun[first] = occurrence
            others = []
        else:
            continue
        if occurrence.pages:
            others += _tickets(occurrence, before.values())
        joined.update((a.fingerprint, first) for a in others if a.fingerprint != first)
    changes = []
    for fingerprint, occurrence in begun.items():
        earlier = before.get(fingerprint)
        number = 1 if earlier is None else earlier.number + 1
        changes.append(opened(fingerprint, number, occurrence, now))
    for fingerprint, alert in before.items():
        if fingerprint not in continued and (fingerprint in joined or alert.status != OPEN):
            continue
        change = _next(alert, continued.get(fingerprint, ()), looked, now, known)
        if change is not None:
            changes.append(change)
    for fingerprint, into in joined.items():
        if fingerprint not in continued:
            changes.append(_closed(before[fingerprint], now, known, f"It is part of {into} now."))
    return changes


def acknowledged(alert: Alert, by: str, because: str, now: datetime, known: Hindsight) -> Alert:
    """*alert* once *by* has acknowledged its losses: over, unless something else goes on."""
    seen = replace(
        alert,
        acknowledged=alert.lost,
        acknowledged_by=by,
        acknowledged_at=now,
        acknowledged_because=because,
    )
    if seen.goes_on:
        return replace(seen.described(), step=alert.step + 1, changed_at=now)
    return _closed(seen, now, known, f"Acknowledged by {by}: {because}")


def _continued(occurrence: Occurrence, alerts: Iterable[Alert]) -> list[Alert]:
    """The alerts that *occurrence* continues: open ones first, then the one that began first."""
    found = []
    for alert in alerts:
        if (alert.cluster, alert.owner) != (occurrence.cluster, occurrence.owner):
            continue
        if not near(*_span(alert), *occurrence.span):
            continue
        if occurrence.pages and alert.grade is not Grade.FAIL:
            continue  # a ticket never becomes a page: a page opens, and the ticket joins it
        below = not occurrence.pages and alert.grade is Grade.FAIL
        if below and alert.status != OPEN and not _told_already(occurrence, alert):
            continue  # nor does a ticket open a page again
        if below:
            outlives = occurrence.span[1] is None and _span(alert)[1] is not None
            if outlives:
                continue  # nor is it hidden in a page about what is over
        rank = _likeness(occurrence, alert)
        if rank is not None:
            open_first = (alert.status != OPEN, alert.grade is not Grade.FAIL)
            found.append((open_first, rank, alert.starts_at, alert.fingerprint, alert))
    # What is only like it is continued where nothing is the same.
    found.sort(key=lambda entry: entry[:4])
    best = min((entry[1] for entry in found), default=0)
    return [entry[4] for entry in found if entry[1] == best]


def _told_already(occurrence: Occurrence, alert: Alert) -> bool:
    """Whether all of *occurrence* is over, and was told by *alert* while it was open."""
    known = {s.about for s in alert.symptoms}
    return occurrence.until_at is not None and all(
        s.about in known for s in symptoms_of(occurrence.findings)
    )


def _likeness(occurrence: Occurrence, alert: Alert) -> int | None:
    """0: the same fault. 1: one of the two has no known cause, and it may be that of the other."""
    fault = FaultIdentity.named(alert.fault)
    if fault == occurrence.fault:
        return 0
    kinds = {fault.kind, occurrence.fault.kind}
    if UNEXPLAINED not in kinds:
        return None
    if BROKERS in kinds:
        return 1
    if fault.kind == UNEXPLAINED:
        covered = bool(alert.topics) and alert.topics <= occurrence.topics
    else:
        covered = bool(occurrence.topics & alert.topics)
    return 1 if covered else None


def _span(alert: Alert) -> tuple[datetime, datetime | None]:
    """From the first to the last sign of *alert* that names its fault; None: it goes on."""
    named = [s for s in alert.symptoms if fault_of(s).name == alert.fault] or list(alert.symptoms)
    if alert.grade is Grade.FAIL:
        named = [s for s in named if s.grade is Grade.FAIL] or named
    start = min((s.began_at for s in named), default=alert.starts_at)
    if alert.status == OPEN and any(not s.over and not s.ended_at for s in named):
        return start, None
    ends = [s.ended_at for s in named if s.ended_at]
    return start, max(ends, default=alert.ends_at or alert.starts_at)


def _tickets(occurrence: Occurrence, alerts: Iterable[Alert]) -> list[Alert]:
    """Open tickets about the fault that *occurrence* is now a page about."""
    return [
        alert
        for alert in alerts
        if alert.status == OPEN
        and alert.grade is not Grade.FAIL
        and (alert.cluster, alert.owner) == (occurrence.cluster, occurrence.owner)
        and alert.fault == occurrence.fault.name
        and near(*_span(alert), *occurrence.span)
    ]


def _next(
    before: Alert,
    continuing: Sequence[Occurrence],
    looked: _Looked,
    now: datetime,
    known: Hindsight,
) -> Alert | None:
    """The change that *continuing* make to their alert; None where there is none to record.

    An open alert gets the newest signs: the same change, nobody is paged again.
    """
    found = tuple(f for occurrence in continuing for f in occurrence.findings)
    symptoms = _symptoms(before, symptoms_of(found), looked, now)
    seen = replace(
        before,
        fault=_fault_of(before, continuing),
        symptoms=symptoms,
        until_at=_last(symptoms),
        found_by=tuple(sorted({f for s in symptoms if not s.over for f in s.found_by})),
    )
    if before.status != OPEN:
        again = [f for f in found if not f.muted_by and (f.loss or f.ends_at is None)]
        if not again or not seen.goes_on:
            return None
        return _opened_again(seen, now, again)
    if seen.goes_on:
        changed = replace(seen.described(), annotations=_kept(seen))
        return None if changed == before else replace(changed, step=before.step + 1, changed_at=now)
    return _closed(seen, now, known, _reason(seen, known))


def _fault_of(before: Alert, continuing: Sequence[Occurrence]) -> str:
    """A fault without a known cause has one as soon as a sign names it."""
    if FaultIdentity.named(before.fault).kind != UNEXPLAINED or not continuing:
        return before.fault
    return min(o.fault for o in continuing).name


def _reason(seen: Alert, known: Hindsight) -> str:
    """Why *seen* is over, where no evidence says that it was cured."""
    orphans = [s for s in seen.symptoms if s.gone == _NO_CHECK]
    if orphans:
        return (
            f"Resolved because the check {orphans[0].check} no longer exists, "
            "not because it is known to be cured."
        )
    if seen.acknowledged is not None and seen.lost:
        return f"Acknowledged by {seen.acknowledged_by}: {seen.acknowledged_because}"
    withdrawn = [s for s in seen.symptoms if s.gone == _WITHDRAWN]
    return known.withdrawn(seen, withdrawn) if withdrawn else ""


def _kept(alert: Alert) -> Mapping[str, str]:
    """The annotations of an open alert; why it was opened again stays."""
    made = alert.described().annotations
    again = alert.annotations.get(RESOLUTION)
    return {**made, RESOLUTION: again} if again else made


def _symptoms(
    before: Alert, current: Sequence[Symptom], looked: _Looked, now: datetime
) -> tuple[Symptom, ...]:
    """The signs from now on, those that are over included."""
    found = {s.key: s for s in current}
    # A loss of an earlier version does not name its incident.
    about = {s.about for s in current} | {(*s.about[:-1], "") for s in current}
    over: list[Symptom] = []
    for old in before.symptoms:
        same = found.get(old.key)
        if same is not None:
            unasked = set(old.found_by) - looked.evaluated
            finders = tuple(sorted(unasked | set(same.found_by)))
            began = min(old.began_at, same.began_at)
            # A broker that is back was behind it all the same.
            brokers = tuple(sorted({*old.brokers, *same.brokers}))
            known = replace(same, found_by=finders, began_at=began, brokers=brokers)
            found[old.key] = known
        elif old.over:
            over.append(old)
        elif old.about in about:
            continue  # found under another beginning
        elif looked.is_orphan(old):
            over.append(_gone(old, now, _NO_CHECK))
        elif not looked.sees(old, before.cluster):
            found[old.key] = old
        else:
            over.append(_gone(old, now, _WITHDRAWN if old.loss else ""))
    over.sort(key=lambda s: (s.began_at, s.key))
    kept = {s.key: s for s in (*over[-MOST_OVER:], *found.values())}
    return tuple(kept[key] for key in sorted(kept))


def _gone(symptom: Symptom, now: datetime, why: str) -> Symptom:
    return replace(symptom, over=True, ended_at=symptom.ended_at or now, gone=why)


def _last(symptoms: Sequence[Symptom]) -> datetime | None:
    ends = [s.ended_at for s in symptoms]
    return None if None in ends else max((end for end in ends if end), default=None)


def _opened_again(seen: Alert, now: datetime, findings: Sequence[Finding]) -> Alert:
    losses = [f for f in findings if f.loss]
    reason = "Opened again: it came back."
    if losses and seen.acknowledged is not None:
        reason = (
            f"Opened again: {seen.lost:,} messages are lost, and {seen.acknowledged:,} were "
            f"acknowledged by {seen.acknowledged_by}."
        )
    elif losses:
        reason = f"Opened again: {seen.lost:,} messages were found to be lost."
    again = replace(
        seen,
        number=seen.number + 1,
        step=0,
        changed_at=now,
        status=OPEN,
        delivered=(),
        ends_at=None,
        acknowledged=None,
        acknowledged_by=None,
        acknowledged_at=None,
        acknowledged_because=None,
    )
    return again.described(resolution=reason)


def _closed(alert: Alert, now: datetime, known: Hindsight, reason: str = "") -> Alert:
    over = replace(
        alert,
        number=alert.number + 1,
        step=0,
        changed_at=now,
        status=RESOLVED,
        delivered=(),
        until_at=_last(alert.weighty) or now,
        ends_at=now,
    )
    return over.described(known.outcome(over), reason)


def _check_of(scope: str) -> str:
    return scope.partition(".")[2] or scope
