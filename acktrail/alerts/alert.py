"""What an alert is: its identity, and its row in the outbox.

An alert is a page or a ticket about one fault, for one owner. Its fingerprint is the hash of
cluster, fault, owner, severity and the first sign. Fingerprint, labels and start never change
while it is open, so that a receiver sees exactly one; signs, causes and numbers are annotations.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from datetime import datetime
from typing import Any

from acktrail.alerts.fault import FaultIdentity, fault_of
from acktrail.alerts.finding import Finding, scope_of
from acktrail.alerts.grouping import Occurrence
from acktrail.alerts.symptom import Symptom, symptoms_of
from acktrail.alerts.text import alert_name, lost_in_the_end, page_annotations
from acktrail.contracts.vocabulary import Grade, Outcome, State
from acktrail.policy.renamed import current_name

OPEN, RESOLVED = "open", "resolved"
RESOLUTION = "resolution"
"""Annotation: why an alert was resolved or opened again though no evidence says that it is cured
or came back."""
PAGE, TICKET = "page", "ticket"
ALL_CLUSTERS = "all"
"""Label `cluster` of what is about the lake: every alert has one."""


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
    found_by: tuple[str, ...] = ()
    """As in `Finding`; empty in alerts of earlier versions."""
    fault: str = ""
    """Name of the fault; of an alert of an earlier version it is made from state and cause."""
    symptoms: tuple[Symptom, ...] = ()
    acknowledged: int | None = None
    """Lost messages that somebody has acknowledged; None: nobody has."""
    acknowledged_by: str | None = None
    acknowledged_at: datetime | None = None
    acknowledged_because: str | None = None
    messages: Mapping[str, str] = field(default_factory=dict)
    """By receiver of single messages: what it was told last (`expectations/messages.py`)."""

    @property
    def key(self) -> str:
        """Names this change: a receiver recognizes one that it gets twice."""
        return f"{self.fingerprint}-{self.number}"

    @property
    def severity(self) -> str:
        """Whether it wakes somebody up."""
        return PAGE if self.grade is Grade.FAIL else TICKET

    @property
    def summary(self) -> str:
        """What is wrong, or was; and why it was resolved, where nobody saw that it is cured."""
        said = (self.annotations.get("summary"), self.annotations.get(RESOLUTION))
        return " ".join(text for text in said if text)

    @property
    def topics(self) -> frozenset[str]:
        """Topics of the signs that are not over, or of all."""
        alive = [s for s in self.symptoms if not s.over] or self.symptoms
        return frozenset(s.topic for s in alive if s.topic)

    @property
    def lost(self) -> int:
        """Messages known to be gone."""
        return sum(lost_in_the_end(self.symptoms).values())

    @property
    def weighty(self) -> Sequence[Symptom]:
        """The signs that can keep it open: those that page, of a page."""
        return [s for s in self.symptoms if s.grade is self.grade] or self.symptoms

    @property
    def goes_on(self) -> bool:
        """Whether any sign but a loss goes on, or a loss is not acknowledged.

        What only makes a ticket does not keep a page open: it is a ticket again afterwards. (Where
        a policy has made a ticket of the sign that opened it, it stays a page until it is over.)
        """
        held = any(not s.over and not s.loss for s in self.weighty)
        return held or self.lost > (self.acknowledged or 0)

    def row(self) -> dict[str, Any]:
        """Its row of the `alerts` table."""
        return {
            **self.__dict__,
            "delivered": list(self.delivered),
            "found_by": list(self.found_by),
            "grade": self.grade.value,
            "labels": list(self.labels.items()),
            "annotations": list(self.annotations.items()),
            "messages": list(self.messages.items()),
            "symptoms": [s.row() for s in self.symptoms],
        }

    def described(self, outcome: str = "", resolution: str = "") -> Alert:
        """With the annotations that its signs make."""
        ends_at = (self.until_at or self.ends_at) if self.status == RESOLVED else None
        # What was found later may have begun before what opened it.
        began_at = min((s.began_at for s in self.weighty), default=self.starts_at)
        made = page_annotations(self.symptoms, min(began_at, self.starts_at), ends_at, outcome)
        if resolution:
            made[RESOLUTION] = resolution
        if self.acknowledged is not None:
            made["acknowledged"] = f"{self.acknowledged_by}: {self.acknowledged_because}"
        return replace(self, annotations=made)


def fingerprint_of(identity: Sequence[str], starts_at: datetime) -> str:
    """The name of an alert: what it is about and when it began."""
    text = json.dumps([*identity, starts_at.isoformat()])
    return hashlib.sha256(text.encode()).hexdigest()[:16]


def newest(rows: Iterable[Mapping[str, Any]]) -> dict[str, Alert]:
    """The newest state of every alert, by fingerprint, from rows of the `alerts` table.

    A check has its current name; the labels stay, because receivers know the alert by them.
    """
    found: dict[str, Mapping[str, Any]] = {}
    for row in rows:
        before = found.get(row["fingerprint"])
        place = (row["number"], row["step"])
        if before is None or place > (before["number"], before["step"]):
            found[row["fingerprint"]] = row
        elif place == (before["number"], before["step"]):
            taken = sorted({*row["delivered"], *before["delivered"]})
            found[row["fingerprint"]] = {**row, "delivered": taken}
    return {fingerprint: _read(row) for fingerprint, row in found.items()}


def _read(row: Mapping[str, Any]) -> Alert:
    alert = Alert(
        **{
            **row,
            "check": current_name(row["check"]),
            "delivered": tuple(row["delivered"]),
            "found_by": tuple(_current_scope(scope) for scope in row.get("found_by") or ()),
            "grade": Grade(row["grade"]),
            "labels": dict(row["labels"] or ()),
            "annotations": dict(row["annotations"] or ()),
            "messages": dict(row.get("messages") or ()),
            "symptoms": tuple(Symptom.from_row(s) for s in row.get("symptoms") or ()),
            "fault": row.get("fault") or "",
        }
    )
    if alert.fault:
        return alert
    return replace(alert, fault=fault_of(alert).name, symptoms=(_only_symptom(alert),))


def _only_symptom(alert: Alert) -> Symptom:
    """The sign that an alert of an earlier version was about."""
    said = alert.annotations
    count = said.get("count", "1")
    return Symptom(
        check=alert.check,
        found_by=alert.found_by,
        grade=alert.grade,
        state=alert.state,
        cause=alert.cause,
        topic=alert.topic,
        group=alert.group,
        incident="",
        began_at=alert.starts_at,
        ended_at=alert.until_at,
        over=alert.status == RESOLVED,
        gone="",
        loss=alert.state in {state.value for state in State},
        count=int(count) if count.isdigit() else 1,
        at_stake=None,
        deadline=None,
        clients=tuple(c for c in said.get("clients", "").split(", ") if c),
        hosts=(),
        brokers=(),
        partitions=(),
        because=said.get("summary", ""),
        past=said.get("summary", ""),
        fix="",
        runbook=said.get("runbook", ""),
        keys=(),
    )


def opened(fingerprint: str, number: int, occurrence: Occurrence, now: datetime) -> Alert:
    """The alert that *occurrence* opens, for the *number*th time."""
    first = min(
        occurrence.findings,
        key=lambda f: (bool(f.muted_by), f.grade is not Grade.FAIL, not f.loss, f.starts_at),
    )
    grade = Grade.FAIL if occurrence.pages else Grade.WARN
    symptoms = symptoms_of(occurrence.findings)
    made = Alert(
        fingerprint=fingerprint,
        number=number,
        step=0,
        changed_at=now,
        status=OPEN,
        delivered=(),
        check=first.check,
        grade=grade,
        owner=occurrence.owner,
        cluster=occurrence.cluster,
        topic=first.topic,
        group=first.group,
        state=first.state,
        cause=first.cause,
        starts_at=occurrence.starts_at,
        until_at=occurrence.until_at,
        ends_at=None,
        labels=_labels(fingerprint, occurrence, grade),
        annotations={},
        found_by=tuple(sorted({scope for s in symptoms for scope in s.found_by})),
        fault=occurrence.fault.name,
        symptoms=symptoms,
    )
    return made.described()


def identity_of(occurrence: Occurrence) -> tuple[str, ...]:
    """What an alert about *occurrence* is about, whenever it began."""
    severity = PAGE if occurrence.pages else TICKET
    return (occurrence.cluster, occurrence.fault.name, occurrence.owner, severity)


def _labels(fingerprint: str, occurrence: Occurrence, grade: Grade) -> dict[str, str]:
    return {
        "alertname": alert_name(occurrence.fault),
        "fingerprint": fingerprint,
        "severity": PAGE if grade is Grade.FAIL else TICKET,
        "owner": occurrence.owner,
        "cluster": occurrence.cluster or ALL_CLUSTERS,
        "fault": occurrence.fault.name,
    }


def _current_scope(scope: str) -> str:
    table, _, check = scope.partition(".")
    return scope_of(table, current_name(check)) if check else scope


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
        because="This is a test alert; nothing is wrong.",
        check="test",
        grade=Grade.WARN,
        owner="test",
    )
    occurrence = Occurrence("", "test", FaultIdentity("test"), (finding,))
    first = opened(fingerprint_of(identity_of(occurrence), now), 1, occurrence, now)
    return first, replace(first, number=2, status=RESOLVED, ends_at=now).described()
