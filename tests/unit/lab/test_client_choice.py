"""Scenarios with audited clients in place of their own: the same experiment, other reporters."""

from __future__ import annotations

import pytest
from confluent_kafka import Consumer, Producer

import lab.scenario
from acktrail.errors import UsageError
from lab import java_audit
from lab.client_choice import (
    CHOICES,
    JAVA_INTERCEPTOR,
    JAVA_WRAPPER,
    VERIFIABLE,
    with_clients,
)
from lab.outcome import is_idempotent
from lab.scenarios import SCENARIOS

each_scenario = pytest.mark.parametrize("scenario", SCENARIOS, ids=lambda s: s.name)


@each_scenario
def test_the_scenario_stays_as_it_is(scenario):
    assert with_clients(scenario, VERIFIABLE) is scenario


@each_scenario
def test_python_clients_take_what_the_scenario_sets(scenario):
    made = with_clients(scenario, "python")
    assert (made.clients, made.steps, made.expect) == ("python", scenario.steps, scenario.expect)
    for was, now in zip(scenario.producers, made.producers, strict=True):
        assert (now.kind, now.audited) == ("python", "python")
        assert (now.host, now.called, now.messages) == (was.host, was.called, was.messages)
        assert is_idempotent(made, now.name) == is_idempotent(scenario, was.name)
        settings = {"acks": now.acks, "retries": now.retries, **now.settings}
        Producer({"bootstrap.servers": "127.0.0.1:1", "log_level": 0, **settings})
    for was, now in zip(scenario.consumers, made.consumers, strict=True):
        assert (now.kind, now.audited, now.isolation) == ("python", "python", was.isolation)
        Consumer({"bootstrap.servers": "127.0.0.1:1", "group.id": "g", **now.settings}).close()


@each_scenario
@pytest.mark.parametrize("choice", [JAVA_INTERCEPTOR, JAVA_WRAPPER])
def test_java_clients_stay_what_they_are_and_report(scenario, choice):
    made = with_clients(scenario, choice)
    assert (made.clients, made.steps, made.expect) == (choice, scenario.steps, scenario.expect)
    pairs = [*zip(scenario.producers, made.producers, strict=True)]
    pairs += zip(scenario.consumers, made.consumers, strict=True)
    for was, now in pairs:
        assert now.kind == was.kind
        if was.kind == "python":
            assert now.audited == "python"
            continue
        assert now.settings == was.settings
        wrapped = isinstance(now, lab.scenario.Producer) and choice == JAVA_WRAPPER
        settings = java_audit.settings(now)
        assert ("interceptor.classes" in settings) == (not wrapped)
        assert settings["acktrail.host"] == was.host


def test_unknown_clients_are_refused():
    with pytest.raises(UsageError, match="expected one of " + ", ".join(CHOICES)):
        with_clients(SCENARIOS[0], "golang")
