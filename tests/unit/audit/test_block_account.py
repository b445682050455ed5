"""The accounts of single blocks: exact where counts alone would see nothing."""

from __future__ import annotations

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from acktrail.aliases import Aliases
from acktrail.audit.block_account import StateRange
from acktrail.audit.incidents import group_losses, incident_row
from acktrail.audit.intervals import Coverage
from acktrail.audit.parts import Part, fields_of, newest, part_of
from acktrail.audit.wire import BLOCK_IDS, Sighting, encode_sightings
from acktrail.contracts.arrow import arrow_type
from acktrail.contracts.silver import AUDIT_BLOCKS
from acktrail.contracts.vocabulary import Tier
from pipelines.gold.delivery_ledger import _balance, accounts_of
from pipelines.gold.ledger_evidence import topic_of
from pipelines.gold.loss_events import merge
from tests.worlds.judged import session_rows
from tests.worlds.world import Evidence

MINUTE = 1_800_000_000_000 - 1_800_000_000_000 % 60_000


def scanned(first, last, began):
    return {
        "kind": "scanned", "partition": 0, "first_offset": first, "last_offset": last,
        "began_ms": began, "ended_ms": began, "closed": True, "group": "",
        "reporter": "s", "part": 0, "number": 0, "assignment": 0,
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
        encode_sightings(told, "p", 1, at) + encode_sightings(seen, "scan", 1, at + 5_000)
    )
    topic = topic_of([scanned(0, len(log) - 1, at + 5_000)])
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


def test_accounts_have_the_names_that_the_alias_rules_give():
    told = [Sighting("s", "t", q, Tier.ACKED, MINUTE, 0, offset=q) for q in range(3)]
    evidence = Evidence(encode_sightings(told, "p", 1, MINUTE))
    beat = {
        "kind": "heartbeat", "ended_ms": MINUTE, "number": 1, "reporter": "p", "minutes": [],
        "settings": {"client_id": "legacy-p", "host": "pod-7"}, "closed": True,
    }  # fmt: skip
    place = {"cluster": "c", "topic": "t", "slice": 0, "session": "s"}
    rows = [place | row for row in (beat, *session_rows(evidence, "s"))]
    batch = pa.RecordBatch.from_pylist(rows, pa.unify_schemas([_schema(row) for row in rows]))
    rules = [{"field": "client_id", "match": "^legacy-(.+)$", "client_id": r"\1", "host": "app"}]
    for aliases, names in ((Aliases(), ("legacy-p", "pod-7")), (Aliases(rules), ("p", "app"))):
        (made,) = _balance([batch], aliases)
        (account,) = made.to_pylist()
        assert (account["client_id"], account["host"]) == names


def _schema(row):
    return pa.RecordBatch.from_pylist([row]).schema


RANGES = st.lists(st.tuples(st.integers(0, 60), st.integers(0, 60)), max_size=8)


@given(RANGES, st.integers(0, 70), st.integers(0, 70))
def test_coverage_against_sets(ranges, first, last):
    covered = Coverage(ranges)
    there = {o for a, b in ranges for o in range(a, b + 1)}
    reach = first - 1
    while reach + 1 in there:
        reach += 1
    assert covered.reach(first) == reach
    if first <= last:
        wanted = set(range(first, last + 1)) <= there
        assert covered.covers(np.array([first]), np.array([last])).tolist() == [wanted]


PARTS = st.lists(
    st.builds(
        Part,
        reporter=st.sampled_from(["a", "b"]),
        part=st.integers(0, 2),
        number=st.integers(0, 5),
        ids=st.sampled_from([b"\x00", b"\x00\x00\x05", b"\x02\x00\x05\x08"]),
        records=st.integers(0, 9),
        leader_epoch=st.none() | st.integers(0, 3),
        ended_ms=st.none() | st.integers(0, 9),
        error=st.text(max_size=5),
    ),
    max_size=12,
)


@given(PARTS, st.randoms())
def test_newest_wins_whatever_the_order_and_however_often(parts, chance):
    again = parts + chance.choices(parts, k=4) if parts else []
    chance.shuffle(again)
    found = newest(again)
    assert [(p.reporter, p.part, p.number) for p in found] == [
        (p.reporter, p.part, p.number) for p in newest(parts)
    ]
    kind = arrow_type(AUDIT_BLOCKS.column("parts")).value_type
    stored = pa.array([fields_of(part) for part in found], kind).to_pylist()
    assert [part_of(row) for row in stored] == found


def finding(first, last, **more):
    given_ = {"state": "rejected", "reason": "told", "error": "E", **more}
    base = {
        "partition": None, "first_offset": None, "last_offset": None, "first_ms": 5, "last_ms": 9,
        "told": True, "acked": False,
    }  # fmt: skip
    return StateRange(first, last, **{**base, **given_})


@pytest.mark.parametrize(
    ("case", "found", "wanted"),
    [
        ("across a block", [finding(0, 9), finding(10, 19)], [(0, 19)]),
        ("a gap between", [finding(0, 9), finding(11, 19)], [(0, 9), (11, 19)]),
        ("another error", [finding(0, 9), finding(10, 19, error="F")], [(0, 9), (10, 19)]),
        ("in any order", [finding(10, 19), finding(0, 9)], [(0, 19)]),
        ("none", [], []),
    ],
)
def test_ranges_that_follow_are_one(case, found, wanted):
    assert [(f.first_seq, f.last_seq) for f in merge(found)] == wanted


def loss(session, first_ms, last_ms, **more):
    return {
        "cluster": "c", "topic": "t", "group": "", "state": "lost_after_ack",
        "cause": "unclean_election", "session": session, "first_seq": 0, "count": 10,
        "first_ms": first_ms, "last_ms": last_ms, "client_id": session, "partition": 0,
        "told": False, "confidence": "exact", "because": "why", "evidence": ["k"], **more,
    }  # fmt: skip


def test_one_election_over_many_sessions_is_one_incident():
    events = [loss(f"s{i}", 1_000 + i, 2_000 + i) for i in range(5_000)]
    ((name, together),) = group_losses(events)
    row = incident_row(name, together)
    assert (row["ids"], row["sessions"], row["events"]) == (50_000, 5_000, 5_000)
    assert len(row["client_ids"]) == 20
    assert row["because"] == "50000 messages of 5000 producers to t were lost: why."


def test_quiet_between_makes_two_and_the_order_makes_no_difference():
    events = [loss("a", 0, 10), loss("b", 700_000, 700_001), loss("c", 299_000, 299_100)]
    grouped = group_losses(events)
    assert [len(found) for _, found in grouped] == [2, 1]
    assert [name for name, _ in grouped] == [name for name, _ in group_losses(events[::-1])]
