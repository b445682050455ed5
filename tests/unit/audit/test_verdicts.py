"""What becomes of an id in the log: one case for each sentence of the rules.

Receipts are small numbers: 10 is when the report was received, scans begin after 20 or later.
"""

from __future__ import annotations

from dataclasses import replace

import pytest

from acktrail.audit.session_account import accounts_of
from acktrail.audit.topic_evidence import topic_of
from acktrail.audit.wire import Sighting, encode_ids, encode_sightings
from acktrail.contracts.vocabulary import Tier
from tests.worlds.evidence import Evidence
from tests.worlds.judged import session_rows

LAG = 5
TOPIC = "orders"
DELETE = {"kind": "policy", "partition": None, "at_ms": 0, "compacted": False}
COMPACT = {"kind": "policy", "partition": None, "at_ms": 0, "compacted": True}
UNKNOWN = {"kind": "policy", "partition": None, "at_ms": 0, "compacted": None}
REPLICAS = {"kind": "replica_lag", "partition": None, "replica_lag_ms": LAG}


def told(tier, *seqs, received=10, offset=None, error=None, topic_id=None):
    """Ids of the session, as its producer reported them; offsets from *offset* on."""
    seen = [
        Sighting("s", TOPIC, seq, tier, 1_000, -1 if offset is None else 0,
                 None if offset is None else offset + i, error=error, topic_id=topic_id)
        for i, seq in enumerate(seqs)
    ]  # fmt: skip
    made = encode_sightings(seen, "p", 1, 1_000, first_part=received)
    return [replace(report, received_ms=received) for report in made]


def seen(*places, scan=1, received=30, tier=Tier.IN_LOG, epoch=None, group="", topic_id="t1"):
    """Ids and their offsets, as a scan found them or a group received them."""
    found = [
        Sighting("s", TOPIC, seq, tier, 1_000, 0, offset, group, epoch, topic_id=topic_id)
        for seq, offset in places
    ]
    made = encode_sightings(found, "scan" if tier is Tier.IN_LOG else "m", scan, 1_000, scan * 100)
    return [replace(report, received_ms=received) for report in made]


def scan(
    first,
    last,
    after=20,
    number=1,
    records=None,
    topic_id="t1",
    closed=True,
    unnamed=(),
    began=None,
):
    return {
        "kind": "scanned", "partition": 0, "first_offset": first, "last_offset": last,
        "after_ms": after, "began_ms": began or after, "closed": closed, "reporter": "scan",
        "number": number,
        "records": last - first + 1 if records is None else records, "topic_id": topic_id,
        "unnamed": encode_ids([o - first for o in unnamed]) if unnamed else None,
    }  # fmt: skip


def state(latest, epoch=0, after=5, at=0, earliest=0, topic_id="t1"):
    return {
        "kind": "state", "partition": 0, "at_ms": at, "after_ms": after, "topic_id": topic_id,
        "earliest_offset": earliest, "latest_offset": latest, "leader_epoch": epoch,
    }  # fmt: skip


def beat(received=15, closed=False, exited=False, **settings):
    return {
        "kind": "heartbeat", "ended_ms": 1_000, "number": 1, "reporter": "p", "minutes": [],
        "settings": settings, "closed": closed, "exited": exited, "received_ms": received,
    }  # fmt: skip


def successor(received):
    return {"kind": "successor", "received_ms": received}


def acks(records, received=12):
    """Acks of which no id is known."""
    return {
        "kind": "acked_offsets", "partition": 0, "reporter": "p", "part": 1, "number": 1,
        "block": 0, "ids": encode_ids([7]), "records": records, "received_ms": received,
    }  # fmt: skip


ACKED = told(Tier.ACKED, 1, offset=7)
REFUSED = told(Tier.FAILED, 1, error="NotEnoughReplicasException")
EXPIRED = told(Tier.INDETERMINATE, 1, error="TimeoutException(expired)")
NEVER_SENT = told(Tier.FAILED, 1, error="TimeoutException(metadata)")
SENT = told(Tier.SENT, 1)
UNACKED = told(Tier.SENT_UNACKED, 1)
ASKED = state(10)
WAITS = ("pending", "not_scanned")
LOST = ("lost_after_ack", "scanned_past")

