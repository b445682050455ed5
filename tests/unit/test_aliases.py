"""Alias rules: one name for a log file, a metrics target and an audit session."""

from __future__ import annotations

import pytest

from acktrail.aliases import Aliases, Named, broker_in_name, host_of, named_session


def rule(field: str, match: str, **names: str) -> dict[str, str]:
    return {"field": field, "match": match, **names}


POD = rule("host", r"^(orders)-[a-z0-9]+-(\d)$", host=r"\1-\2")
RULED = {
    # rules, facts -> what they name
    "no rule": ([], {"host": "a"}, Named()),
    "a field that is not there": ([rule("path", "a", host="b")], {"host": "a"}, Named()),
    "a value that is not known": ([rule("host", "", host="b")], {"host": None}, Named()),
    "groups make a name": ([POD], {"host": "orders-x7f-3"}, Named("orders-3")),
    "the first rule that names a thing decides it": (
        [POD, rule("host", "orders", host="late", client_id="o")],
        {"host": "orders-x7f-3"}, Named("orders-3", "o")),
    "a group that took no part gives no name": (
        [rule("host", "a(b)?", host=r"\1")], {"host": "a"}, Named()),
    "a broker from a group": (
        [rule("instance", r"^10\.0\.0\.(\d+):", broker=r"\1")],
        {"instance": "10.0.0.12:7071"}, Named(None, None, 12, True)),
    "what is no number is no broker": (
        [rule("instance", r"^(\w+):", broker=r"\1")],
        {"instance": "kafka:7071"}, Named(None, None, None, True)),
    "a rule may say that the name holds no id": (
        [rule("instance", "^kafka-", broker="")],
        {"instance": "kafka-2:7071"}, Named(None, None, None, True)),
}  # fmt: skip


@pytest.mark.parametrize("case", RULED)
def test_what_rules_name(case: str) -> None:
    rules, facts, expected = RULED[case]
    assert Aliases(rules).name(facts) == expected


def test_an_audit_session_passes_the_rules() -> None:
    told = {"client_id": "p-1", "host": "orders-x7f-3", "acks": "all"}
    aliases = Aliases([POD, rule("session", "^s-", client_id="orders")])
    assert named_session(told, "s-1", aliases) == {
        "client_id": "orders", "host": "orders-3", "acks": "all",
    }  # fmt: skip
    assert named_session(told, "s-1", Aliases()) == told


BROKERS = {
    "kafka-2:7071": 2,
    "kafka2:7071": 2,
    "broker-02": 2,
    "kafka-0.kafka-headless.prod.svc:5556": 0,
    "my-cluster-kafka-2.prod": 2,
    "release-kafka-broker-1:5556": 1,
    "b-3.demo.kafka.eu-west-1.amazonaws.com:11001": 3,
    "KAFKA_4": 4,
    # The number says nothing of a broker, or which number it is.
    "10.0.0.7:9404": None,
    "ip-10-0-0-7:9404": None,
    "kafka:9404": None,
    "kafka-2-exporter:9404": None,
    "kafka-connect-1:9404": None,
    "db-2:9404": None,
    "localhost:9402": None,
    None: None,
}


@pytest.mark.parametrize("instance", BROKERS, ids=str)
def test_the_broker_in_a_target_s_name(instance: str | None) -> None:
    assert broker_in_name(instance) == BROKERS[instance]


def test_the_host_of_a_target() -> None:
    assert [host_of(i) for i in ("a:1", "a", "[::1]:9", "", None)] == [
        "a",
        "a",
        "[::1]",
        None,
        None,
    ]
