"""retry_budgets as a fold: what it joins, and the same table whatever runs brought the evidence."""

from __future__ import annotations

import random
from collections import defaultdict
from dataclasses import replace
from datetime import datetime, timedelta

from acktrail.audit.wire import Report, row_of_report
from acktrail.contracts import Table
from acktrail.contracts.arrow import rows
from acktrail.contracts.bronze import AUDIT_REPORTS, CLUSTER_STATES
from acktrail.contracts.gold import RETRY_BUDGETS
from acktrail.contracts.silver import CLIENT_CONFIGS, CLIENT_METRICS, PRODUCER_EVENTS
from acktrail.lake import Lake
from acktrail.lake.rows import Rows
from acktrail.window import day_of, hour_of
from pipelines import runner
from pipelines.gold.budgets_touched import chains_concerned
from pipelines.gold.retry_budgets import JOB
from pipelines.job import Evidence, Options
from tests.unit.retries.audited import Message, seen, verifiable
from tests.unit.retries.retry_lines import NOON

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


def led(when: datetime, leader: int, **more) -> dict:
    row = {
        "cluster": "c", "source": "cluster", "topic": "pay", "topic_id": "t", "partition": 0,
        "at": when, "leader": leader, "read_at": when, "day": day_of(when),
    }  # fmt: skip
    return {**row, **more}


def audited(reports: list[Report]) -> list[dict]:
    return [row_of_report(r, "c", "audits", NOON + timedelta(hours=4)) for r in reports]


def audits_of_the_second_outage() -> list[dict]:
    """Of pay-1 the answers alone: partition 1 fails for good. Of shop-1 sends too: all is well."""
    start = 95 * 60.0
    messages = [Message(n, start - 300 + n, "acked", start - 299.9 + n, n % 2) for n in range(600)]
    waited = [
        replace(m, told=start + 70) if start - 5 < m.created < start + 70 else m for m in messages
    ]
    failing = [
        replace(m, fate="indeterminate", told=m.created + 120)
        if m.partition == 1 and m.created > start - 5
        else m
        for m in waited
    ]
    pay = {"client_id": "pay-1", "host": "app1", "acks": "all"}
    shop = {"client_id": "shop-1", "host": "app1", "delivery.timeout.ms": "120000"}
    return audited(
        [
            *verifiable(failing, start + 600, settings=pay, topic="pay"),
            *seen(waited, start + 300, every=20, settings=shop, topic="shop"),
        ]
    )


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
                    if partition == 0 and start > NOON + timedelta(hours=1):
                        shop = {"client_id": "shop-1", "topic": "shop", "event_key": f"s{number}"}
                        events.append({**events[-1], **shop})
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
        AUDIT_REPORTS.name: audits_of_the_second_outage(),
    }


TABLES = {t.name: t for t in JOB.inputs}


