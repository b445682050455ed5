"""What brokers say without clients: gauges above 0, failed requests, replicas that come and go."""

from __future__ import annotations

from dataclasses import replace

import pytest
from gold_rows import NOW, ago, ask, row, write

from acktrail.alerts.finding import Finding
from acktrail.contracts.arrow import rows
from acktrail.contracts.bronze import CLUSTER_STATES
from acktrail.contracts.silver import BROKER_METRICS
from acktrail.contracts.vocabulary import Grade, Outcome
from acktrail.lake import Lake
from expectations.domain import broker_requests, brokers
from expectations.isr import with_isr


def gauge(metric, seconds, value, broker=1):
    return row(
        BROKER_METRICS, metric=metric, at=ago(seconds), value=float(value), broker=broker,
        instance=f"kafka-{broker}:7071", hour="2026-01-31T11",
    )  # fmt: skip


def total(metric, seconds, increase, broker=1, **facts):
    return {**gauge(metric, seconds, 1, broker), "increase": float(increase), **facts}


def found(expectation, *samples):
    return expectation(as_of=NOW.isoformat()).findings(rows(BROKER_METRICS, samples).to_pandas())


UNDER = "under-min-isr-partitions"
GAUGES = {
    # samples -> (began, ended) seconds ago
    "never above 0": ([gauge(UNDER, 30, 0)], []),
    "above 0 now": ([gauge(UNDER, 60, 0), gauge(UNDER, 30, 2), gauge(UNDER, 10, 2)], [(30, None)]),
    "mended": ([gauge(UNDER, 60, 1), gauge(UNDER, 40, 1), gauge(UNDER, 20, 0)], [(60, 40)]),
    "one broker of two still says so": (
        [gauge(UNDER, 60, 1), gauge(UNDER, 50, 1, 2), gauge(UNDER, 20, 0)], [(60, None)],
    ),
    "nobody says anything any more": ([gauge(UNDER, 400, 1)], [(400, 400)]),
    "two times": (
        [gauge(UNDER, 90, 1), gauge(UNDER, 80, 0), gauge(UNDER, 20, 3)], [(90, 90), (20, None)],
    ),
    "later than asked": ([gauge(UNDER, -5, 1), gauge(UNDER, 5, 0)], []),
}  # fmt: skip


@pytest.mark.parametrize("case", GAUGES)
def test_a_gauge_that_must_be_0(case):
    samples, expected = GAUGES[case]
    got = [(f.starts_at, f.ends_at) for f in found(brokers.ExpectPartitionsAboveMinIsr, *samples)]
    assert got == [(ago(a), None if b is None else ago(b)) for a, b in expected]


def test_partitions_of_all_brokers_are_added_up():
    samples = [gauge(UNDER, 30, 2, 1), gauge(UNDER, 20, 4, 2), gauge(UNDER, 10, 3, 2)]
    (finding,) = found(brokers.ExpectPartitionsAboveMinIsr, *samples)
    assert (finding.count, finding.state) == (6, "under_min_isr")
    assert finding.because.startswith("6 partitions of cluster east are under min.insync.replicas")


def test_a_replica_may_be_missing_for_five_minutes():
    metric = "under-replicated-partitions"
    often = [gauge(metric, seconds, 5) for seconds in range(10, 290, 20)]
    assert found(brokers.ExpectPartitionsReplicated, *often) == []
    longer = [gauge(metric, seconds, 5) for seconds in range(10, 330, 20)]
    assert len(found(brokers.ExpectPartitionsReplicated, *longer)) == 1


def test_a_partition_without_a_leader_pages_at_once():
    (finding,) = found(brokers.ExpectNoPartitionOffline, gauge("offline-partitions", 5, 1))
    assert finding.because == (
        "1 partition of cluster east has no leader: nobody can write to or read from it."
    )


FAILED = "failed-produce-requests-total"
ERRORS = "request-errors-total"


