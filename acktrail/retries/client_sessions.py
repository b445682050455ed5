"""The audited sessions of one client: who each is, what it reported of its settings, and when."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Any

from acktrail.audit.wire import Report, report_of_row
from acktrail.contracts.vocabulary import Tier


@dataclass(frozen=True)
class AuditSession:
    """One audited producer instance: the settings it reported, and all its reports."""

    name: str
    host: str
    settings: Mapping[str, str]
    since: datetime
    until: datetime
    reports: Sequence[Report]


def sessions_of(rows: Iterable[Mapping[str, Any]]) -> list[AuditSession]:
    """The sessions in *rows*; one without a heartbeat, or claimed by two producers, is left out."""
    reports: dict[str, dict[tuple[Any, ...], Report]] = defaultdict(dict)
    for row in rows:
        report = report_of_row(row["report"])
        place = (report.reporter, report.topic, report.partition, report.tier, report.block)
        reports[report.session][*place, report.part, report.number] = report
    found = []
    for name, by_place in sorted(reports.items()):
        given = [by_place[place] for place in sorted(by_place)]
        beats = [r for r in given if r.tier is Tier.HEARTBEAT and r.settings]
        if len({(b.settings.get("client_id"), b.settings.get("host")) for b in beats}) != 1:
            continue
        last = max(beats, key=lambda r: (r.reported_ms, r.number, r.reporter))
        heard = [r.reported_ms if r.began_ms is None else r.began_ms for r in given]
        found.append(
            AuditSession(
                name=name,
                host=last.settings.get("host", ""),
                settings=last.settings,
                since=_instant(min(heard)),
                until=_instant(max(r.reported_ms for r in given)),
                reports=given,
            )
        )
    return found


def is_audit_of(
    session: AuditSession, host: str, hosts: Sequence[str], sessions: Sequence[AuditSession]
) -> bool:
    """Whether a session is of this host's client: the same name, or the only ones there are."""
    if session.host and session.host == host:
        return True
    return len(hosts) == 1 and len({s.host for s in sessions}) == 1


def _instant(ms: int) -> datetime:
    return datetime.fromtimestamp(ms / 1000, UTC)
