"""Every cause has its cases: the loss, the facts near it, and what is said of it."""

from __future__ import annotations

from dataclasses import replace

import pytest

from acktrail.audit.block_account import StateRange
from acktrail.audit.causes import LOSSES, RULES, WINDOW_MS, Fact, Loss, cause_of
from acktrail.audit.reasons import CLAUSES, Reason
from acktrail.contracts.vocabulary import Cause, Confidence, State

AT = 1_800_000_000_000
LOST = StateRange(
    600, 803, "lost_after_ack", "scanned_past", 0, 600, 803, AT, AT + 1_000, False, True, ""
)
TOLD = replace(LOST, state="rejected", reason="told", partition=None, told=True, acked=False,
               first_offset=None, last_offset=None)  # fmt: skip
MAYBE = replace(TOLD, state="lost_indeterminate", reason="complete_scan")


def state(at, leader, epoch, isr=(1, 2, 3)):
    return Fact("cluster_state", f"s{at}", AT + at, 0, broker=leader, epoch=epoch, isr=isr)


CHANGE = (state(-500, 1, 0), state(500, 2, 1))
OUTSIDER = (state(-500, 1, 0, (1,)), state(500, 2, 1, (2,)))
UNCLEAN = Fact("unclean_election", "u", AT, 0, epoch=1)
CUT = Fact("truncation", "t", AT + 50, 0, offset=600, high_watermark=804)
USUAL_CUT = Fact("truncation", "t", AT + 50, 0, offset=600, high_watermark=600)
RETRY = Fact("retry", "r", AT, 0, client_id="pay", error="NOT_ENOUGH_REPLICAS", attempts_left=0)
CLOSED = Fact("dropped_at_close", "d", AT, client_id="pay")
RESET = Fact("offset_reset", "o", AT, 0, group="billing")


def told(error, **more):
    return replace(TOLD, error=error, **more)