def test_1452_failed_requests_without_a_client_are_one_finding_with_broker_and_error():
    samples = [total(FAILED, 75 - n * 5, 484 / 5, n % 3 + 1, topic="orders") for n in range(15)]
    samples += [
        total(ERRORS, 70, 1452, b, request="Produce", error="NOT_ENOUGH_REPLICAS")
        for b in (1, 2, 3)
    ]
    samples += [total(ERRORS, 60, 9, request="Produce", error="NOT_LEADER_OR_FOLLOWER")]
    (finding,) = found(broker_requests.ExpectNoFailedProduceRequests, *samples)
    assert finding.because == (
        "Brokers 1, 2, 3 failed 1,452 produce requests on topic orders (NOT_ENOUGH_REPLICAS)."
    )
    assert (finding.starts_at, finding.ends_at, finding.cause) == (
        ago(75), None, "NOT_ENOUGH_REPLICAS",
    )  # fmt: skip


FEW = {
    "ten": ([total(FAILED, 9, 10, topic="t")], []),
    "eleven": ([total(FAILED, 9, 11, topic="t")], ["t"]),
    "the total is not another fact": (
        [total(FAILED, 9, 11, topic="t"), total(FAILED, 9, 11)], ["t"],
    ),
    "a total without topics": ([total(FAILED, 9, 11)], [""]),
    "fetches are not sends": ([total("failed-fetch-requests-total", 9, 50, topic="t")], []),
    "an hour ago": ([total(FAILED, 3600, 50, topic="t")], ["t"]),
}  # fmt: skip


@pytest.mark.parametrize("case", FEW)
def test_failed_requests(case):
    samples, topics = FEW[case]
    got = found(broker_requests.ExpectNoFailedProduceRequests, *samples)
    assert [f.topic for f in got] == topics
    assert all((f.ends_at is None) == (case != "an hour ago") for f in got)


def test_replicas_that_fall_out_three_times_within_an_hour():
    metric = "isr-shrinks-total"
    crash = [total(metric, 900 - n, 8) for n in range(0, 60, 15)]
    assert found(brokers.ExpectIsrStable, *crash) == [], "one broker that crashes is one time"
    again = [total(metric, seconds, 1, 2) for seconds in (1800, 900, 60)]
    (finding,) = found(brokers.ExpectIsrStable, *crash, *again)
    assert (finding.brokers, finding.cause, finding.count) == (("2",), "2", 3)
    old = [total(metric, seconds, 1, 2) for seconds in (7200, 900, 60)]
    assert found(brokers.ExpectIsrStable, *old) == []


@pytest.mark.parametrize("check", [
    brokers.ExpectNoPartitionOffline, brokers.ExpectPartitionsAboveMinIsr,
    brokers.ExpectPartitionsReplicated, brokers.ExpectIsrStable,
    broker_requests.ExpectNoFailedProduceRequests, broker_requests.ExpectNoFailedFetchRequests,
])  # fmt: skip
def test_without_any_sample_nothing_is_decided(check):
    (finding,) = found(check)
    assert (finding.outcome, finding.needs) == (Outcome.UNDECIDED, "metrics")


def test_the_suite_reads_what_is_not_0_and_the_last_hour(tmp_path):
    lake = Lake(tmp_path)
    hour_ago = {"hour": "2026-01-31T10"}
    write(
        lake, BROKER_METRICS,
        gauge(UNDER, 30, 2), gauge(UNDER, 20, 0), total(FAILED, 40, 20, topic="t", series="a"),
        {**gauge(UNDER, 5000, 1), **hour_ago}, {**gauge(UNDER, 4000, 0), **hour_ago},
        {**total("messages-in-total", 5, 10**6), "series": "b"},
        {**total(ERRORS, 5, 10**6, request="Produce", error="NONE"), "series": "c"},
    )  # fmt: skip
    results = {r.check: r for r in ask(lake, tables=["broker_metrics"])}
    failed = {name for name, r in results.items() if r.outcome is Outcome.FAIL}
    assert failed == {"no_failed_produce_requests", "partitions_above_min_isr"}
    assert results["no_failed_produce_requests"].grade is Grade.FAIL
    assert results["partitions_above_min_isr"].grade is Grade.WARN
    assert results["partitions_above_min_isr"].rows_checked == 4


