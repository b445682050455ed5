"""What a new leader epoch may have taken: which sightings are read again, and until when."""

from __future__ import annotations

from dataclasses import replace

from acktrail.audit.wire import Report
from acktrail.contracts.vocabulary import Tier
from ingest.sources.scan_epochs import LATE_REPORTS_MS, NewEpoch, seen_before
from ingest.sources.scan_plan import Suspect

PLACE = ("t", 0)


def delivered(last: int, received: int, **more) -> Report:
    facts = {"partition": 0, "first_offset": 0, "last_offset": last, "received_ms": received}
    return Report("ab" * 16, Tier.DELIVERED, "t", 1, 0, **{**facts, **more})


def scanned(epoch: int | None, number: int, last: int, received: int) -> list[Report]:
    covered = replace(delivered(last, received), tier=Tier.SCANNED, number=number)
    found = replace(covered, tier=Tier.IN_LOG, leader_epoch=2)
    return [replace(covered, leader_epoch=epoch), found]


READ = delivered(150, 900)
CASES = [
    # case                              reports                         from   what is read again
    ("a clean election", [READ], 151, None),
    ("a cut below what was read", [READ], 100, Suspect(100, 150, 900)),
    ("of several the last one", [READ, delivered(120, 950)], 100, Suspect(100, 150, 950)),
    ("what lies below stays", [READ, delivered(99, 950)], 100, Suspect(100, 150, 900)),
    ("an earlier scan saw it", scanned(4, 7, 130, 900), 100, Suspect(100, 130, 900)),
    ("a scan of no known epoch", scanned(None, 7, 130, 900), 100, Suspect(100, 130, 900)),
    ("a scan under the new epoch saw it", scanned(5, 7, 130, 900), 100, None),
    ("it was received too late to be older", [delivered(150, 1_001)], 100, None),
    ("another partition", [delivered(150, 900, partition=1)], 100, None),
    ("a topic of that name that was deleted", [delivered(150, 900, topic_id="x")], 100, None),
]


def test_named_cases():
    for name, listed, start, wanted in CASES:
        seen = seen_before(listed, PLACE, "id", epoch=5, until_ms=1_000)
        assert seen.from_offset(start) == wanted, name


def test_it_is_checked_soon_and_again_when_late_reports_have_come():
    new = NewEpoch(verified=4, epoch=5, noticed_ms=1_000)
    assert new.due_ms(60_000) == 61_000
    new.checked = 1
    assert new.due_ms(60_000) == 1_000 + LATE_REPORTS_MS
    assert new.due_ms(600_000) == 1_000 + 1_200_000, "settling takes longer than late reports"
