"""Configuration blocks: what a producer really runs with, by version."""
# ruff: noqa: E501 - a table of cases.

from __future__ import annotations

import pytest

from acktrail.kafka_defaults import RETRIES
from acktrail.logs.configs import HIDDEN, producer_settings, read_block
from acktrail.logs.event import Event
from acktrail.logs.reader import read_record

CASES = [
    # case, version, settings as printed                        -> idempotent, guarantee, ordered
    ("3.9 defaults", "3.9.0", {"acks": "-1", "enable.idempotence": "true"}, True, "exactly_once_per_partition", True),
    ("3.9, retries=0", "3.9.0", {"retries": "0", "enable.idempotence": "false"}, False, "at_most_once", True),
    ("3.9, acks=1", "3.9.0", {"acks": "1", "enable.idempotence": "false"}, False, "none", False),
    ("3.9, acks=1 though printed on", "3.9.0", {"acks": "1"}, False, "none", False),
    ("3.9, idempotence off", "3.9.0", {"enable.idempotence": "false"}, False, "at_least_once", False),
    ("3.9, off, one in flight", "3.9.0",
     {"enable.idempotence": "false", "max.in.flight.requests.per.connection": "1"}, False, "at_least_once", True),
    ("3.9, six in flight", "3.9.0", {"max.in.flight.requests.per.connection": "6"}, False, "at_least_once", False),
    ("3.9, acks=0", "3.9.0", {"acks": "0", "enable.idempotence": "false"}, False, "at_most_once", False),
    ("3.0.0: on paper only, or not", "3.0.0", {}, None, "at_least_once", None),
    ("3.0.1 means it", "3.0.1", {}, True, "exactly_once_per_partition", True),
    ("3.1.0, transactional", "3.1.0", {"transactional.id": "t"}, True, "exactly_once_per_partition", True),
    ("2.8 defaults: acks=1, endless retries", "2.8.2", {}, False, "none", False),
    ("2.3, idempotent: acks printed before the override", "2.3.1",
     {"acks": "1", "enable.idempotence": "true"}, True, "exactly_once_per_partition", True),
    ("2.0 defaults: no retries", "2.0.1", {}, False, "at_most_once", True),
    ("0.10: no such thing", "0.10.2", {"acks": "all", "retries": "3"}, False, "at_least_once", False),
    ("4.3 defaults", "4.3.1", {}, True, "exactly_once_per_partition", True),
]  # fmt: skip


@pytest.mark.parametrize(
    ("case", "version", "settings", "idempotent", "guarantee", "ordered"),
    CASES,
    ids=[c[0] for c in CASES],
)
def test_the_guarantee(case, version, settings, idempotent, guarantee, ordered):
    got = producer_settings(settings, version)
    assert (got.idempotent, got.guarantee, got.ordered) == (idempotent, guarantee, ordered)


def test_defaults_are_filled_in_by_version():
    assert producer_settings({}, "4.3.1").linger_ms == 5
    assert producer_settings({}, "3.9.0").linger_ms == 0
    assert producer_settings({}, "3.9.0").retry_backoff_max_ms == 1000
    assert producer_settings({}, "3.6.2").retry_backoff_max_ms is None
    assert producer_settings({}, "2.0.1").delivery_timeout_ms is None
    assert producer_settings({}, "2.1.0").retries == RETRIES


def test_a_delivery_timeout_below_its_parts_is_raised():
    got = producer_settings({"delivery.timeout.ms": "1000", "request.timeout.ms": "3000"}, "3.9.0")
    assert got.delivery_timeout_ms == 3000


def test_what_was_overridden():
    got = producer_settings({"acks": "-1", "retries": "5", "linger.ms": "0"}, "3.9.0")
    assert got.overridden == {"retries": "5"}


BLOCK = (
    "[2026-01-02 03:04:05,006] INFO ProducerConfig values: \n\tacks = -1\n\tclient.id = svc-1\n"
    '\tretries = 5\n\tsasl.jaas.config = org.x required password="p";\n\tssl.key.password = null\n'
    "\tinterceptor.classes = []\n (org.apache.kafka.clients.producer.ProducerConfig)"
)


def test_a_block_is_one_event_without_its_secrets():
    event = read_record(BLOCK)
    assert isinstance(event, Event)
    assert (event.kind, event.client_id, event.ts) == (
        "config_block",
        "svc-1",
        "2026-01-02T03:04:05.006",
    )
    assert event.settings == {
        "acks": "-1",
        "client.id": "svc-1",
        "retries": "5",
        "sasl.jaas.config": HIDDEN,
        "ssl.key.password": "null",
        "interceptor.classes": "[]",
    }


def test_other_blocks_are_no_producers():
    assert read_block("AdminClientConfig values: \n\tclient.id = a") is None
    block = read_block("ConsumerConfig values: \n\tclient.id = a")
    assert block == ("consumer_config_block", {"client.id": "a"})
