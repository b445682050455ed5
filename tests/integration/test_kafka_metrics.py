"""Against real brokers and a real Java producer: the JMX values in the lake are theirs."""

from __future__ import annotations

from acktrail.contracts.bronze import METRIC_SAMPLES
from acktrail.lake import Lake
from acktrail.settings.sources import ScrapeSource
from ingest.registry import build_source
from lab.clients import start_producer
from lab.scenario import Producer as JavaProducer
from lab.steps import wait_until
from tests.integration.jmx_values import direct, jolokia_says_what_the_exporter_says, with_jolokia
from tests.integration.kafka_nodes import acks_of, around, drain
from tests.integration.servers import free_port


def test_jmx_values_in_the_lake_are_those_of_the_exporters(nodes, java, tmp_path):
    """Counters move between two readings: each stored value lies between one before and after."""
    lake = Lake(tmp_path)
    ports = [b.exporter_port for b in nodes.brokers.values()] + [java.exporter_port]
    dead = free_port()
    targets = tuple(f"http://127.0.0.1:{port}/metrics" for port in (*ports, dead))
    settings = ScrapeSource(kind="scrape", name="jmx", targets=targets)
    before = {port: direct(port) for port in ports}
    drain(build_source(settings, around(nodes)), lake)
    after = {port: direct(port) for port in ports}
    stored = lake.read(METRIC_SAMPLES).to_pylist()
    compared = 0
    for port in ports:
        rows = [r for r in stored if r["instance"] == f"127.0.0.1:{port}"]
        got = {(r["metric"], tuple(sorted(r["labels"]))): r["value"] for r in rows}
        assert set(before[port]) <= set(got) <= set(after[port])
        for key, value in got.items():
            low, high = before[port].get(key, 0.0), after[port][key]
            if key[0].endswith("_total"):
                assert low <= value <= high, key
                compared += 1
    assert compared > 30
    names = {r["metric"] for r in stored}
    assert "kafka_producer_producer_metrics_record_send_total" in names
    assert "kafka_server_brokertopicmetrics_failedproducerequests_total" in names
    (gap,) = [r for r in stored if r["instance"] == f"127.0.0.1:{dead}"]
    assert gap["value"] != gap["value"]
    assert "connection refused" in gap["scrape_error"]


def test_jolokia_of_a_java_producer(nodes, tmp_path):
    with with_jolokia() as port:
        wanted = JavaProducer("cart", "other", messages=100_000, per_second=100)
        client = start_producer(nodes, wanted, tmp_path)
    try:
        assert wait_until(lambda: acks_of(client) > 50, 180)
        jolokia_says_what_the_exporter_says(nodes, port, client.exporter_port, tmp_path)
    finally:
        client.process.kill()
