"""Losses of one cause, place and time are one incident, and one sentence."""

from __future__ import annotations

import pytest

from acktrail.audit.causes import LOSSES
from acktrail.audit.incidents import group_losses, incident_row

COPIES = "acks=all with min.insync.replicas=2"


def loss(session, first_ms, last_ms, **more):
    return {
        "cluster": "c", "topic": "payments", "group": "", "state": "lost_after_ack",
        "cause": "unclean_election", "session": session, "first_seq": 0, "count": 10,
        "first_ms": first_ms, "last_ms": last_ms, "client_id": session, "partition": 0,
        "host": f"{session}-1", "first_offset": 100, "last_offset": 109, "reason": "scanned_past",
        "error": None, "told": False, "confidence": "exact", "because": "why", "evidence": ["k"],
        **more,
    }  # fmt: skip


def test_one_election_over_many_sessions_is_one_incident():
    events = [loss(f"s{i}", 1_000 + i, 2_000 + i) for i in range(5_000)]
    ((name, together),) = group_losses(events)
    row = incident_row(name, together)
    assert (row["ids"], row["sessions"], row["events"]) == (50_000, 5_000, 5_000)
    assert len(row["client_ids"]) == len(row["hosts"]) == 20
    assert row["because"] == (
        "50000 acknowledged messages of 5000 clients (5000 hosts) on payments-0 are gone. "
        "Cause: why. Proof: a scan after the ack read offsets 100-109 and did not find them."
    )


def test_quiet_between_makes_two_and_the_order_makes_no_difference():
    events = [loss("a", 0, 10), loss("b", 700_000, 700_001), loss("c", 299_000, 299_100)]
    grouped = group_losses(events)
    assert [len(found) for _, found in grouped] == [2, 1]
    assert [name for name, _ in grouped] == [name for name, _ in group_losses(events[::-1])]


SENTENCES = [
    ("one client on one host",
     [loss("pay", 0, 9, count=176, first_offset=1260, last_offset=1435,
           because=f"acks=1, and the leader failed. Fix: {COPIES}")],
     "176 acknowledged messages of pay (host pay-1) on payments-0 are gone. Cause: acks=1, and the "
     f"leader failed. Fix: {COPIES}. Proof: a scan after the ack read offsets 1260-1435 and did "
     "not find them."),
    ("one message", [loss("pay", 0, 9, count=1, last_offset=100)],
     "1 acknowledged message of pay (host pay-1) on payments-0 is gone. Cause: why. "
     "Proof: a scan after the ack read offset 100 and did not find them."),
    ("two hosts of one client, two partitions",
     [loss("s1", 0, 9, client_id="pay", host="a"),
      loss("s2", 0, 9, client_id="pay", host="b", partition=3)],
     "20 acknowledged messages of pay (hosts a, b) on payments (partitions 0, 3) are gone. "
     "Cause: why. Proof: a scan after the ack read their offsets and did not find them."),
    ("nobody knows the client", [loss("s", 0, 9, client_id=None, host=None, partition=None)],
     "10 acknowledged messages of one producer on payments are gone. Cause: why. "
     "Proof: a scan after the ack read offsets 100-109 and did not find them."),
    ("a group that skipped",
     [loss("pay", 0, 9, state="skipped_by_consumer", group="billing", reason="jumped_over")],
     "10 messages of pay (host pay-1) on payments-0 were skipped by billing. Cause: why. "
     "Proof: a member read on after offsets 100-109 without reading them."),
    ("refused",
     [loss("pay", 0, 9, state="rejected", reason="told", error="RecordTooLargeException",
           told=True)],
     "10 messages of pay (host pay-1) on payments-0 were not stored. The application got "
     "an error. Cause: why. Proof: the client reported RecordTooLargeException."),
]  # fmt: skip


@pytest.mark.parametrize("case", SENTENCES, ids=lambda case: case[0])
def test_the_sentence_says_who_where_why_and_what_to_do(case):
    _, events, wanted = case
    assert incident_row("i", events)["because"] == wanted


@pytest.mark.parametrize(
    ("told", "wanted"),
    [
        ((True, True), " The application got an error."),
        ((True, False), " The application got no error for some of them."),
        ((False, False), " The application got no error."),
    ],
)
def test_the_sentence_says_whether_the_application_knows(told, wanted):
    events = [loss(f"s{n}", 0, 9, state="lost_in_crash", told=each) for n, each in enumerate(told)]
    assert incident_row("i", events)["because"].count(wanted) == 1


@pytest.mark.parametrize("state", LOSSES, ids=lambda state: state.value)
def test_every_loss_has_a_sentence_without_repetition(state):
    text = incident_row("i", [loss("pay", 0, 9, state=state.value, group="g")])["because"]
    clauses = [clause.strip(" .") for clause in text.replace(";", ".").split(".")]
    assert len(set(clauses)) == len(clauses), text
    assert "{" not in text


def test_who_has_the_weak_setting_can_be_read():
    """Of three hosts with one client id, the two that lost messages are named, and no other."""
    row = incident_row("i", [loss(f"s{h}", 0, 9, client_id="pay", host=h) for h in ("a", "c")])
    assert row["hosts"] == ["a", "c"]
    assert "(hosts a, c)" in row["because"]
