"""What a new leader epoch may have taken: sightings that are older than it, at or above its start.

Pure. A record that a group or a scan has seen was in the log then. A leader of a newer epoch may
have begun below it, and nobody who reads on would notice. So where the first record of a newer
epoch lies below sightings, these are read again: once soon after the new epoch is noticed, and once
when late reports of what was seen before it have arrived.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

from acktrail.audit.wire import Report
from acktrail.contracts.vocabulary import Tier
from ingest.sources.scan_plan import Place, Suspect

LATE_REPORTS_MS = 300_000
"""So long after a new epoch was noticed, reports may still be about what was there before it."""
SIGHTING_COLUMNS = (
    *("reporter", "topic", "topic_id", "partition", "tier", "number", "first_offset"),
    *("last_offset", "leader_epoch", "reported_at", "after_at", "read_at"),
)


@dataclass
class NewEpoch:
    """A leader epoch that a partition was not checked under yet."""

    verified: int
    """The newest epoch under which everything seen was checked."""
    epoch: int
    noticed_ms: int
    """The receipt at which it was noticed."""
    checked: int = 0
    """How many of the two checks are done."""

    def due_ms(self, settle_ms: int) -> int:
        """The receipt from which on the next check can be made."""
        return self.noticed_ms + (settle_ms if self.checked == 0 else late_ms(settle_ms))


def late_ms(settle_ms: int) -> int:
    """When the second check is made, after the new epoch was noticed."""
    return max(LATE_REPORTS_MS, 2 * settle_ms)


@dataclass(frozen=True)
class Seen:
    """The sightings of one partition that a newer epoch may have voided."""

    offsets: tuple[tuple[int, int], ...]
    """Last offset of each report, and its receipt."""

    @property
    def highest(self) -> int:
        """The highest offset that was seen; -1 for none."""
        return max((offset for offset, _ in self.offsets), default=-1)

    def from_offset(self, start: int) -> Suspect | None:
        """What to read again where the newer epochs begin at *start*; None: nothing."""
        above = [(offset, ms) for offset, ms in self.offsets if offset >= start]
        if not above:
            return None
        last, due = max(offset for offset, _ in above), max(ms for _, ms in above)
        return Suspect(start, last, due)


def seen_before(
    reports: Iterable[Report], place: Place, topic_id: str | None, epoch: int, until_ms: int
) -> Seen:
    """The sightings at *place* received up to *until_ms*, without what a scan saw under *epoch*.

    What a group received has no epoch that can be relied on: a report covers several records.
    """
    here = [
        r
        for r in reports
        if (r.topic, r.partition) == place
        and not (topic_id and r.topic_id and r.topic_id != topic_id)
        and r.last_offset is not None
        and r.received_ms is not None
        and r.received_ms <= until_ms
    ]
    scanned = {
        (r.reporter, r.number): r.leader_epoch
        for r in here
        if r.tier is Tier.SCANNED and r.leader_epoch is not None
    }
    return Seen(
        tuple(
            (r.last_offset, r.received_ms)
            for r in here
            if r.last_offset is not None
            and r.received_ms is not None
            and (
                r.tier is Tier.DELIVERED
                or (r.tier is Tier.IN_LOG and scanned.get((r.reporter, r.number), -1) < epoch)
            )
        )
    )
