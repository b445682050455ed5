"""Every spelling of a metric comes to one name, and the selection at the source finds it."""

from __future__ import annotations

import re

import pytest

from acktrail.metrics.names import METRICS, Canonical, _known, mbeans, name_pattern, read_name

CLIENT_ERRORS = Canonical("producer", "record-error-total", "client")
TOPIC_ERRORS = Canonical("producer", "record-error-total", "topic")
FAILED_PRODUCE = Canonical("broker", "failed-produce-requests-total", "broker")

CASES = [
    # spelling                                                     labels  meaning
    ("kafka_producer_producer_metrics_record_error_total", {}, CLIENT_ERRORS),
    ("kafka_producer_producer_metrics_record_error", {}, CLIENT_ERRORS),
    ("kafka_producer_record_error_total", {"clientId": "a"}, CLIENT_ERRORS),
    ("kafka_producer_topic_record_error_total", {"topic": "t"}, TOPIC_ERRORS),
    ("kafka_producer_producer_topic_metrics_record_error", {}, TOPIC_ERRORS),
    ("org_apache_kafka_producer_record_error_total", {}, CLIENT_ERRORS),
    (
        "kafka_producer_producer_metrics_record_error_rate",
        {},
        Canonical("producer", "record-error-rate", "client"),
    ),
    (
        "kafka_producer_producer_node_metrics_request_latency_max",
        {},
        Canonical("producer", "request-latency-max", "node"),
    ),
    ("kafka_server_brokertopicmetrics_failedproducerequests_total", {}, FAILED_PRODUCE),
    ("kafka_server_brokertopicmetrics_failedproducerequestspersec", {}, FAILED_PRODUCE),
    ("kafka_server_BrokerTopicMetrics_FailedProduceRequestsPerSec_Count", {}, FAILED_PRODUCE),
    (
        "kafka_server_BrokerTopicMetrics_Count",
        {"name": "FailedProduceRequestsPerSec"},
        FAILED_PRODUCE,
    ),
    (
        "kafka_server_BrokerTopicMetrics_OneMinuteRate",
        {"name": "FailedProduceRequestsPerSec"},
        Canonical("broker", "failed-produce-requests-rate", "broker"),
    ),
    ("kafka_server_BrokerTopicMetrics_Count", {"name": "BytesInPerSec"}, None),
    ("kafka_server_BrokerTopicMetrics_Count", {}, None),
    (
        "kafka_network_requestmetrics_errors_total",
        {"request": "Produce"},
        Canonical("broker", "request-errors-total", "broker"),
    ),
    (
        "kafka_server_replicamanager_underminisrpartitioncount",
        {},
        Canonical("broker", "under-min-isr-partitions", "broker"),
    ),
    (
        "kafka_controller_controllerstats_uncleanleaderelections_total",
        {},
        Canonical("broker", "unclean-elections-total", "broker"),
    ),
    ("jvm_threads_current", {}, None),
]


@pytest.mark.parametrize(("metric", "labels", "meaning"), CASES)
def test_a_spelling_has_one_meaning(metric, labels, meaning):
    assert read_name(metric, labels) == meaning


@pytest.mark.parametrize("name", METRICS)
def test_the_pattern_of_a_metric_selects_all_its_spellings(name):
    pattern = re.compile(name_pattern([name]))
    spellings = [spelt for (spelt, _), what in _known().items() if what.name == name]
    assert spellings
    assert [s for s in spellings if not pattern.fullmatch(s)] == []
    assert pattern.fullmatch(spellings[0].upper())


def test_the_whole_pattern_fits_in_an_address():
    assert len(name_pattern(METRICS)) < 2000
    assert not re.compile(name_pattern(METRICS)).fullmatch("kafka_consumer_lag")


def test_every_metric_has_a_bean():
    assert all(mbeans([name]) for name in METRICS)
