"""Why clients and groups lost records: the loss, the facts near it, and what is said of it.

What the log lost is in test_log_causes.py.
"""

from __future__ import annotations

from dataclasses import replace

import pytest

from acktrail.audit.causes import LOSSES, RULES, cause_of
from acktrail.audit.loss_evidence import WINDOW_MS, Fact, Loss
from acktrail.audit.reasons import CLAUSES, Reason
from acktrail.contracts.vocabulary import Cause, Confidence, State
from tests.unit.audit.leader_evidence import AT, HOUR, LOST
from tests.unit.audit.test_log_causes import CASES as OF_THE_LOG

TOLD = replace(LOST, state="rejected", reason="told", partition=None, told=True, acked=False,
               first_offset=None, last_offset=None)  # fmt: skip
MAYBE = replace(TOLD, state="lost_indeterminate", reason="complete_scan")
SKIPPED = replace(LOST, state="skipped_by_consumer", reason="jumped_over")
RETRY = Fact("retry", "r", AT, partition=0, client_id="pay", host="a", error="NOT_ENOUGH_REPLICAS",
             attempts_left=0)  # fmt: skip
CLOSED = Fact("dropped_at_close", "d", AT, client_id="pay", host="a")
RESET = Fact("offset_reset", "o", AT + 5 * HOUR, partition=0, group="billing", offset=804)


def told(error, **more):
    return replace(TOLD, error=error, **more)


CASES = [
    # case, finding, settings, facts -> cause, confidence
    ("acks=0", replace(LOST, state="lost_unacked"), {"acks": "0"}, (),
     "fire_and_forget", "same_client"),
    ("no metadata", told("TimeoutException(metadata)"), {}, (), "metadata_timeout", "exact"),
    ("no such topic, librdkafka", told("_UNKNOWN_TOPIC"), {}, (), "metadata_timeout", "exact"),
    ("no buffer", told("TimeoutException(buffer)"), {}, (), "buffer_exhausted", "exact"),
    ("no queue, librdkafka", told("_QUEUE_FULL"), {}, (), "buffer_exhausted", "exact"),
    ("too large", told("RecordTooLargeException"), {}, (), "record_too_large", "exact"),
    ("too large, librdkafka", told("MSG_SIZE_TOO_LARGE"), {}, (), "record_too_large", "exact"),
    ("may not write", told("TopicAuthorizationException"), {}, (), "authorization", "exact"),
    ("may not write, librdkafka", told("TOPIC_AUTHORIZATION_FAILED"), {}, (),
     "authorization", "exact"),
    ("not to be serialized", told("SerializationException"), {}, (), "serialization", "exact"),
    ("purged", told("_PURGE_QUEUE"), {}, (), "dropped_at_close", "exact"),
    ("time ran out", replace(MAYBE, error="TimeoutException(expired)"),
     {"retries": "2147483647"}, (RETRY,), "delivery_timeout", "exact"),
    ("time ran out, librdkafka", replace(MAYBE, error="_MSG_TIMED_OUT"), {}, (),
     "delivery_timeout", "exact"),
    ("retries ran out, with the line", told("NotEnoughReplicasException"), {"retries": "5"},
     (RETRY,), "retries_exhausted", "same_client"),
    ("retries ran out, no log", told("NotEnoughReplicasException"), {"retries": "5"}, (),
     "retries_exhausted", "same_client"),
    ("another client's retries", told("NotEnoughReplicasException"), {},
     (replace(RETRY, client_id="other"),), "not_enough_replicas", "exact"),
    ("another host's retries", told("NotEnoughReplicasException"), {},
     (replace(RETRY, host="b"),), "not_enough_replicas", "exact"),
    ("not enough replicas, not retried", told("NotEnoughReplicasException"), {"retries": "0"}, (),
     "not_enough_replicas", "exact"),
    ("a passing error, not retried", replace(MAYBE, error="NetworkException"), {"retries": "0"},
     (), "retries_exhausted", "same_client"),
    ("closed too soon", replace(MAYBE, error="KafkaException"), {}, (CLOSED,),
     "dropped_at_close", "same_client"),
    ("closed too soon, clocks an hour off: its log has its own clock",
     replace(MAYBE, error="KafkaException", first_received_ms=AT + HOUR,
             last_received_ms=AT + HOUR), {}, (CLOSED,), "dropped_at_close", "same_client"),
    ("closed later", replace(MAYBE, error="KafkaException"), {},
     (replace(CLOSED, at_ms=AT + WINDOW_MS + 1_001),), "unknown", "none"),
    ("an error nobody knows", replace(MAYBE, error="Strange"), {}, (), "unknown", "none"),
    ("the process died", replace(LOST, state="lost_in_crash"), {}, (),
     "producer_crash", "same_client"),
    ("closed with records unsent", replace(LOST, state="lost_in_crash"), {}, (CLOSED,),
     "dropped_at_close", "same_client"),
    ("nobody knows", replace(LOST, state="unaccounted"), {}, (), "unknown", "none"),
    ("jumped, and the consumer printed where to", SKIPPED, {}, (RESET,), "consumer_reset", "exact"),
    ("jumped, and it printed a later offset", SKIPPED, {}, (replace(RESET, offset=900),),
     "consumer_reset", "same_client"),
    ("jumped, without a line", SKIPPED, {}, (), "consumer_reset", "same_client"),
    ("jumped, and another group was reset", SKIPPED, {}, (replace(RESET, group="audit"),),
     "consumer_reset", "same_client"),
    ("jumped, and another partition was reset", SKIPPED, {}, (replace(RESET, partition=4),),
     "consumer_reset", "same_client"),
    ("reset before these offsets", SKIPPED, {}, (replace(RESET, offset=0),),
     "consumer_reset", "same_client"),
    ("moved while nobody was in the group", replace(SKIPPED, reason="reset_while_empty"), {}, (),
     "consumer_reset", "same_client"),
    ("committed first", replace(SKIPPED, reason="committed_unprocessed"), {}, (),
     "commit_before_processing", "exact"),
    ("deleted first", replace(LOST, state="expired_before_read", reason="expired"), {}, (),
     "retention", "exact"),
]  # fmt: skip


