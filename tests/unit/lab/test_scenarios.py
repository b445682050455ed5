"""Laws of the scenarios: the names people know, bounded, and consistent in themselves."""

from __future__ import annotations

import importlib

import pytest

from acktrail.contracts.vocabulary import Cause
from lab.outcome import differences, is_idempotent, table
from lab.scenario import SOME, Expect
from lab.scenarios import SCENARIOS
from lab.steps import Start
from lab.truth import Sums, Truth

NAMES = {
    *("broker-down-before-metadata", "broker-down-after-metadata"),
    *("not-enough-replicas", "not-enough-replicas-default-retries"),
    *("election-acks-0", "election-acks-1", "election-acks-all"),
    *("lost-ack", "lost-ack-idempotent", "reordering"),
    *("acks-1-leader-crash", "unclean-election", "producer-crash"),
    *("rolling-restart", "controller-failover", "network-cut", "late-consumer"),
    "demo-incident",
}
each_scenario = pytest.mark.parametrize("scenario", SCENARIOS, ids=lambda s: s.name)


def test_the_names():
    assert [s.name for s in SCENARIOS if s.name not in NAMES] == []
    assert {s.name for s in SCENARIOS} == NAMES


@each_scenario
def test_a_file_holds_the_scenario_of_its_name(scenario):
    module = importlib.import_module(f"lab.scenarios.{scenario.name.replace('-', '_')}")
    assert module.SCENARIO is scenario


@each_scenario
def test_it_is_bounded(scenario):
    assert scenario.within_s <= 420
    assert all(producer.messages <= 10_000 for producer in scenario.producers)


@each_scenario
def test_every_producer_has_an_expected_outcome_and_a_known_cause(scenario):
    assert set(scenario.expect) == {producer.name for producer in scenario.producers}
    for expect in scenario.expect.values():
        assert expect.cause == "none" or expect.cause in set(Cause)
        loses = any(
            0 not in r for r in (expect.lost_after_ack, expect.lost_told, expect.lost_silent)
        )
        assert not loses or expect.cause != "none"


@each_scenario
def test_clients_meet_in_topics_that_exist_and_names_are_used_once(scenario):
    topics = [topic.name for topic in scenario.topics]
    clients = [*scenario.producers, *scenario.consumers]
    assert {client.topic for client in clients} <= set(topics)
    assert len({client.name for client in clients}) == len(clients)


@each_scenario
def test_it_breaks_something(scenario):
    assert any(isinstance(step, Start) for step in scenario.steps)


@each_scenario
def test_java_clients_are_told_their_retries(scenario):
    assert all(producer.retries > 0 for producer in scenario.producers)


def of(name):
    (scenario,) = (s for s in SCENARIOS if s.name == name)
    return scenario


def truth(**sums):
    sums = {"orders": Sums("orders", "t", True, **sums)}
    return Truth("lost-ack-idempotent", sums, {"shop-idempotent": 4.14})


def test_what_is_as_expected_has_no_differences():
    assert differences(of("lost-ack-idempotent"), truth(handed_over=5, acked=5)) == []


def test_each_difference_is_a_sentence():
    found = differences(of("lost-ack-idempotent"), truth(lost_after_ack=3, missed={"shop": 2}))
    assert found == [
        "orders: lost_after_ack is 3, expected none",
        "shop never received 2 messages of orders in the log",
    ]


def test_a_loss_that_did_not_happen_is_a_difference_too():
    (found,) = differences(of("lost-ack"), truth())
    assert found == "orders: duplicated is 0, expected at least 1"
    assert 0 not in SOME
    assert Expect().cause == "none"


IDEMPOTENCE = [("lost-ack", "orders", False), ("lost-ack-idempotent", "orders", True)]
IDEMPOTENCE += [("election-acks-1", "events", False), ("network-cut", "parcel", True)]
IDEMPOTENCE += [("producer-crash", "signup", False)]


@pytest.mark.parametrize(("name", "producer", "expected"), IDEMPOTENCE)
def test_who_is_idempotent(name, producer, expected):
    assert is_idempotent(of(name), producer) is expected


def test_the_table_has_a_row_per_producer():
    rows = table([(of("lost-ack-idempotent"), truth(handed_over=3000, acked=3000, silence_s=2.04))])
    assert rows.splitlines()[2].startswith(
        "| lost-ack-idempotent | orders | all | yes | 3,000 | 3,000 | 0 |"
    )
    assert rows.splitlines()[2].endswith("| - | 2.0 | 4.1 |")
