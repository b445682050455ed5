"""Which findings are signs of one fault: the same cause, place and owner at the same time.

The order and the number of the findings make no difference.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta

from acktrail.alerts.fault import BROKERS, UNEXPLAINED, FaultIdentity, fault_of
from acktrail.alerts.finding import Finding
from acktrail.contracts.vocabulary import Grade

NEAR = timedelta(seconds=60)
"""Signs of one fault that are no further apart belong to one occurrence of it."""


@dataclass(frozen=True)
class Occurrence:
    """One fault at one time, as far as *findings* of one owner show it."""

    cluster: str
    owner: str
    fault: FaultIdentity
    findings: tuple[Finding, ...]

    @property
    def starts_at(self) -> datetime:
        """The first sign; of a page, the first that pages."""
        return span_of(self.findings)[0]

    @property
    def until_at(self) -> datetime | None:
        """The last sign; None while it goes on."""
        return _span(self.findings)[1]

    @property
    def span(self) -> tuple[datetime, datetime | None]:
        """From the first to the last sign that names the fault: a rate stays high for longer."""
        named = [f for f in self.findings if fault_of(f) == self.fault]
        return span_of(named or list(self.findings))

    @property
    def topics(self) -> frozenset[str]:
        """Topics concerned."""
        return frozenset(f.topic for f in self.findings if f.topic)

    @property
    def pages(self) -> bool:
        """Whether it wakes somebody up; else it is a ticket."""
        return any(f.grade is Grade.FAIL and not f.muted_by for f in self.findings)

    @property
    def told(self) -> bool:
        """Whether anybody is alerted: not where a maintenance window mutes all of it."""
        return any(not f.muted_by for f in self.findings)


def near(
    start: datetime, until: datetime | None, other_start: datetime, other_until: datetime | None
) -> bool:
    """Whether two spans of time (None: it goes on) are at most NEAR apart."""
    return (until is None or other_start <= until + NEAR) and (
        other_until is None or start <= other_until + NEAR
    )


def occurrences(findings: Iterable[Finding]) -> list[Occurrence]:
    """The faults that *findings* show; each finding is in exactly one of them."""
    owned: dict[tuple[str, str], list[Finding]] = {}
    for finding in findings:
        owned.setdefault((finding.cluster, finding.owner), []).append(finding)
    found = []
    for (cluster, owner), mine in owned.items():
        for fault, together in _faults(mine):
            ordered = sorted(together, key=_order)
            found.append(Occurrence(cluster, owner, fault, tuple(ordered)))
    return sorted(found, key=lambda o: (o.starts_at, o.cluster, o.owner, o.fault))


def _order(finding: Finding) -> tuple[object, ...]:
    where = (finding.state, finding.cause, finding.topic, finding.group, finding.check)
    return (finding.starts_at, *where, finding.because)


def _faults(findings: Iterable[Finding]) -> list[tuple[FaultIdentity, list[Finding]]]:
    by_fault: dict[FaultIdentity, list[Finding]] = {}
    for finding in findings:
        by_fault.setdefault(fault_of(finding), []).append(finding)
    weak = by_fault.pop(FaultIdentity(UNEXPLAINED), [])
    known = [
        (fault, part) for fault, mine in sorted(by_fault.items()) for part in _with_tickets(mine)
    ]
    spans = [
        (fault, span_of(part), frozenset(f.topic for f in part), part) for fault, part in known
    ]
    rest = []
    for finding in weak:
        behind = [
            (fault.kind == BROKERS, fault, part)
            for fault, span, topics, part in spans
            if _joins(finding, span) and _explains(fault, topics, finding.topic)
        ]
        if behind:  # the fault of its own topic before that of the brokers
            min(behind, key=lambda found: found[:2])[2].append(finding)
        else:
            rest.append(finding)
    return known + [(FaultIdentity(UNEXPLAINED), part) for part in _in_time(rest)]


def _joins(finding: Finding, span: tuple[datetime, datetime | None]) -> bool:
    """Whether *finding* can be a sign of what pages in *span*.

    A ticket that goes on after what paged is over is a ticket: nobody reads an old page.
    """
    outlives = finding.grade is not Grade.FAIL and finding.ends_at is None and span[1] is not None
    return not outlives and near(*span, finding.starts_at, finding.ends_at)


def _with_tickets(findings: list[Finding]) -> list[list[Finding]]:
    """The findings of one fault, apart where it was quiet.

    A replica that is missing for days does not make one page of all that happens meanwhile: what
    only makes a ticket joins a page that it is near to, and ties none together.
    """
    urgent = [f for f in findings if f.grade is Grade.FAIL]
    parts = _in_time(urgent)
    spans = [_span(part) for part in parts]
    alone: list[Finding] = []
    for finding in findings:
        if finding.grade is Grade.FAIL:
            continue
        beside = [n for n, span in enumerate(spans) if _joins(finding, span)]
        (parts[max(beside)] if beside else alone).append(finding)
    return [*parts, *_in_time(alone)]


def span_of(findings: Sequence[Finding]) -> tuple[datetime, datetime | None]:
    """From the first to the last of *findings* that page, or of all where none does."""
    return _span([f for f in findings if f.grade is Grade.FAIL] or findings)


def _explains(fault: FaultIdentity, topics: frozenset[str], topic: str) -> bool:
    """Whether *fault* can be why messages of *topic* are in trouble."""
    return fault.kind == BROKERS or (bool(topic) and topic in topics)


def _span(findings: Sequence[Finding]) -> tuple[datetime, datetime | None]:
    ends = [f.ends_at for f in findings]
    until = None if None in ends else max(end for end in ends if end)
    return min(f.starts_at for f in findings), until


def _in_time(findings: list[Finding]) -> list[list[Finding]]:
    """Split where there was no sign for longer than NEAR."""
    parts: list[list[Finding]] = []
    for finding in sorted(findings, key=_order):
        if parts and near(*_span(parts[-1]), finding.starts_at, finding.ends_at):
            parts[-1].append(finding)
        else:
            parts.append([finding])
    return parts