CASES = [
    # case, finding, settings, facts -> cause, confidence
    (
        "unclean, as the controller says",
        LOST,
        {"acks": "all"},
        (UNCLEAN,),
        "unclean_election",
        "same_client",
    ),
    (
        "unclean, and the cut it led to",
        LOST,
        {"acks": "all"},
        (UNCLEAN, CUT),
        "unclean_election",
        "exact",
    ),
    (
        "a leader that was not in sync",
        LOST,
        {"acks": "all"},
        OUTSIDER,
        "unclean_election",
        "same_client",
    ),
    (
        "unclean elsewhere",
        LOST,
        {"acks": "all"},
        (replace(UNCLEAN, partition=7),),
        "unknown",
        "none",
    ),
    (
        "unclean an hour before",
        LOST,
        {"acks": "all"},
        (replace(UNCLEAN, at_ms=AT - WINDOW_MS - 1),),
        "unknown",
        "none",
    ),
    ("cut below the high watermark", LOST, {"acks": "all"}, (CUT,), "truncated", "exact"),
    (
        "cut above its offsets",
        LOST,
        {"acks": "all"},
        (replace(CUT, offset=900, high_watermark=950),),
        "unknown",
        "none",
    ),
    (
        "the usual cut of a follower",
        LOST,
        {"acks": "1"},
        (USUAL_CUT, *CHANGE),
        "acks_1_leader_change",
        "same_client",
    ),
    (
        "acks=1 and another leader",
        LOST,
        {"acks": "1"},
        CHANGE,
        "acks_1_leader_change",
        "same_client",
    ),
    ("acks unknown and another leader", LOST, {}, CHANGE, "acks_1_leader_change", "same_broker"),
    ("acks=all and another leader", LOST, {"acks": "all"}, CHANGE, "unknown", "none"),
    ("acks=-1 is all", LOST, {"acks": "-1"}, CHANGE, "unknown", "none"),
    ("acks=1 and the same leader", LOST, {"acks": "1"}, CHANGE[:1], "unknown", "none"),
    ("acks=0", replace(LOST, state="lost_unacked"), {"acks": "0"}, (), "fire_and_forget", "exact"),
    ("no metadata", told("TimeoutException(metadata)"), {}, (), "metadata_timeout", "exact"),
    ("no such topic, librdkafka", told("_UNKNOWN_TOPIC"), {}, (), "metadata_timeout", "exact"),
    ("no buffer", told("TimeoutException(buffer)"), {}, (), "buffer_exhausted", "exact"),
    ("no queue, librdkafka", told("_QUEUE_FULL"), {}, (), "buffer_exhausted", "exact"),
    ("too large", told("RecordTooLargeException"), {}, (), "record_too_large", "exact"),
    ("too large, librdkafka", told("MSG_SIZE_TOO_LARGE"), {}, (), "record_too_large", "exact"),
    ("may not write", told("TopicAuthorizationException"), {}, (), "authorization", "exact"),
    (
        "may not write, librdkafka",
        told("TOPIC_AUTHORIZATION_FAILED"),
        {},
        (),
        "authorization",
        "exact",
    ),
    ("not to be serialized", told("SerializationException"), {}, (), "serialization", "exact"),
    ("purged", told("_PURGE_QUEUE"), {}, (), "dropped_at_close", "exact"),
    (
        "time ran out",
        replace(MAYBE, error="TimeoutException(expired)"),
        {"retries": "2147483647"},
        (RETRY,),
        "delivery_timeout",
        "exact",
    ),
    (
        "time ran out, librdkafka",
        replace(MAYBE, error="_MSG_TIMED_OUT"),
        {},
        (),
        "delivery_timeout",
        "exact",
    ),
    (
        "retries ran out, with the line",
        told("NotEnoughReplicasException"),
        {"retries": "5"},
        (RETRY,),
        "retries_exhausted",
        "exact",
    ),
    (
        "retries ran out, no log",
        told("NotEnoughReplicasException"),
        {"retries": "5"},
        (),
        "retries_exhausted",
        "same_client",
    ),
    (
        "another client's retries",
        told("NotEnoughReplicasException"),
        {},
        (replace(RETRY, client_id="other"),),
        "not_enough_replicas",
        "exact",
    ),
    (
        "not enough replicas, not retried",
        told("NotEnoughReplicasException"),
        {"retries": "0"},
        (),
        "not_enough_replicas",
        "exact",
    ),
    (
        "a passing error, not retried",
        replace(MAYBE, error="NetworkException"),
        {"retries": "0"},
        (),
        "retries_exhausted",
        "same_client",
    ),
    (
        "closed too soon",
        replace(MAYBE, error="KafkaException"),
        {},
        (CLOSED,),
        "dropped_at_close",
        "same_client",
    ),
    ("an error nobody knows", replace(MAYBE, error="Strange"), {}, (), "unknown", "none"),
    ("the process died", replace(LOST, state="lost_in_crash"), {}, (), "producer_crash", "exact"),
    (
        "closed with records unsent",
        replace(LOST, state="lost_in_crash"),
        {},
        (CLOSED,),
        "dropped_at_close",
        "same_client",
    ),
    ("nobody knows", replace(LOST, state="unaccounted"), {}, (), "unknown", "none"),
    (
        "jumped, and the consumer says why",
        replace(LOST, state="skipped_by_consumer", reason="jumped_over"),
        {},
        (RESET,),
        "consumer_reset",
        "exact",
    ),
    (
        "jumped without a word",
        replace(LOST, state="skipped_by_consumer", reason="jumped_over"),
        {},
        (),
        "consumer_reset",
        "same_client",
    ),
    (
        "committed first",
        replace(LOST, state="skipped_by_consumer", reason="committed_unprocessed"),
        {},
        (),
        "commit_before_processing",
        "exact",
    ),
    (
        "deleted first",
        replace(LOST, state="expired_before_read", reason="expired"),
        {},
        (),
        "retention",
        "exact",
    ),
]


@pytest.mark.parametrize("case", CASES, ids=lambda case: case[0])
def test_cause(case):
    _, finding, settings, facts, cause, confidence = case
    found = cause_of(Loss(finding, "billing", "pay", settings, facts))
    assert (found.cause, found.confidence) == (cause, confidence)
    assert found.because
    assert set(found.evidence) <= {f.key for f in facts}


def test_every_cause_has_a_case():
    assert {case[4] for case in CASES} == {c.value for c in Cause}
    assert {case[5] for case in CASES} == {c.value for c in Confidence}


def test_every_rule_can_apply():
    """No rule is hidden by the ones before it: each is the first to apply in some case."""
    first = set()
    for _, finding, settings, facts, *_ in CASES:
        loss = Loss(finding, "billing", "pay", settings, facts)
        for rule in RULES[State(finding.state)]:
            if rule(loss) is not None:
                first.add(rule.__name__)
                break
    assert first == {rule.__name__ for rules in RULES.values() for rule in rules}


def test_every_reason_has_its_clause():
    assert set(CLAUSES) == set(Reason)
    assert State.DELIVERED not in LOSSES
