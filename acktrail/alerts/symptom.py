"""A sign of a fault, as the page about it keeps it: what one check saw, and whether it goes on."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import datetime
from typing import Any

from acktrail.alerts.finding import Finding, first_keys
from acktrail.contracts.vocabulary import Grade

MOST_KEYS = 3
"""Row keys on a page: the rest is found by the command that the page names."""
MOST_OVER = 20
"""Signs that are over and still told by their page."""


@dataclass(frozen=True)
class Symptom:
    """One sign. The fields are those of `alerts.symptoms`."""

    check: str
    found_by: tuple[str, ...]
    grade: Grade
    state: str
    cause: str
    topic: str
    group: str
    incident: str
    began_at: datetime
    ended_at: datetime | None
    over: bool
    """It does not go on. A loss is over when its verdict is withdrawn or left the window."""
    gone: str
    """Why it is over, where no evidence says that it was cured; else empty."""
    loss: bool
    count: int
    at_stake: int | None
    deadline: datetime | None
    clients: tuple[str, ...]
    hosts: tuple[str, ...]
    brokers: tuple[str, ...]
    partitions: tuple[str, ...]
    because: str
    past: str
    fix: str
    runbook: str
    keys: tuple[str, ...]

    @property
    def about(self) -> tuple[str, ...]:
        """What is wrong and where, whatever the check and the time."""
        return (self.state, self.cause, self.topic, self.group, self.incident)

    @property
    def key(self) -> tuple[str, ...]:
        """What makes two findings the same sign. Of what is over there may be one for each time."""
        return (*self.about, self.began_at.isoformat() if self.over else "")

    def row(self) -> dict[str, Any]:
        """As an element of `alerts.symptoms`."""
        lists = {n: list(v) for n, v in self.__dict__.items() if isinstance(v, tuple)}
        return {**self.__dict__, **lists, "grade": self.grade.value}

    @staticmethod
    def from_row(row: Mapping[str, Any]) -> Symptom:
        """What *row* wrote."""
        lists = {n: tuple(v) for n, v in row.items() if isinstance(v, list)}
        return Symptom(**{**row, **lists, "grade": Grade(row["grade"])})


def symptom_of(finding: Finding) -> Symptom:
    """The sign that *finding* is."""
    return Symptom(
        check=finding.check,
        found_by=finding.found_by,
        grade=finding.grade,
        state=finding.state,
        cause=finding.cause,
        topic=finding.topic,
        group=finding.group,
        incident=finding.incident,
        began_at=finding.starts_at,
        ended_at=finding.ends_at,
        over=finding.ends_at is not None and not finding.loss,
        gone="",
        loss=finding.loss,
        count=finding.count,
        at_stake=finding.at_stake,
        deadline=finding.deadline,
        clients=finding.clients,
        hosts=finding.hosts,
        brokers=finding.brokers,
        partitions=finding.partitions,
        because=finding.what or finding.because,
        past=finding.past or finding.what or finding.because,
        fix=finding.fix,
        runbook=finding.runbook,
        keys=finding.keys[:MOST_KEYS],
    )


def symptoms_of(findings: Sequence[Finding]) -> tuple[Symptom, ...]:
    """The signs that *findings* are, each once whatever the number of tables that show it."""
    found: dict[tuple[str, ...], Symptom] = {}
    for symptom in map(symptom_of, findings):
        other = found.get(symptom.key)
        found[symptom.key] = symptom if other is None else _joined(other, symptom)
    return tuple(found[key] for key in sorted(found))


def _joined(one: Symptom, other: Symptom) -> Symptom:
    first, second = sorted((one, other), key=lambda s: (s.grade is not Grade.FAIL, s.check))
    stakes = [s.at_stake for s in (one, other) if s.at_stake is not None]
    ends = [s.ended_at for s in (one, other)]
    return replace(
        first,
        found_by=tuple(sorted({*one.found_by, *other.found_by})),
        began_at=min(one.began_at, other.began_at),
        ended_at=None if None in ends else max(end for end in ends if end),
        over=one.over and other.over,
        count=one.count + other.count if one.keys != other.keys else max(one.count, other.count),
        at_stake=max(stakes, default=None),
        deadline=min((s.deadline for s in (one, other) if s.deadline), default=None),
        because=" ".join(sorted({first.because, second.because}, key=first.because.__ne__)),
        clients=first_keys(sorted({*one.clients, *other.clients})),
        hosts=first_keys(sorted({*one.hosts, *other.hosts})),
        brokers=first_keys(sorted({*one.brokers, *other.brokers})),
        partitions=first_keys(sorted({*one.partitions, *other.partitions})),
        keys=tuple(dict.fromkeys((*first.keys, *second.keys)))[:MOST_KEYS],
    )
