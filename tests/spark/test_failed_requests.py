"""`producer_reliability` puts what brokers count of a topic beside the clients of that topic."""

from __future__ import annotations

from datetime import UTC, datetime

from acktrail.contracts.arrow import rows
from acktrail.contracts.gold import DELIVERY_LEDGER
from acktrail.contracts.silver import BROKER_METRICS, CLIENT_METRICS, PRODUCER_EVENTS
from pipelines.gold.producer_reliability import join_evidence
from pipelines.job import Options
from pipelines.spark_schema import no_rows

AT = datetime(2026, 1, 31, 7, 30, tzinfo=UTC)
SAMPLE = {"cluster": "c", "source": "jmx", "at": AT, "hour": "2026-01-31T07"}
LINE = {"cluster": "c", "source": "app", "kind": "retry", "hour": "2026-01-31T07"}


def broker(series, increase, topic=None, metric="failed-produce-requests-total", **more):
    facts = {"series": series, "increase": increase, "topic": topic, "metric": metric, **more}
    return {**SAMPLE, **facts}


def test_a_topic_without_a_client_and_the_whole_cluster_have_rows_of_their_own(spark):
    counted = [
        broker("b1", 1200.0),
        broker("b2", 10.0),
        broker("b1 orders", 46.0, "orders"),
        broker("b2 orders", 10.0, "orders"),
        broker("b1 secret", 1154.0, "secret"),
        broker("e", 7.0, metric="request-errors-total", request="Produce", error="X"),
        broker("m", None, metric="under-min-isr-partitions", value=2.0),
    ]
    # A client that lost a connection names no topic: its row is not the cluster's.
    lines = [
        {**LINE, "event_key": str(n), "record_key": str(n), "client_id": client, "topic": topic}
        for n, (client, topic) in enumerate([("web", "orders"), ("api", "orders"), ("web", None)])
    ]
    made = {BROKER_METRICS: counted, PRODUCER_EVENTS: lines}
    inputs = {t.name: spark.createDataFrame(rows(t, listed)) for t, listed in made.items()}
    inputs |= {t.name: no_rows(spark, t) for t in (CLIENT_METRICS, DELIVERY_LEDGER)}
    found = join_evidence(inputs, None, Options()).collect()
    got = {
        (r.client_id, r.topic): (r.failed_produce_requests_total, r.produce_errors_total)
        for r in found
    }
    assert got == {
        ("web", "orders"): (56.0, None),
        ("api", "orders"): (56.0, None),
        ("web", ""): (None, None),
        ("", "secret"): (1154.0, None),
        ("", ""): (1210.0, 7.0),
    }
    assert len(found) == len(got)
    assert {r.under_min_isr_max for r in found} == {2.0}
    assert {r.retry_lines for r in found if not r.client_id} == {0}, "required, so never null"