CASES = {
    # acknowledged, with an offset
    "scanned past": (ACKED, [ASKED, scan(0, 9)], *LOST),
    "not scanned": (ACKED, [ASKED], *WAITS),
    "scanned before the ack was received": (ACKED, [ASKED, scan(0, 9, 9)], *WAITS),
    "scanned nobody knows when": (ACKED, [ASKED, scan(0, 9, None)], *WAITS),
    "scanned below it": (ACKED, [ASKED, scan(0, 6, closed=False)], *WAITS),
    "nothing covered, end at the offset": (ACKED, [ASKED, state(7, 0, 20)], *WAITS),
    "found": (ACKED + seen((1, 7)), [ASKED, scan(0, 9)], "delivered", ""),
    "found elsewhere": (ACKED + seen((1, 3)), [ASKED, scan(0, 9)], "delivered", ""),
    "a record without an id at its offset": (
        ACKED, [ASKED, scan(0, 9, unnamed=(7,))], "inconclusive", "unnamed"),
    "a record without an id beside it": (
        ACKED, [ASKED, scan(0, 9, unnamed=(6, 8))], *LOST),
    "a record without an id where a retry may have stored it": (
        told(Tier.ACKED, 0, 1, offset=6), [ASKED, scan(0, 9, unnamed=(6,))],
        "inconclusive", "unnamed"),
    "a record without an id there, and an idempotent producer": (
        told(Tier.ACKED, 0, 1, offset=6) + seen((0, 6)),
        [ASKED, beat(**{"enable.idempotence": "true"}), scan(0, 9, unnamed=(6,))], *LOST),
    "a record without an id below the end, where a retry may have stored it": (
        told(Tier.ACKED, 0, 1, offset=6),
        [ASKED, state(9, 0, 11), state(7, 1, 12), scan(0, 6, unnamed=(6,))],
        "inconclusive", "unnamed"),
    "gaps, policy delete": (ACKED, [ASKED, scan(0, 9, records=6)], *LOST),
    "gaps, policy not known": (
        ACKED, [ASKED, UNKNOWN, scan(0, 9, records=6)], "inconclusive", "policy_unknown"),
    "gaps, policy known since later": (
        ACKED, [ASKED, DELETE | {"at_ms": 11}, scan(0, 9, records=6)],
        "inconclusive", "policy_unknown"),
    "no gaps, policy not known": (
        ACKED, [ASKED, UNKNOWN, scan(0, 9)], *LOST),
    "gaps, compacted": (
        ACKED, [ASKED, COMPACT, scan(0, 9, records=6)], "inconclusive", "compacted"),
    "retention was first": (
        ACKED, [ASKED, state(10, earliest=8, after=20), scan(8, 9)], "inconclusive", "retention"),
    # cut off
    "the end under a higher epoch": (
        ACKED, [ASKED, state(9, 0, 11), state(5, 1, 12), scan(0, 4)],
        "lost_after_ack", "beyond_end"),
    "the end under the epoch it may have": (
        ACKED, [ASKED, state(5, 1, 12), scan(0, 4)], *WAITS),
    "a leader that was replaced answers": (
        ACKED, [ASKED, state(5, 1, 6), state(9, 0, 11), scan(0, 4)], *WAITS),
    "the end under a higher epoch, no scan": (
        ACKED, [ASKED, state(9, 0, 11), state(5, 1, 12)], *WAITS),
    "the end twice, long apart": (
        ACKED, [ASKED, state(5, 1, 12, at=100), state(5, 1, 12, at=999), scan(0, 4)], *WAITS),
    # a topic of the same name
    "two topics, none known": (
        ACKED, [ASKED, state(10, topic_id="t2", after=25), scan(0, 9, topic_id="t2")],
        "inconclusive", "topic_recreated"),
    "two topics, an earlier id lies in the second": (
        ACKED + seen((0, 0), topic_id="t2"),
        [ASKED, state(10, topic_id="t2", after=25), scan(0, 9, topic_id="t2")],
        "inconclusive", "topic_recreated"),
    "two topics, the producer named the first": (
        told(Tier.ACKED, 1, offset=7, topic_id="t1"),
        [ASKED, state(10, topic_id="t2", after=25), scan(0, 9, topic_id="t2")],
        *WAITS),
    "one topic, first asked about when nothing had been received": (
        ACKED, [state(10, after=0), scan(0, 9)], *LOST),
    "one topic, its id written in two ways": (
        ACKED, [state(10, topic_id="a+/b"), scan(0, 9, topic_id="a-_b")], *LOST),
    "one topic, first asked about when the session was known": (
        ACKED, [state(10, after=25), scan(0, 9)], "inconclusive", "topic_recreated"),
    # told that it failed
    "before the first send": (NEVER_SENT, [], "rejected", "told"),
    "before the first send, and found": (
        NEVER_SENT + seen((1, 7)), [ASKED, scan(0, 9)], "delivered", ""),
    "refused, not checked": (REFUSED, [ASKED], "pending", "told_not_checked"),
    "refused, absent": (REFUSED, [ASKED, scan(0, 9)], "rejected", "complete_scan"),
    "refused, scanned too soon": (REFUSED, [ASKED, scan(0, 9, 14)], "pending", "told_not_checked"),
    "refused, scanned late by a clock that is ahead": (
        REFUSED, [ASKED, scan(0, 9, 14, began=10**6)], "rejected", "complete_scan"),
    "refused, scanned by a clock that is behind": (
        REFUSED, [ASKED, scan(0, 9, 14, began=3)], "rejected", "complete_scan"),
    "refused, found": (REFUSED + seen((1, 7)), [ASKED, scan(0, 9)], "delivered", ""),
    "refused, scanned in part": (REFUSED, [ASKED, scan(3, 9)], "pending", "told_not_checked"),
    "refused, retention was first": (
        REFUSED, [ASKED, state(10, earliest=3, after=20), scan(3, 9)],
        "inconclusive", "retention"),
    "refused, a record without an id": (
        REFUSED, [ASKED, scan(0, 9, unnamed=(2,))], "inconclusive", "unnamed"),
    "refused, two scans without a gap": (
        REFUSED, [ASKED, scan(0, 4, closed=False), scan(5, 9, number=2)],
        "rejected", "complete_scan"),
    "expired, absent": (EXPIRED, [ASKED, scan(0, 9)], "lost_indeterminate", "complete_scan"),
    "acks=0, absent": (UNACKED, [ASKED, scan(0, 9)], "lost_unacked", "complete_scan"),
    "compacted, absent": (REFUSED, [ASKED, COMPACT, scan(0, 9)], "inconclusive", "compacted"),
    # no outcome
    "silent": (SENT, [ASKED, beat(), scan(0, 9)], "pending", "silent"),
    "its process ended": (
        SENT, [ASKED, beat(exited=True), scan(0, 9, 21)], "lost_in_crash", "complete_scan"),
    "scanned before it ended": (
        SENT, [ASKED, beat(exited=True), scan(0, 9, 14)], "pending", "no_complete_scan"),
    "closed in good order": (
        SENT, [ASKED, beat(closed=True), scan(0, 9, 21)], "unaccounted", "complete_scan"),
    "a successor": (
        SENT, [ASKED, beat(), successor(16), scan(0, 9, 22)], "lost_in_crash", "complete_scan"),
    "another session beside it": (
        SENT, [ASKED, beat(), successor(14), scan(0, 9, 22)], "pending", "silent"),
    # reports are missing
    "closed, an outcome is missing": (
        SENT, [ASKED, beat(closed=True) | {"outcomes": {"0": "1"}}, scan(0, 9, 21)],
        "inconclusive", "reports_missing"),
    "crashed, an outcome is missing": (
        SENT, [ASKED, beat() | {"outcomes": {"0": "1"}}, successor(16), scan(0, 9, 22)],
        "inconclusive", "reports_missing"),
    "closed, as many outcomes as it reported": (
        SENT, [ASKED, beat(closed=True) | {"outcomes": {"0": "0", "1": "5"}}, scan(0, 9, 21)],
        "unaccounted", "complete_scan"),
    "closed, outcomes thrown away": (
        SENT, [ASKED, beat(closed=True) | {"dropped": {"acked": "2"}}, scan(0, 9, 21)],
        "inconclusive", "reports_missing"),
    "closed, what was delivered thrown away": (
        SENT, [ASKED, beat(closed=True) | {"dropped": {"delivered": "2"}}, scan(0, 9, 21)],
        "unaccounted", "complete_scan"),
    "silent, outcomes thrown away": (
        SENT, [ASKED, beat() | {"dropped": {"acked": "2"}}, scan(0, 9, 21)],
        "pending", "silent"),
    # acks without ids
    "acks and errors are all there are": (
        told(Tier.SENT, 0, 1) + told(Tier.FAILED, 0, error="NOT_ENOUGH_REPLICAS"),
        [ASKED, beat(closed=True) | {"records": 2}, acks(1), state(10, 0, 16),
         scan(0, 9, 21) | {"leader_epoch": 1}],
        "lost_after_ack", "complete_scan"),
    "acks and errors are all there are, and the scan's leader is not known": (
        told(Tier.SENT, 0, 1) + told(Tier.FAILED, 0, error="NOT_ENOUGH_REPLICAS"),
        [ASKED, beat(closed=True) | {"records": 2}, acks(1), state(10, 0, 16), scan(0, 9, 21)],
        "pending", "no_complete_scan"),
    "one more id than outcomes": (
        told(Tier.SENT, 0, 1) + told(Tier.FAILED, 0, error="NOT_ENOUGH_REPLICAS"),
        [ASKED, beat(closed=True) | {"records": 3}, acks(1), scan(0, 9, 21)],
        "inconclusive", "acks_without_ids"),
    "more outcomes than ids": (
        told(Tier.SENT, 0, 1) + told(Tier.FAILED, 0, error="NOT_ENOUGH_REPLICAS"),
        [ASKED, beat(closed=True) | {"records": 2}, acks(2), scan(0, 9, 21)],
        "inconclusive", "acks_without_ids"),
    "acks and errors are all there are, and the producer lives": (
        told(Tier.SENT, 0, 1) + told(Tier.FAILED, 0, error="NOT_ENOUGH_REPLICAS"),
        [ASKED, beat() | {"records": 2}, acks(1), scan(0, 9, 21)],
        "pending", "silent"),
    "acks and errors are all there are, and it was killed": (
        told(Tier.SENT, 0, 1) + told(Tier.FAILED, 0, error="NOT_ENOUGH_REPLICAS"),
        [ASKED, beat(exited=True) | {"records": 2}, acks(1), scan(0, 9, 21)],
        "inconclusive", "acks_without_ids"),
    "acks without ids, thrown away": (
        told(Tier.SENT, 0, 1) + told(Tier.FAILED, 0, error="NOT_ENOUGH_REPLICAS"),
        [ASKED, beat(closed=True) | {"records": 2, "dropped": {"acked_offsets": "1"}}, acks(1),
         scan(0, 9, 21)],
        "inconclusive", "acks_without_ids"),
    # seen, and gone since
    "seen, then scanned past": (
        ACKED + seen((1, 7)), [ASKED, scan(0, 9), scan(0, 9, 40, 2)],
        *LOST),
    "seen twice, then scanned past": (
        ACKED + seen((1, 7)) + seen((1, 7), scan=2, received=50),
        [ASKED, scan(0, 9), scan(0, 9, 40, 2), scan(0, 9, 60, 3)],
        *LOST),
    "seen by the later scan alone": (
        ACKED + seen((1, 7), scan=2, received=50), [ASKED, scan(0, 9), scan(0, 9, 40, 2)],
        "delivered", ""),
    "received by a group, then cut under a higher epoch": (
        ACKED + seen((1, 7), tier=Tier.DELIVERED, group="g", epoch=0),
        [ASKED, state(9, 0, 11), state(5, 2, 12), scan(0, 4, 40)],
        "lost_after_ack", "beyond_end"),
    "received by a group, gaps since, policy not known": (
        ACKED + seen((1, 7), tier=Tier.DELIVERED, group="g", epoch=0),
        [ASKED, UNKNOWN, scan(0, 9, 40, records=5)], "delivered", ""),
    # transactions
    "transactional, in the log": (
        ACKED + seen((1, 7)), [ASKED, beat(**{"transactional.id": "x"}), scan(0, 9)],
        "inconclusive", "transactional"),
    "aborted, in the log, and no heartbeat": (
        told(Tier.ABORTED, 1) + seen((1, 7)), [ASKED, scan(0, 9)], "aborted", "none"),
    "transactional by an aborted id": (
        told(Tier.ABORTED, 2) + ACKED + seen((1, 7)), [ASKED, scan(0, 9)],
        "inconclusive", "transactional"),
    "transactional, absent": (
        ACKED, [ASKED, beat(**{"transactional.id": "x"}), scan(0, 9)],
        "inconclusive", "transactional"),
    "committed, in the log": (
        told(Tier.COMMITTED, 1) + ACKED + seen((1, 7)),
        [ASKED, beat(**{"transactional.id": "x"}), scan(0, 9)], "delivered", ""),
    "committed, absent": (
        told(Tier.COMMITTED, 1) + ACKED,
        [ASKED, beat(**{"transactional.id": "x"}), scan(0, 9)], *LOST),
    "committed, not scanned": (
        told(Tier.COMMITTED, 1) + ACKED, [ASKED, beat(**{"transactional.id": "x"})], *WAITS),
    "committed, its ack is not known, absent": (
        told(Tier.COMMITTED, 1), [ASKED, beat(**{"transactional.id": "x"}), scan(0, 9)],
        "lost_after_ack", "complete_scan"),
    "another id was committed, and no heartbeat": (
        told(Tier.COMMITTED, 2) + ACKED + seen((1, 7)), [ASKED, scan(0, 9)],
        "inconclusive", "transactional"),
    "committed and aborted, by two readers": (
        told(Tier.COMMITTED, 1) + told(Tier.ABORTED, 1) + ACKED + seen((1, 7)),
        [ASKED, scan(0, 9)], "inconclusive", "transactional"),
    "aborted": (
        told(Tier.ABORTED, 1) + ACKED, [ASKED, beat(**{"transactional.id": "x"}), scan(0, 9)],
        "aborted", "none"),
}  # fmt: skip


@pytest.mark.parametrize("name", CASES)
def test_an_id(name):
    reports, rows, state_of_it, reason = CASES[name]
    known = [DELETE, REPLICAS, *rows]
    own = [r for r in known if r["kind"] in ("heartbeat", "successor", "acked_offsets")]
    topic = topic_of([r for r in known if r not in own])  # the last policy counts
    accounts = accounts_of([*session_rows(Evidence(reports), "s"), *own], topic)
    (account,) = [a for a in accounts if not a["group"]]
    assert account["residual"] == 0
    findings = [f for f in account["findings"] if f.first_seq <= 1 <= f.last_seq]
    if state_of_it == "delivered":
        assert not findings
        return
    (finding,) = findings
    assert (finding.state, finding.reason) == (state_of_it, reason)


def test_what_is_expected_covers_the_reasons():
    from acktrail.audit.reasons import Reason

    of_groups = {
        "may_be_another",
        "reset_while_empty",
        "group_behind",
        "unreported_range",
        "jumped_over",
        "committed_unprocessed",
        "expired",
    }
    met = {reason for _, _, _, reason in CASES.values()}
    assert {r.value for r in Reason} - of_groups - met == set()