def test_the_cluster_names_the_missing_replica(tmp_path):
    lake = Lake(tmp_path)
    state = {
        "topic": "orders",
        "partition": 1,
        "leader": 2,
        "replicas": [1, 2, 3],
        "day": "2026-01-31",
    }
    write(
        lake, CLUSTER_STATES,
        row(CLUSTER_STATES, **state, at=ago(60), isr=[1, 2, 3]),
        row(CLUSTER_STATES, **state, at=ago(20), isr=[2]),
        row(CLUSTER_STATES, **{**state, "partition": 0}, at=ago(20), isr=[1, 2, 3]),
        row(CLUSTER_STATES, **{**state, "topic": "other"}, at=ago(20), isr=[1, 2]),
    )  # fmt: skip
    burning = Finding(
        outcome=Outcome.FAIL, cluster="east", topic="orders", group="", state="retries_running_out",
        cause="NOT_ENOUGH_REPLICAS", starts_at=ago(30), ends_at=None, because="it burns",
        brokers=("2",), partitions=("orders-0", "orders-1"),
    )  # fmt: skip
    (placed,) = with_isr(lake, [burning], NOW)
    assert placed.partitions == ("orders-1 (leader 2, in sync 2 of replicas 1 2 3)", "orders-0")
    assert placed.brokers == ("1 (out of sync)", "3 (out of sync)")
    (gauge_found,) = found(brokers.ExpectPartitionsAboveMinIsr, gauge(UNDER, 5, 1))
    (everywhere,) = with_isr(lake, [gauge_found], NOW)
    assert [p.split()[0] for p in everywhere.partitions] == ["orders-1", "other-1"]
    (before,) = with_isr(lake, [burning], ago(30))
    assert before == burning


def test_a_replica_that_is_back_when_a_check_looks_was_behind_it_all_the_same(tmp_path):
    lake = Lake(tmp_path)
    state = {"topic": "orders", "partition": 1, "leader": 2, "replicas": [2, 3]}
    write(
        lake, CLUSTER_STATES,
        row(CLUSTER_STATES, **state, day="2026-01-31", at=ago(500), isr=[3]),
        row(CLUSTER_STATES, **state, day="2026-01-31", at=ago(90), isr=[2]),
        row(CLUSTER_STATES, **state, day="2026-01-31", at=ago(30), isr=[2, 3]),
    )  # fmt: skip
    refused = Finding(
        outcome=Outcome.FAIL, cluster="east", topic="orders", group="", cause="NOT_ENOUGH_REPLICAS",
        state="failed_produce_requests", starts_at=ago(100), ends_at=None, because="refused",
    )  # fmt: skip
    (placed,) = with_isr(lake, [refused], NOW)
    assert placed.brokers == ("3 (out of sync)",), "not 2, which was missing long before"
    assert placed.partitions == (
        "orders-1 (leader 2, in sync 2 of replicas 2 3 at 2026-01-31T11:58:30Z)",
    )
    (later,) = with_isr(lake, [replace(refused, starts_at=ago(20))], NOW)
    assert later.brokers == ()
    lost = replace(
        refused, state="lost_after_ack", cause="acks_1_leader_change", loss=True, ends_at=ago(95)
    )
    (placed,) = with_isr(lake, [lost], NOW)
    assert placed.brokers == ("3 (out of sync)",), "the leader that failed"
    crashed, old = replace(lost, cause="producer_crash"), replace(lost, ends_at=ago(900))
    assert with_isr(lake, [crashed, old], NOW) == [crashed, old]