def loss_of(finding, settings, facts):
    return Loss(finding, "billing", "pay", settings, facts, "a", "ledger:1", "orders")


@pytest.mark.parametrize("case", CASES, ids=lambda case: case[0])
def test_cause(case):
    _, finding, settings, facts, cause, confidence = case
    found = cause_of(loss_of(finding, settings, facts))
    assert (found.cause, found.confidence) == (cause, confidence)
    assert found.because
    assert set(found.evidence) <= {f.key for f in facts} | {"ledger:1"}


def test_a_reset_is_evidence_only_of_its_own_group_partition_and_offsets():
    for other in ({"group": "audit"}, {"partition": 4}, {"offset": 0}):
        found = cause_of(loss_of(SKIPPED, {}, (replace(RESET, **other),)))
        assert RESET.key not in found.evidence
    assert RESET.key in cause_of(loss_of(SKIPPED, {}, (RESET,))).evidence


def test_nothing_is_exact_without_a_row():
    for _, finding, settings, *_ in CASES:
        found = cause_of(Loss(finding, "billing", "pay", settings))
        assert found.confidence != Confidence.EXACT


def test_every_cause_has_a_case():
    cases = [*CASES, *OF_THE_LOG]
    assert {case[4] for case in cases} == {c.value for c in Cause}
    assert {case[5] for case in cases} | {"same_broker"} == {c.value for c in Confidence}


def test_every_rule_can_apply():
    """No rule is hidden by the ones before it: each is the first to apply in some case."""
    losses = [loss_of(finding, settings, facts) for _, finding, settings, facts, *_ in CASES]
    losses += [
        loss_of(finding, {} if acks is None else {"acks": acks}, facts)
        for _, finding, acks, facts, *_ in OF_THE_LOG
    ]
    first = set()
    for loss in losses:
        for rule in RULES[State(loss.finding.state)]:
            if rule(loss) is not None:
                first.add(rule.__name__)
                break
    assert first == {rule.__name__ for rules in RULES.values() for rule in rules}


def test_every_reason_has_its_clause():
    assert set(CLAUSES) == set(Reason)
    assert State.DELIVERED not in LOSSES
