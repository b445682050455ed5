"""Which alerts open, go on and are resolved: pure decisions over findings and the outbox.

One alert per incident. Its fingerprint is the hash of cluster, topic, group, state, cause and the
start of the incident; ids and counts are annotations. While an alert is open its fingerprint,
labels and start never change, so that a receiver sees exactly one.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import datetime, timedelta
from typing import Any

from acktrail.alerts.finding import NOT_EVALUATED, UNDECIDED, Finding, first_keys
from acktrail.contracts.vocabulary import Grade, Outcome
from acktrail.policy.renamed import current_name

OPEN, RESOLVED = "open", "resolved"
RESOLUTION = "resolution"
"""Annotation: why an alert was resolved though no check saw that it is cured."""
NEAR = timedelta(minutes=10)
"""Late evidence may move the ends of an incident by so much and it is still the same one."""


@dataclass(frozen=True)
class Alert:
    """One alert as the outbox holds it: its newest change, and who has taken that change."""

    fingerprint: str
    number: int
    step: int
    changed_at: datetime
    status: str
    delivered: tuple[str, ...]
    check: str
    grade: Grade
    owner: str
    cluster: str
    topic: str
    group: str
    state: str
    cause: str
    starts_at: datetime
    until_at: datetime | None
    ends_at: datetime | None
    labels: Mapping[str, str]
    annotations: Mapping[str, str]

    @property
    def key(self) -> str:
        """Names this change: a receiver that gets it twice can tell."""
        return f"{self.fingerprint}-{self.number}"

    @property
    def summary(self) -> str:
        """What is wrong; and why it was resolved, where nobody saw that it is cured."""
        said = (self.annotations.get("summary"), self.annotations.get(RESOLUTION))
        return " ".join(text for text in said if text)

    @property
    def identity(self) -> tuple[str, ...]:
        """What it is about, whenever it began."""
        return (self.cluster, self.topic, self.group, self.state, self.cause)

    def row(self) -> dict[str, Any]:
        """Its row of the `alerts` table."""
        return {
            **self.__dict__,
            "delivered": list(self.delivered),
            "grade": self.grade.value,
            "labels": list(self.labels.items()),
            "annotations": list(self.annotations.items()),
        }


def fingerprint_of(identity: Sequence[str], starts_at: datetime) -> str:
    """The name of an incident: what it is about and when it began."""
    text = json.dumps([*identity, starts_at.isoformat()])
    return hashlib.sha256(text.encode()).hexdigest()[:16]


def newest(rows: Iterable[Mapping[str, Any]]) -> dict[str, Alert]:
    """The newest state of every alert, by fingerprint, from rows of the `alerts` table."""
    found: dict[str, Alert] = {}
    for row in rows:
        alert = _read(row)
        before = found.get(alert.fingerprint)
        if before is None or (alert.number, alert.step) > (before.number, before.step):
            found[alert.fingerprint] = alert
        elif (alert.number, alert.step) == (before.number, before.step):
            taken = tuple(sorted({*alert.delivered, *before.delivered}))
            found[alert.fingerprint] = replace(alert, delivered=taken)
    return found


def alerts_due(
    findings: Sequence[Finding],
    before: Mapping[str, Alert],
    checks: Collection[str],
    now: datetime,
    existing: Collection[str] | None = None,
) -> list[Alert]:
    """The changes to record: alerts opened, refreshed and resolved.

    *checks* are those that ran, *existing* all there are (None: not known). An alert is resolved
    only when its check could see: one whose evidence is missing keeps what it had found, and one
    that did not run says nothing. An alert of a check that does not exist is resolved with a
    reason, because nothing can ever decide it.
    """
    matched = _match(_merged(findings), before)
    changes = [
        change
        for fingerprint, finding in matched.items()
        if (change := _change(before.get(fingerprint), fingerprint, finding, now)) is not None
    ]
    blind = {(f.check, f.cluster) for f in findings if f.outcome is Outcome.UNDECIDED}
    for fingerprint, alert in before.items():
        if alert.status != OPEN or fingerprint in matched:
            continue
        if _cured(alert, checks, blind):
            changes.append(_resolved(alert, now))
        elif existing is not None and alert.check not in {*existing, *checks}:
            reason = (
                f"Resolved because the check {alert.check} no longer exists, "
                "not because it is known to be cured."
            )
            annotated = {**alert.annotations, RESOLUTION: reason}
            changes.append(_resolved(replace(alert, annotations=annotated), now))
    return changes


def _resolved(alert: Alert, now: datetime) -> Alert:
    return replace(
        alert,
        number=alert.number + 1,
        step=0,
        changed_at=now,
        status=RESOLVED,
        delivered=(),
        ends_at=now,
    )


def _merged(findings: Iterable[Finding]) -> list[tuple[tuple[str, ...], Finding]]:
    """Findings of one incident as one, whatever the number of checks that saw it."""
    found: dict[tuple[tuple[str, ...], datetime | None], Finding] = {}
    for finding in findings:
        identity = (finding.cluster, finding.topic, finding.group, finding.state, finding.cause)
        # A thing that goes on is one incident; things that are over are told apart by their start.
        slot = (identity, finding.starts_at if finding.ends_at else None)
        other = found.get(slot)
        found[slot] = finding if other is None else _joined(other, finding)
    return [(identity, finding) for (identity, _), finding in found.items()]


def _joined(one: Finding, other: Finding) -> Finding:
    worse = one if one.grade is Grade.FAIL or other.grade is Grade.WARN else other
    sentences = dict.fromkeys((one.because, other.because))
    return replace(
        worse,
        starts_at=min(one.starts_at, other.starts_at),
        count=one.count + other.count if one.keys != other.keys else one.count,
        keys=first_keys(dict.fromkeys((*one.keys, *other.keys))),
        clients=first_keys(sorted({*one.clients, *other.clients})),
        because=" ".join(sentences),
        loss=one.loss or other.loss,
        muted_by="" if not (one.muted_by and other.muted_by) else one.muted_by,
    )


def _match(
    merged: Iterable[tuple[tuple[str, ...], Finding]], before: Mapping[str, Alert]
) -> dict[str, Finding]:
    """Findings by fingerprint: that of the open alert they continue, else their own."""
    pending = [(identity, f, fingerprint_of(identity, f.starts_at)) for identity, f in merged]
    matched = {own: f for _, f, own in pending if _is_open(before.get(own))}
    for identity, finding, own in pending:
        if own in matched and matched[own] is finding:
            continue
        continued = [
            a.fingerprint
            for a in before.values()
            if a.status == OPEN
            and a.identity == identity
            and a.fingerprint not in matched
            and _same_incident(a, finding)
        ]
        matched[min(continued, default=own)] = finding
    return matched


def _is_open(alert: Alert | None) -> bool:
    return alert is not None and alert.status == OPEN


def _same_incident(alert: Alert, finding: Finding) -> bool:
    if finding.ends_at is None:
        return True
    until = alert.until_at or alert.starts_at
    return alert.starts_at - NEAR <= finding.ends_at and finding.starts_at <= until + NEAR


def _change(
    before: Alert | None, fingerprint: str, finding: Finding, now: datetime
) -> Alert | None:
    """The change that *finding* makes to its alert; None where there is none to record."""
    if before is not None and before.status == OPEN:
        return _refreshed(before, finding, now)
    if finding.muted_by:
        return None
    return _opened(fingerprint, 1 if before is None else before.number + 1, finding, now)


def _opened(fingerprint: str, number: int, finding: Finding, now: datetime) -> Alert:
    return Alert(
        fingerprint=fingerprint,
        number=number,
        step=0,
        changed_at=now,
        status=OPEN,
        delivered=(),
        check=finding.check,
        grade=finding.grade,
        owner=finding.owner,
        cluster=finding.cluster,
        topic=finding.topic,
        group=finding.group,
        state=finding.state,
        cause=finding.cause,
        starts_at=finding.starts_at,
        until_at=finding.ends_at,
        ends_at=None,
        labels=_labels(fingerprint, finding),
        annotations=_annotations(finding),
    )


def _refreshed(before: Alert, finding: Finding, now: datetime) -> Alert | None:
    """An open alert with the newest count and sentence: the same change, nobody is paged anew."""
    annotations = _annotations(finding)
    if annotations == dict(before.annotations) and before.until_at == finding.ends_at:
        return None
    return replace(
        before,
        step=before.step + 1,
        changed_at=now,
        until_at=finding.ends_at,
        annotations=annotations,
    )


def _cured(alert: Alert, checks: Collection[str], blind: Collection[tuple[str, str]]) -> bool:
    if alert.check not in checks:
        return False
    if alert.state in (UNDECIDED, NOT_EVALUATED):
        return True
    return (alert.check, alert.cluster) not in blind and (alert.check, "") not in blind


def _labels(fingerprint: str, finding: Finding) -> dict[str, str]:
    given = {
        "alertname": _camel(finding.state),
        "fingerprint": fingerprint,
        "severity": "page" if finding.grade is Grade.FAIL else "ticket",
        "owner": finding.owner,
        "check": finding.check,
        "cluster": finding.cluster,
        "topic": finding.topic,
        "group": finding.group,
        "state": finding.state,
        "cause": finding.cause,
    }
    return {name: value for name, value in given.items() if value}


def _annotations(finding: Finding) -> dict[str, str]:
    given = {
        "summary": finding.because,
        "runbook": finding.runbook,
        "count": str(finding.count),
        "clients": ", ".join(finding.clients),
        "keys": "\n".join(finding.keys),
    }
    return {name: value for name, value in given.items() if value}


def _camel(words: str) -> str:
    return "Acktrail" + "".join(w.capitalize() for w in words.replace("-", "_").split("_"))


def _read(row: Mapping[str, Any]) -> Alert:
    """A row of the table, with the check's current name. Labels stay: receivers know it by them."""
    return Alert(
        **{
            **row,
            "check": current_name(row["check"]),
            "delivered": tuple(row["delivered"]),
            "grade": Grade(row["grade"]),
            "labels": dict(row["labels"] or ()),
            "annotations": dict(row["annotations"] or ()),
        }
    )


def trial(now: datetime) -> tuple[Alert, Alert]:
    """An alert that only tries the way to a receiver, and its resolution."""
    finding = Finding(
        outcome=Outcome.FAIL,
        cluster="",
        topic="",
        group="",
        state="test",
        cause="test",
        starts_at=now,
        ends_at=None,
        because="This is a test of the way to you; nothing is wrong.",
        check="test",
        grade=Grade.WARN,
        owner="test",
    )
    fingerprint = fingerprint_of(("", "", "", "test", "test"), now)
    opened = _opened(fingerprint, 1, finding, now)
    return opened, replace(opened, number=2, status=RESOLVED, ends_at=now)