def add(lake: Lake, spark, batch: dict[str, list[dict]]) -> None:
    for name, records in batch.items():
        table = TABLES[name]
        if records:
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
    assert len(expected) == 16
    assert {r["ended_by"] for r in expected} == {None, "recovered", "exhausted"}
    later = [r for r in expected if r["opened_at"] > NOON + timedelta(hours=1, minutes=30)]
    ends = {(r["client_id"], r["partition"], r["ended_by"]) for r in later}
    assert ends == {("pay-1", 0, None), ("pay-1", 1, "exhausted"), ("shop-1", 0, "recovered")}

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
    lost = {"kind": "connection_failure", "topic": None, "partition": None, "error": None}
    lost |= {"attempts_left": None, "node": 5, "client_id": "cut-off", "event_key": "c"}
    alone = led(NOON + timedelta(seconds=30), -1, topic="elsewhere", replicas=[5])
    add(lake, spark, {
        PRODUCER_EVENTS.name: [*lines, *unknown, *listed, retry(NOON, 0, 1, **lost)],
        CLIENT_CONFIGS.name: [config(NOON - timedelta(days=3))],
        CLUSTER_STATES.name: [led(NOON + timedelta(seconds=30), 2), alone],
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
    # Nobody leads a partition of the broker it lost: it may wait without a word.
    assert by_client["cut-off"]["quiet_at"] == NOON + timedelta(seconds=75)


def test_when_the_error_counter_is_believed(spark, tmp_path):
    """Only while every process's counter stands still, and no batch went uncounted."""
    alone = {"attempts_left": None, "correlation_id": None, "topic": None, "partition": None}
    lines, configs, metrics = [], [], []
    for client in ("fine", "two", "fell", "closed"):
        lines.append(retry(NOON, MAX - 1, 1, client_id=client, event_key=client))
        configs.append(config(NOON - timedelta(days=1), client))
        for n in range(-2, 12):
            when = NOON + timedelta(seconds=15 * n)
            total = 0.0 if client == "fell" and n > 2 else 3.0
            more = {"client_id": client, "series": client}
            metrics.append(sample("record-error-total", when, total, 0.0, **more))
            if client == "two":
                more |= {"series": "second", "instance": "app1:7072"}
                up = 7.0 if n == 9 else 0.0
                metrics.append(sample("record-error-total", when, 3.0, up, **more))
    lines.append(
        retry(NOON + timedelta(seconds=5), 0, 2, client_id="closed", kind="send_failed",
              event_key="x", detail="fatal_abort", error=None, **alone)
    )  # fmt: skip
    lake = Lake(tmp_path)
    add(lake, spark, {
        PRODUCER_EVENTS.name: lines, CLIENT_CONFIGS.name: configs, CLIENT_METRICS.name: metrics,
    })  # fmt: skip
    run(lake, spark)
    ended = {r["client_id"]: r["ended_by"] for r in table_of(lake)}
    assert ended == {"fine": "recovered", "two": None, "fell": None, "closed": "ended_unknown"}


def rows_in(lake: Lake, table: Table) -> Rows:
    seen = lake.look(table)
    assert seen is not None
    return Rows(table, lake.at(table), seen)


def test_metrics_without_chains_touch_nothing(spark, tmp_path):
    lake = Lake(tmp_path)
    add(lake, spark, {CLIENT_METRICS.name: [sample("record-error-total", NOON, 5.0, 5.0)]})
    evidence = Evidence({CLIENT_METRICS.name: rows_in(lake, CLIENT_METRICS)}, {}, {}, None)
    assert chains_concerned(evidence) == frozenset()


def test_audits_end_a_chain_that_was_there_before(spark, tmp_path):
    lake = Lake(tmp_path)
    lines = [retry(NOON + timedelta(seconds=n), MAX - 1 - n, n) for n in range(5)]
    add(lake, spark, {PRODUCER_EVENTS.name: lines})
    run(lake, spark)
    (open_chain,) = table_of(lake)
    assert (open_chain["ended_by"], open_chain["exhausts_at_latest"]) == (None, None)
    said = {"client_id": "pay-1", "host": "app1", "delivery.timeout.ms": "120000", "linger.ms": "5"}
    messages = [Message(n, n - 3.0, "acked", max(n - 2.9, 40.0), 0) for n in range(300)]
    reports = audited(verifiable(messages, 90, settings=said, topic="pay"))
    add(lake, spark, {AUDIT_REPORTS.name: reports})
    run(lake, spark)
    (forecast,) = table_of(lake)
    assert (forecast["ended_by"], forecast["delivery_timeout_ms"]) == (None, 120_000)
    assert forecast["exhausts_at_latest"] == NOON + timedelta(seconds=120)
    assert "audit session vp-7" in forecast["evidence"]
    rest = audited(verifiable(messages, 290, settings=said, topic="pay"))
    add(lake, spark, {AUDIT_REPORTS.name: [r for r in rest if r not in reports]})
    run(lake, spark)
    (ended,) = table_of(lake)
    assert (ended["ended_by"], ended["ended_at"]) == ("recovered", NOON + timedelta(seconds=129.1))
    assert any(key.startswith("audit/vp-7/pay-0/acked/") for key in ended["evidence"])


def test_an_audit_session_meets_its_client_by_the_alias_rules(spark, tmp_path):
    lake = Lake(tmp_path)
    lines = [retry(NOON + timedelta(seconds=n), MAX - 1 - n, n) for n in range(5)]
    elsewhere = [{**r, "host": "app2", "record_key": f"{r['record_key']}b"} for r in lines]
    said = {"client_id": "legacy-pay-1", "host": "pod-app1", "delivery.timeout.ms": "60000"}
    messages = [Message(n, n - 3.0, "acked", n - 2.9, 0) for n in range(60)]
    reports = audited(verifiable(messages, 90, settings=said, topic="pay"))
    add(lake, spark, {PRODUCER_EVENTS.name: [*lines, *elsewhere], AUDIT_REPORTS.name: reports})
    aliases = (
        {"field": "client_id", "match": "^legacy-(.+)$", "client_id": r"\1"},
        {"field": "host", "match": "^pod-(.+)$", "host": r"\1"},
    )
    run(lake, spark, Options(aliases=aliases))
    timeouts = {row["host"]: row["delivery_timeout_ms"] for row in table_of(lake)}
    assert timeouts == {"app1": 60_000, "app2": None}


def test_audits_without_chains_touch_nothing(spark, tmp_path):
    lake = Lake(tmp_path)
    reports = audited(verifiable([Message(n, n, "acked", n + 0.1) for n in range(9)], 20))
    add(lake, spark, {AUDIT_REPORTS.name: reports})
    add(lake, spark, {PRODUCER_EVENTS.name: [retry(NOON - timedelta(days=1), MAX - 1, 1)]})
    run(lake, spark)
    new = {AUDIT_REPORTS.name: rows_in(lake, AUDIT_REPORTS)}
    output = rows_in(lake, RETRY_BUDGETS)
    assert chains_concerned(Evidence(new, {}, {}, None)) == frozenset()
    assert chains_concerned(Evidence(new, {}, {}, output)) == frozenset()
