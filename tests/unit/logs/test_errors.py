"""What is known of an error, by any of its names."""

from __future__ import annotations

import pytest

from acktrail.logs.kafka_errors import catalogue, category, look_up, retriable, sarama_error

CASES = [
    # error, version, retriable, category
    ("NOT_ENOUGH_REPLICAS", None, True, "replication"),
    ("NotEnoughReplicasException", "2.8.2", True, "replication"),
    ("NOT_LEADER_FOR_PARTITION", "2.0.1", True, "leadership"),
    ("NotLeaderForPartitionError", None, True, "leadership"),
    ("MESSAGE_TOO_LARGE", None, False, "too_large"),
    ("TopicAuthorizationException", None, False, "authorization"),
    ("OUT_OF_ORDER_SEQUENCE_NUMBER", None, False, "sequence"),
    ("CONCURRENT_TRANSACTIONS", "2.8.2", False, "transaction"),
    ("CONCURRENT_TRANSACTIONS", "3.9.0", True, "transaction"),
    ("TimeoutException", None, True, "timeout"),
    ("Not enough in-sync replicas", None, True, "replication"),
    ("_MSG_TIMED_OUT", None, False, "timeout"),
    ("NO_SUCH_ERROR", None, None, None),
    (None, None, None, None),
]


@pytest.mark.parametrize(("error", "version", "again", "kind"), CASES)
def test_an_error(error, version, again, kind):
    assert (retriable(error, version), category(error)) == (again, kind)


def test_every_code_has_an_exception_and_a_category():
    for error in catalogue().values():
        assert error.exception
        assert error.category


def test_what_may_be_stored_although_it_failed():
    stored = {e.name for e in catalogue().values() if e.may_be_stored}
    assert stored == {"REQUEST_TIMED_OUT", "NETWORK_EXCEPTION", "NOT_ENOUGH_REPLICAS_AFTER_APPEND"}


def test_saramas_words():
    said = "Tried to send a message to a replica that is not the leader for some partition."
    assert sarama_error(said) == "NOT_LEADER_FOR_PARTITION"
    assert sarama_error("something new") is None
    assert look_up("NOT_LEADER_FOR_PARTITION") is look_up("NOT_LEADER_OR_FOLLOWER")
