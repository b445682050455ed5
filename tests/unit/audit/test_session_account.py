"""The accounts of a session's blocks: exact where counts alone would see nothing."""

from __future__ import annotations

from dataclasses import replace

from acktrail.audit.session_account import accounts_of
from acktrail.audit.topic_evidence import topic_of
from acktrail.audit.wire import BLOCK_IDS, Sighting, encode_sightings
from acktrail.contracts.vocabulary import Tier
from tests.worlds.evidence import Evidence
from tests.worlds.judged import session_rows

MINUTE = 1_800_000_000_000 - 1_800_000_000_000 % 60_000


def scanned(first, last, began):
    return {
        "kind": "scanned", "partition": 0, "first_offset": first, "last_offset": last,
        "after_ms": began, "began_ms": began, "closed": True, "reporter": "scan",
        "number": 1, "records": 1_000, "topic_id": None, "unnamed": None,
    }  # fmt: skip


def test_ten_lost_and_ten_duplicated_in_one_minute():
    """Per minute 1,000 were sent and 1,000 are stored: whoever counts sees nothing."""
    sent = range(1_000)
    lost = set(range(200, 210))
    doubled = set(range(700, 710))
    log = [seq for seq in sent if seq not in lost for _ in range(2 if seq in doubled else 1)]
    assert len(log) == len(sent)
    at = MINUTE + 1_000
    told = [Sighting("s", "t", q, Tier.ACKED, at, 0, offset=q) for q in sent]
    seen = [Sighting("s", "t", q, Tier.IN_LOG, at + 5_000, 0, offset=o) for o, q in enumerate(log)]
    evidence = Evidence(
        [
            replace(report, received_ms=report.reported_ms)
            for report in encode_sightings(told, "p", 1, at)
            + encode_sightings(seen, "scan", 1, at + 5_000)
        ]
    )
    asked = {
        "kind": "state", "partition": 0, "at_ms": at, "after_ms": 0, "topic_id": None,
        "earliest_offset": 0, "latest_offset": 0, "leader_epoch": 0,
    }  # fmt: skip
    topic = topic_of([asked, scanned(0, len(log) - 1, at + 5_000)])
    (account,) = accounts_of(session_rows(evidence, "s"), topic)
    assert account["sent"] == account["acked"] == 1_000
    assert account["lost_after_ack"] == 10
    assert account["duplicates"] == 10
    assert account["residual"] == 0
    (finding,) = account["findings"]
    assert (finding.first_seq, finding.last_seq, finding.count) == (200, 209, 10)
    assert (finding.first_offset, finding.last_offset, finding.partition) == (200, 209, 0)


def test_ids_across_blocks_and_those_nobody_reported():
    """A higher id was handed over, so the lower ones were: none is forgotten."""
    at = MINUTE
    told = [Sighting("s", "t", q, Tier.ACKED, at, 0, offset=q) for q in (0, 1, BLOCK_IDS + 4)]
    evidence = Evidence(encode_sightings(told, "p", 1, at))
    first, second = accounts_of(session_rows(evidence, "s"), topic_of([]))
    assert (first["sent"], second["sent"]) == (BLOCK_IDS, 5)
    assert first["pending"] == BLOCK_IDS
