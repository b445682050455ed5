"""What exporters and Jolokia answer, read into samples with one meaning each."""

from __future__ import annotations

import json
import math
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from acktrail.metrics.names import METRICS, read_name
from ingest.sources.exposition import read_text
from ingest.sources.jolokia import object_name, read_answers, read_requests

SAMPLES = Path(__file__).with_name("expositions")


def meanings(exposition) -> list[tuple[str, str, float]]:
    return [
        (meaning.name, meaning.scope, sample.value)
        for sample in exposition.samples
        if (meaning := read_name(sample.metric, dict(sample.labels)))
    ]


PRODUCER = [
    ("record-error-total", "client", 12.0),
    ("record-retry-total", "client", 36.0),
    ("record-error-total", "topic", 12.0),
]


@pytest.mark.parametrize(
    "file",
    [
        "prometheus_producer_default_export_0.x.prom",
        "prometheus_producer_default_export_1.x.prom",
        "prometheus_producer_kafka-connect_rules.prom",
    ],
)
def test_a_producer_in_every_spelling(file):
    got = read_text((SAMPLES / file).read_text(), METRICS)
    assert [m for m in meanings(got) if m in PRODUCER] == PRODUCER
    assert got.unreadable == 0
    for sample in got.samples:
        assert "orders-svc-1" in dict(sample.labels).values()


def test_not_a_number_stays_one():
    text = (SAMPLES / "prometheus_producer_default_export_0.x.prom").read_text()
    (value,) = [v for name, _, v in meanings(read_text(text, METRICS)) if name.endswith("-avg")]
    assert math.isnan(value)


def test_a_broker_with_all_topics_and_per_topic_apart():
    text = (SAMPLES / "prometheus_broker_kafka-2_0_0_rules.prom").read_text()
    got = read_text(text, METRICS)
    failed = [
        (s.labels, s.value)
        for s in got.samples
        if s.metric == "kafka_server_brokertopicmetrics_failedproducerequests_total"
    ]
    assert failed == [((), 41.0), ((("topic", "orders"),), 41.0)]
    names = {name for name, _, _ in meanings(got)}
    assert {
        "failed-fetch-requests-total",
        "request-errors-total",
        "produce-expires-total",
        "under-min-isr-partitions",
        "offline-partitions",
        "unclean-elections-total",
        "isr-shrinks-total",
    } <= names


def test_only_what_is_wanted_and_every_line_counted():
    text = (SAMPLES / "prometheus_broker_kafka-2_0_0_rules.prom").read_text()
    lines = [line for line in text.splitlines() if line and not line.startswith("#")]
    got = read_text(text + "kafka_producer_record_error_total{broken 1\n", ["offline-partitions"])
    assert [name for name, _, _ in meanings(got)] == ["offline-partitions"]
    assert len(got.samples) + got.not_configured + got.unreadable == len(lines) + 1


def test_a_broken_line_costs_no_other():
    text = (
        'kafka_producer_record_error_total{clientId="a"} 1\n'
        'kafka_producer_record_error_total{clientId="b} 2\n'
        "kafka_producer_record_error_total three\n"
        'kafka_producer_record_error_total{clientId="d"} 4\n'
    )
    got = read_text(text, METRICS)
    assert [v for _, _, v in meanings(got)] == [1.0, 4.0]
    assert got.unreadable == 2


@settings(max_examples=50, deadline=None)
@given(st.text())
def test_any_text_is_read_or_counted(text):
    got = read_text(text, METRICS)
    assert got.samples == ()


def test_jolokia_of_a_producer():
    answer = json.loads((SAMPLES / "jolokia_producer.json").read_text())
    got, errors = read_answers([answer], METRICS)
    assert errors == []
    by_client = {
        (dict(s.labels)["client_id"], name): s.value
        for s in got.samples
        if (name := read_name(s.metric, dict(s.labels)).name)
    }
    assert by_client["orders-svc-1", "record-error-total"] == 12.0
    assert by_client["svc:eu,1", "record-error-total"] == 0.0
    assert math.isnan(by_client["orders-svc-1", "record-queue-time-avg"])


def test_jolokia_of_a_broker_and_a_bean_that_is_not_there():
    answers = json.loads((SAMPLES / "jolokia_broker.json").read_text())
    got, errors = read_answers(answers, METRICS)
    assert errors == []
    assert ("failed-produce-requests-total", "broker", 41.0) in meanings(got)
    assert ("failed-produce-requests-rate", "broker", 0.12) in meanings(got)
    topics = [dict(s.labels).get("topic") for s in got.samples if s.metric.endswith("_Count")]
    assert topics == [None, "orders"]


def test_jolokia_that_refuses_says_so():
    got, errors = read_answers([{"status": 403, "error": "no"}, "nonsense"], METRICS)
    assert got.samples == ()
    assert len(errors) == 2


def test_requests_cover_every_metric():
    names = [request["mbean"] for request in read_requests(METRICS)]
    assert len(names) == len(set(names))
    assert "kafka.producer:type=producer-metrics,client-id=*" in names


@pytest.mark.parametrize(
    ("text", "keys"),
    [
        ("d:a=1,b=x y", {"a": "1", "b": "x y"}),
        ('d:client-id="a:b,c=\\"d\\"\\n\\*",type=t', {"client-id": 'a:b,c="d"\n*', "type": "t"}),
        ("d:topic=orders.v2-eu,type=t", {"topic": "orders.v2-eu", "type": "t"}),
    ],
)
def test_object_names(text, keys):
    assert object_name(text) == ("d", keys)
