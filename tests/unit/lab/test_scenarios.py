"""Laws of the scenarios: the names people know, bounded, and consistent in themselves."""

from __future__ import annotations

import importlib

import pytest

from acktrail.contracts.vocabulary import Cause
from lab.group_truth import GroupSums
from lab.outcome import differences, is_idempotent, table
from lab.scenario import SOME, Expect
from lab.scenarios import SCENARIOS
from lab.steps import Do, Milestone, Start
from lab.truth import Sums, Truth

NAMES = {
    *("broker-down-before-metadata", "broker-down-after-metadata"),
    *("not-enough-replicas", "not-enough-replicas-default-retries"),
    *("election-acks-0", "election-acks-1", "election-acks-all"),
    *("lost-ack", "lost-ack-idempotent", "reordering"),
    *("acks-1-leader-crash", "unclean-election", "producer-crash"),
    *("rolling-restart", "controller-failover", "network-cut", "late-consumer"),
    "demo-incident",
    *("two-faults-at-once", "zombie-leader", "acks-1-then-unclean", "one-client-three-hosts"),
    *("seen-then-cut", "return-and-leader-dies", "disk-wiped-rf-1", "disk-wiped-rf-3"),
    *("refused-records", "purged-and-dropped", "transactions-aborted", "compaction"),
    *("records-deleted", "topic-recreated", "commit-ahead-and-kill", "group-reset-forward"),
    *("late-latest-group", "rebalances", "full-disk", "librdkafka-long-cut", "slow-network"),
    *("controller-dies-below-min-isr", "zombie-leader-acks-all", "acks-0-1-all"),
    *("lost-then-deleted", "librdkafka-short-timeout", "recreated-under-two-clients"),
    *("two-members-crash", "compaction-and-reset", "reset-back-and-forward"),
    *("all-brokers-killed", "frozen-member", "fenced-producer"),
    "batch-above-topic-limit",
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
    assert any(isinstance(step, Start | Do) for step in scenario.steps)


@each_scenario
def test_who_has_transactions_has_an_id_for_them(scenario):
    for each in scenario.producers:
        assert bool(each.transaction_messages) == ("transactional.id" in each.settings)


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
    seen = truth(handed_over=9, lost_after_ack=3, missed={"shop": 2})
    found = differences(of("lost-ack-idempotent"), seen)
    assert found == [
        "orders: lost_after_ack is 3, expected none",
        "shop never received 2 messages of orders in the log",
    ]


def test_a_loss_that_did_not_happen_is_a_difference_too():
    (found,) = differences(of("lost-ack"), truth(handed_over=5))
    assert found == "orders: duplicated is 0, expected at least 1"
    assert 0 not in SOME
    assert Expect().cause == "none"


def test_a_producer_that_sent_nothing_is_a_difference_whatever_was_expected():
    assert differences(of("lost-ack"), truth()) == ["orders sent nothing"]


def test_a_cause_that_took_nothing_is_a_difference():
    sums = Sums("debit", "debits", True, handed_over=9, lost_after_ack=1, causes={"unknown": 1})
    found = differences(of("acks-1-then-unclean"), Truth("", {"debit": sums}, {}))
    assert found == [
        "debit: nothing was lost by acks_1_leader_change",
        "debit: nothing was lost by unclean_election",
    ]


GROUPS = [
    ("as expected", {"received": 5, "skipped": 2}, []),
    ("nothing skipped", {"received": 5}, ["importer: skipped is 0, expected at least 1"]),
    ("also behind", {"received": 5, "skipped": 2, "not_read": 3}, ["not_read is 3, expected none"]),
    ("nothing received", {"skipped": 2}, ["importer received nothing"]),
]


@pytest.mark.parametrize(("states", "said"), [c[1:] for c in GROUPS], ids=[c[0] for c in GROUPS])
def test_what_a_group_missed_is_compared_too(states, said):
    seen = Truth("group-reset-forward", {}, {}, {"importer": GroupSums("leads", "", states)})
    found = differences(of("group-reset-forward"), seen)
    assert len(found) == len(said)
    assert all(part in sentence for part, sentence in zip(said, found, strict=True))


@each_scenario
def test_what_groups_are_owed_is_said_of_groups_that_exist(scenario):
    groups = {consumer.group for consumer in scenario.consumers}
    assert {*scenario.owed, *scenario.missed} <= groups
    for owed in scenario.owed.values():
        loses = 0 not in owed.skipped or 0 not in owed.expired
        assert not loses or owed.cause in set(Cause)


@each_scenario
def test_blame_is_between_marks_that_exist(scenario):
    marks = {step.name for step in scenario.steps if isinstance(step, Milestone)}
    for expect in scenario.expect.values():
        for blame in expect.blame:
            assert {blame.cause, *blame.also} <= set(Cause)
            assert {blame.since, blame.until} - {None} <= marks


@each_scenario
def test_members_of_one_group_are_alike(scenario):
    of_group = {}
    for each in scenario.consumers:
        alike = (each.topic, each.isolation, each.reset)
        assert of_group.setdefault(each.group, alike) == alike


IDEMPOTENCE = [("lost-ack", "orders", False), ("lost-ack-idempotent", "orders", True)]
IDEMPOTENCE += [("election-acks-1", "events", False), ("network-cut", "parcel", True)]
IDEMPOTENCE += [("producer-crash", "signup", False), ("transactions-aborted", "booking", True)]


@pytest.mark.parametrize(("name", "producer", "expected"), IDEMPOTENCE)
def test_who_is_idempotent(name, producer, expected):
    assert is_idempotent(of(name), producer) is expected


def test_the_table_has_a_row_per_producer():
    rows = table([(of("lost-ack-idempotent"), truth(handed_over=3000, acked=3000, silence_s=2.04))])
    assert rows.splitlines()[2].startswith(
        "| lost-ack-idempotent | orders | all | yes | 3,000 | 3,000 | 0 |"
    )
    assert rows.splitlines()[2].endswith("| - | 2.0 | 4.1 |")
