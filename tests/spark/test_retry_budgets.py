"""retry_budgets as a fold: what it joins, and the same table whatever runs brought the evidence."""

from __future__ import annotations

import random
from collections import defaultdict
from datetime import UTC, datetime, timedelta

from acktrail.contracts.arrow import rows
from acktrail.contracts.bronze import CLUSTER_STATES
from acktrail.contracts.gold import RETRY_BUDGETS
from acktrail.contracts.silver import CLIENT_CONFIGS, CLIENT_METRICS, PRODUCER_EVENTS
from acktrail.lake import Lake
from acktrail.window import day_of, hour_of
from pipelines import runner
from pipelines.gold.retry_budgets import JOB, chains_concerned
from pipelines.job import Evidence, Options

NOON = datetime(2026, 1, 31, 12, tzinfo=UTC)
MAX = 2_147_483_647


def retry(when: datetime, left: int, number: int, **more) -> dict:
    row = {
        "cluster": "c", "event_key": f"e{number}-{when:%H%M%S%f}", "source": "logs",
        "record_key": f"logs/app/{number}", "host": "app1", "kind": "retry", "at": when,
        "client_id": "pay-1", "topic": "pay", "partition": 0, "error": "NOT_ENOUGH_REPLICAS",
        "correlation_id": number, "attempts_left": left, "retriable": True,
        "category": "replication", "hour": hour_of(when),
    }  # fmt: skip
    return {**row, **more}


def config(when: datetime, client: str = "pay-1", **more) -> dict:
    row = {
        "cluster": "c", "record_key": f"logs/app/{client}{when:%H%M}", "source": "logs",
        "host": "app1", "role": "producer", "client_id": client, "started_at": when,
        "retries": MAX, "delivery_timeout_ms": 120_000, "request_timeout_ms": 30_000,
        "linger_ms": 5, "retry_backoff_ms": 100, "retry_backoff_max_ms": 1000,
        "client_version": "4.3.1", "day": day_of(when),
    }  # fmt: skip
    return {**row, **more}


def sample(metric: str, when: datetime, value: float, increase: float | None, **more) -> dict:
    row = {
        "cluster": "c", "source": "prom", "series": f"{metric}-pay-1", "instance": "app1:7071",
        "client_id": "pay-1", "metric": metric, "at": when, "value": value,
        "increase": increase, "elapsed_ms": None if increase is None else 15_000,
        "hour": hour_of(when),
    }  # fmt: skip
    return {**row, **more}


def led(when: datetime, leader: int) -> dict:
    return {
        "cluster": "c", "source": "cluster", "topic": "pay", "topic_id": "t", "partition": 0,
        "at": when, "leader": leader, "read_at": when, "day": day_of(when),
    }  # fmt: skip


def a_bad_afternoon(seed: int) -> dict[str, list[dict]]:
    """Two outages across the turn of an hour, with settings, metrics and the cluster's answers."""
    rng = random.Random(seed)
    events, number = [], 0
    for start in (NOON + timedelta(minutes=58, seconds=30), NOON + timedelta(minutes=95)):
        for partition in (0, 1):
            for batch in range(3):
                when = start + timedelta(seconds=batch * 20 + rng.random())
                for step in range(1, 30):
                    number += 1
                    events.append(retry(when, MAX - step, number, partition=partition))
                    when += timedelta(seconds=rng.uniform(0.8, 1.1))
    for position, row in enumerate(sorted(events, key=lambda r: r["at"])):
        row["correlation_id"] = position
    late = NOON + timedelta(minutes=60, seconds=31)
    events.append(
        retry(late, 0, 9999, kind="expired", attempts_left=None, correlation_id=None,
              records=7, elapsed_ms=120_000, error="TimeoutException")
    )  # fmt: skip
    metrics = []
    for n in (n for n in range(700) if n != 388):  # one answer is missing in the second outage
        when = NOON + timedelta(seconds=15 * n)
        metrics.append(sample("record-error-total", when, 0.0, 0.0 if n % 300 else 3.0))
        metrics.append(sample("record-queue-time-max", when, 45_000.0 if n == 100 else 3.0, None))
    return {
        PRODUCER_EVENTS.name: events,
        CLIENT_CONFIGS.name: [config(NOON), config(NOON + timedelta(minutes=90))],
        CLIENT_METRICS.name: metrics,
        CLUSTER_STATES.name: [
            *(led(NOON + timedelta(minutes=5 * n), 2) for n in range(30)),
            *(led(NOON + timedelta(minutes=96, seconds=20 * n), -1) for n in range(6)),
        ],
    }


