"""How transactions ended, by the log alone: read_committed against read_uncommitted.

Below the last stable offset every transaction has ended. There a record is given to a reader of
committed records unless its transaction was aborted. The committed reading comes first, and the
whole one after it: what the second finds was there during the first, unless the leader changed.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Sequence
from dataclasses import dataclass, field, replace

from acktrail.audit.wire import Report, Sighting, encode_sightings
from acktrail.contracts.vocabulary import Tier
from ingest.sources.scan_reports import LogRecord, ScannedRange, identity_of


@dataclass
class TransactionalTopics:
    """Topics that transactional producers write to, by the settings that they report."""

    sessions: dict[str, set[str]] = field(default_factory=dict)
    """By topic."""
    began_ms: dict[str, int] = field(default_factory=dict)
    """By topic, the earliest that was heard of such a session."""
    ends: dict[str, tuple[int, int]] = field(default_factory=dict)
    """By partition's position: an end of its log, and when it was asked."""

    def take(self, reports: Iterable[Report]) -> None:
        """Learn from what came to the lake."""
        for report in reports:
            if not report.session or not report.settings.get("transactional.id"):
                continue
            self.sessions.setdefault(report.topic, set()).add(report.session)
            known = [report.began_ms, report.reported_ms, self.began_ms.get(report.topic)]
            self.began_ms[report.topic] = min(ms for ms in known if ms is not None)

    def settled_end(self, app_id: str, end: int, now_ms: int, settle_ms: int) -> int:
        """An end that the log had so long ago that its sessions have been heard of; 0: none yet."""
        noted = self.ends.get(app_id)
        if noted is None:
            self.ends[app_id] = (end, now_ms)
            return 0
        if now_ms - noted[1] < settle_ms:
            return 0
        self.ends[app_id] = (end, now_ms)
        return noted[0]


def outcomes(
    scan: ScannedRange,
    records: Sequence[LogRecord],
    given: Collection[int],
    sessions: Collection[str],
    reporter: str,
    part: int,
) -> list[Report]:
    """`committed` and `aborted` ids among *records*, all of which lie below the stable offset.

    *given*: the offsets that a reader of committed records was given. Only transactional *sessions*
    are told what was committed; a record that was not given is of an aborted transaction.
    """
    sightings = []
    for record in records:
        message = identity_of(record, scan.topic)
        committed = record.offset in given
        if message is None or (committed and message[0] not in sessions):
            continue
        sightings.append(
            Sighting(
                session=message[0],
                topic=scan.topic,
                seq=message[1],
                tier=Tier.COMMITTED if committed else Tier.ABORTED,
                at_ms=scan.began_ms,
                partition=scan.partition,
                topic_id=scan.topic_id,
            )
        )
    made = encode_sightings(sightings, reporter, part, scan.ended_ms, first_part=part)
    return [replace(report, after_ms=scan.after_ms) for report in made]


def offsets_of(records: Iterable[LogRecord]) -> frozenset[int]:
    """Where *records* lie."""
    return frozenset(record.offset for record in records)
