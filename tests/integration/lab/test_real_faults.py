"""Scenarios on one real cluster: the ack that never comes, an ISR too small, a dead leader.

Smaller than their namesakes of `acktrail lab run`, with the same faults.
"""

from __future__ import annotations

import json
from collections import Counter
from dataclasses import replace

import pytest

from lab.outcome import differences
from lab.run import Run
from lab.scenarios import SCENARIOS

BY_NAME = {scenario.name: scenario for scenario in SCENARIOS}


@pytest.fixture
def perform(nodes, tmp_path):
    def perform(name, messages):
        scenario = BY_NAME[name]
        smaller = tuple(replace(each, messages=messages) for each in scenario.producers)
        scenario = replace(scenario, producers=smaller)
        truth = Run(scenario, nodes, tmp_path).perform()
        assert differences(scenario, truth) == []
        (sums,) = truth.sums.values()
        assert sums.handed_over == messages
        return sums

    return perform


def log_of(directory, host):
    return "".join(path.read_text() for path in sorted((directory / "logs" / host).iterdir()))


def test_the_ack_that_never_comes_doubles_messages_without_idempotence(perform, tmp_path):
    sums = perform("lost-ack", 3000)
    assert sums.acked == 3000
    assert sums.records > 3000
    assert "Disconnected from node" in log_of(tmp_path, "orders-1")
    notes = json.loads((tmp_path / "scenario.json").read_text())["notes"]
    assert notes["produce_responses_dropped"] > 0


def test_the_ack_that_never_comes_does_nothing_with_idempotence(perform, tmp_path):
    sums = perform("lost-ack-idempotent", 3000)
    assert (sums.acked, sums.records) == (3000, 3000)
    assert "Disconnected from node" in log_of(tmp_path, "orders-1")


def test_an_isr_below_the_minimum_is_told_once_and_logged_at_every_attempt(perform, tmp_path):
    sums = perform("not-enough-replicas", 800)
    assert sums.failed == sums.lost_told + sums.ghosts
    told = Counter(
        event["value"]
        for line in (tmp_path / "verifiable" / "producer-transfer.jsonl").read_text().splitlines()
        if (event := json.loads(line))["name"] == "producer_send_error"
    )
    assert set(told.values()) == {1}
    assert "(0 attempts left). Error: NOT_ENOUGH_REPLICAS" in log_of(tmp_path, "transfer-1")
    brokers = log_of(tmp_path, "kafka-1")
    assert brokers.count("Error processing append operation on partition") >= 5
    scraped = (tmp_path / "metrics" / "transfer-1.jsonl").read_text()
    assert "record_error_total" in scraped
    assert "record_retry_total" in scraped


def test_a_leader_that_dies_after_its_ack_takes_acked_messages_with_it(perform, tmp_path):
    sums = perform("acks-1-leader-crash", 2500)
    assert sums.acked == 2500
    assert sums.lost_after_ack > 0
    written = (tmp_path / "cluster" / "states.jsonl").read_text()
    states = [json.loads(line) for line in written.splitlines()]
    assert states[-1]["leader_epoch"] > states[0]["leader_epoch"]


def group_of(directory, name):
    return json.loads((directory / "truth" / "truth.json").read_text())["groups"][name]["states"]


def test_who_commits_ahead_and_is_killed_misses_what_is_in_the_log(perform, tmp_path):
    assert perform("commit-ahead-and-kill", 1600).in_log == 1600
    sender = group_of(tmp_path, "sender")
    assert sender == {"received": 1600 - sender["skipped"], "skipped": sender["skipped"]}
    assert group_of(tmp_path, "archive") == {"received": 1600}
    printed = (tmp_path / "python" / "sender.jsonl").read_text()
    codes = [e["code"] for e in map(json.loads, printed.splitlines()) if "code" in e]
    assert codes == [-9, -9, 0]


def test_records_deleted_before_they_were_read_are_no_loss_of_the_log(perform, tmp_path):
    sums = perform("records-deleted", 2400)
    assert sums.taken == {"delete_records": 2400 - sums.in_log}
    assert group_of(tmp_path, "quick") == {"received": 2400}
    for slow in ("slow", "off"):
        states = group_of(tmp_path, slow)
        assert states["received"] + states["expired"] == 2400