TABLES = {t.name: t for t in (PRODUCER_EVENTS, CLIENT_CONFIGS, CLIENT_METRICS, CLUSTER_STATES)}


def add(lake: Lake, spark, batch: dict[str, list[dict]]) -> None:
    for name, records in batch.items():
        table = TABLES[name]
        if not records:
            continue
        if table.writer == "spark":
            frame = spark.createDataFrame(rows(table, records))
            writer = frame.write.format("delta").mode("append").partitionBy(*table.partition)
            writer.save(lake.path(table))
        else:
            lake.append(table, rows(table, records))


def run(lake: Lake, spark, options: Options | None = None) -> runner.RunCounts:
    return runner.run(JOB, lake, lambda: spark, NOON, options)


def table_of(lake: Lake) -> list[dict]:
    found = lake.read(RETRY_BUDGETS).to_pylist()
    return sorted(found, key=lambda r: (r["opened_at"], r["topic"], r["partition"], r["chain"]))


def test_any_split_of_the_evidence_gives_the_table_of_one_rebuild(spark, tmp_path):
    seed = 1
    evidence = a_bad_afternoon(seed)
    whole = Lake(tmp_path / "whole")
    add(whole, spark, evidence)
    run(whole, spark)
    expected = table_of(whole)
    assert len(expected) == 13
    assert {r["ended_by"] for r in expected} == {None, "recovered", "exhausted"}

    rng = random.Random(seed)
    parts: list[dict[str, list[dict]]] = [defaultdict(list) for _ in range(3)]
    for name, records in evidence.items():
        for record in records:
            # configs and metrics also come long after the lines they explain
            parts[rng.randrange(3)][name].append(record)
    split = Lake(tmp_path / "split")
    for part in parts:
        add(split, spark, part)
        run(split, spark)
    assert table_of(split) == expected
    assert run(split, spark).nothing_new


def test_what_is_joined(spark, tmp_path):
    lake = Lake(tmp_path)
    lines = [retry(NOON + timedelta(seconds=n), MAX - 1 - n, n) for n in range(5)]
    unknown = [retry(NOON, MAX - 1, 1, client_id="web", event_key="w", partition=9)]
    listed = [retry(NOON, 2, 1, client_id="batch-7", event_key="b", topic="jobs")]
    add(lake, spark, {
        PRODUCER_EVENTS.name: [*lines, *unknown, *listed],
        CLIENT_CONFIGS.name: [config(NOON - timedelta(days=3))],
        CLUSTER_STATES.name: [led(NOON + timedelta(seconds=30), 2)],
        CLIENT_METRICS.name: [
            sample("record-retry-total", NOON + timedelta(seconds=15), 48.0, 48.0)
        ],
    })  # fmt: skip
    inventory = {"batch-*": {"retries": "3", "delivery.timeout.ms": "60000"}}
    run(lake, spark, Options(inventory=inventory))
    by_client = {r["client_id"]: r for r in table_of(lake)}
    pay = by_client["pay-1"]
    assert pay["exhausts_at_latest"] == NOON + timedelta(seconds=120)
    assert pay["exhausts_at_earliest"] == NOON + timedelta(seconds=119.995)
    assert (pay["node"], pay["records_at_stake"], pay["category"]) == (2, 12, "replication")
    assert pay["confidence"] == "bounded"
    assert by_client["web"]["exhausts_at_latest"] is None
    assert "delivery.timeout.ms is not known" in by_client["web"]["unknown"]
    assert by_client["batch-7"]["attempts_left"] == 2
    assert by_client["batch-7"]["retries"] == 3
    assert "inventory/batch-*" in by_client["batch-7"]["evidence"]


def test_metrics_without_chains_touch_nothing(spark, tmp_path):
    lake = Lake(tmp_path)
    add(lake, spark, {CLIENT_METRICS.name: [sample("record-error-total", NOON, 5.0, 5.0)]})
    frame = spark.read.format("delta").load(lake.path(CLIENT_METRICS))
    evidence = Evidence({CLIENT_METRICS.name: frame}, {}, {}, None)
    assert chains_concerned(evidence) == frozenset()
