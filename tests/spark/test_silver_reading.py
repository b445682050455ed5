"""The jobs from bronze logs and metrics to silver facts: one run each over a small lake."""
# ruff: noqa: E501 - the lines of the table are log lines.

from __future__ import annotations

from datetime import UTC, datetime, timedelta

import pytest

from acktrail.contracts.arrow import rows
from acktrail.contracts.bronze import AUDIT_REPORTS, LOG_RECORDS, METRIC_SAMPLES
from acktrail.lake import Lake
from pipelines import runner
from pipelines.job import Options
from pipelines.registry import jobs_named
from pipelines.silver.clients import _meet

DAY = "2026-01-31"
AT = datetime(2026, 1, 31, 7, 0, tzinfo=UTC)
SENDER = "(org.apache.kafka.clients.producer.internals.Sender)"
EXPIRED = (
    "org.apache.kafka.common.errors.TimeoutException: Expiring 2 record(s) for orders-3:120004 ms "
    "has passed since batch creation"
)
UNCLEAN = (
    "[2026-01-31 07:00:05,000] INFO [QuorumController id={}] UNCLEAN partition change for orders-3 "
    "with topic ID 3DxQ8q2dTvC0u7WJgJ0y2w: isr: [1] -> [2], leader: -1 -> 2, leaderEpoch: 7 -> 8 "
    "(org.apache.kafka.controller.ReplicationControlManager)"
)
RECORDS = [
    # file, position, text
    ("app", 0, "[2026-01-31 07:00:00,001] INFO ProducerConfig values: \n\tacks = -1\n\tclient.id = "
     "p-1\n\tenable.idempotence = false\n\tretries = 5\n (org.x.ProducerConfig)"),
    ("app", 300, "[2026-01-31 07:00:00,005] INFO Kafka version: 3.9.2 (org.x.AppInfoParser)"),
    ("app", 400, "[2026-01-31 16:00:01,000] WARN [Producer clientId=p-1] Got error produce response "
     "with correlation id 41 on topic-partition orders-3, retrying (4 attempts left). Error: "
     f"NOT_ENOUGH_REPLICAS {SENDER}"),
    ("app", 700, f"[2026-01-31 16:02:01,000] ERROR first callback (com.x.App)\n{EXPIRED}"),
    ("app", 900, f"[2026-01-31 16:02:01,001] ERROR second callback (com.x.App)\n{EXPIRED}"),
    ("app", 1200, "[2026-01-31 16:02:02,000] WARN Got error produce response of a release to come"),
    ("app", 1300, "[2026-01-31 16:02:02,000] INFO shipping nothing of interest"),
    ("app", 1400, "%3|1769842802.200|FAIL|rd-1#producer-1| [thrd:b/1]: b:9092/1: Connect to x failed "
     "(after 3ms in state CONNECT)"),
    ("app", 1500, "[2026-01-31 07:00:03,000] WARN [Consumer clientId=c, groupId=g] Offset commit "
     "failed on partition orders-2 at offset 6: This server does not host this topic-partition."),
    ("app", 1700, "[2026-01-31 16:00:01,000] WARN [Producer clientId=legacy-p-2] Got error produce "
     "response with correlation id 41 on topic-partition orders-3, retrying (4 attempts left). Error: "
     f"NOT_ENOUGH_REPLICAS {SENDER}"),
    ("one", 0, UNCLEAN.format(1)),
    ("two", 0, UNCLEAN.format(2)),
    ("two", 400, "[2026-01-31 07:00:06,000] ERROR [ReplicaManager broker=2] Error processing append "
     "operation on partition orders-3 (kafka.server.ReplicaManager)\norg.apache.kafka.common.errors."
     "NotEnoughReplicasException: The size of the current ISR : 1 is insufficient"),
]  # fmt: skip
SAMPLES = [
    # series, metric, labels, minute, value
    ("a", "kafka_producer_producer_metrics_record_error_total", {"client_id": "p-1"}, 0, 10.0),
    ("a", "kafka_producer_producer_metrics_record_error_total", {"client_id": "p-1"}, 1, 16.0),
    ("a", "kafka_producer_producer_metrics_record_error_total", {"client_id": "p-1"}, 2, 4.0),
    ("a", "kafka_producer_producer_metrics_record_error_total", {"client_id": "p-1"}, 90, 9.0),
    ("b", "kafka_producer_topic_record_retry", {"clientId": "p-1", "topic": "orders"}, 0, 1.0),
    ("b", "kafka_producer_topic_record_retry", {"clientId": "p-1", "topic": "orders"}, 1, 3.0),
    ("c", "kafka_producer_producer_metrics_record_queue_time_max", {"client_id": "p-1"}, 0, float("nan")),
    ("g", "kafka_producer_producer_metrics_record_retry_total", {"client-id": "p-1"}, 0, 5.0),
    ("g", "kafka_producer_producer_metrics_record_retry_total", {"client-id": "p-1"}, 1, float("nan")),
    ("g", "kafka_producer_producer_metrics_record_retry_total", {"client-id": "p-1"}, 2, 9.0),
    ("g", "kafka_producer_producer_metrics_record_retry_total", {"client-id": "p-1"}, 3, float("inf")),
    ("g", "kafka_producer_producer_metrics_record_retry_total", {"client-id": "p-1"}, 4, 2.0),
    ("g", "kafka_producer_producer_metrics_record_retry_total", {"client-id": "p-1"}, 30, float("nan")),
    ("g", "kafka_producer_producer_metrics_record_retry_total", {"client-id": "p-1"}, 65, 4.0),
    ("d", "kafka_server_brokertopicmetrics_failedproducerequests_total", {}, 0, 5.0),
    ("d", "kafka_server_brokertopicmetrics_failedproducerequests_total", {}, 1, 7.0),
    ("e", "kafka_server_brokertopicmetrics_failedproducerequests_total", {"topic": "orders"}, 1, 2.0),
    ("f", "kafka_network_requestmetrics_errors_total", {"request": "Produce", "error": "NONE"}, 0, 5.0),
    ("h", "kafka_producer_producer_metrics_record_send_rate", {"clientId": "legacy-p-2"}, 0, 1.0),
    ("z", "jvm_threads_current", {}, 0, 1.0),
]  # fmt: skip
BROKERS = [
    # target, labels -> broker: a rule's, else the label's, else the one in the target's name
    ("kafka-2:7071", {}, 2),
    ("kafka-2:7072", {"broker": "12"}, 12),
    ("10.0.0.3:7071", {}, None),
    ("10.0.0.4:7071", {}, 4),
    ("10.0.0.4:7072", {"broker": "12"}, 4),
    ("10.0.0.5:7071", {}, 5),
    ("kafka-9:7071", {}, None),
    ("kafka-9:7072", {"broker": "12"}, 12),
]
UNDER = "kafka_server_replicamanager_underminisrpartitioncount"
ALIASES = (
    {"field": "instance", "match": r"10\.0\.0\.7", "host": "app-host", "client_id": None},
    {"field": "client_id", "match": "^legacy-(.+)$", "client_id": r"\1"},
    {"field": "host", "match": r"^pod-7\.", "host": "app-host"},
    {"field": "instance", "match": r"^10\.0\.0\.(4):", "broker": r"\1"},
    {"field": "instance", "match": r"^10\.0\.0\.5:", "host": "kafka-5"},
    {"field": "instance", "match": "^kafka-9:", "broker": ""},
)


def _record(file, position, text):
    zone = "Asia/Tokyo" if "16:0" in text else None
    return {
        "cluster": "c", "source": "logs", "host": "app-host", "file_id": file, "path": f"/l/{file}",
        "position": position, "text": text, "truncated": False, "zone": zone, "read_at": AT, "day": DAY,
    }  # fmt: skip


def _sample(series, metric, labels, minute, value, instance="10.0.0.7:9404"):
    return {
        "cluster": "c", "source": "prom", "instance": instance, "metric": metric,
        "labels": labels, "series": series, "at": AT + timedelta(minutes=minute), "value": value,
        "read_at": AT, "day": DAY,
    }  # fmt: skip


HEARTBEAT = {
    "cluster": "c", "source": "audit", "reporter": "r", "session": "s-1", "topic": "orders",
    "partition": -1, "tier": "heartbeat", "group": "", "block": -1, "part": 0, "number": 0,
    "records": 0, "settings": {"client_id": "p-1", "host": "pod-7"}, "closed": False,
    "reported_at": AT, "read_at": AT, "day": DAY,
}  # fmt: skip


@pytest.fixture(scope="module")
def silver(spark, tmp_path_factory):
    """Every table after one run, and what each run counted."""
    lake = Lake(tmp_path_factory.mktemp("lake"))
    lake.append(LOG_RECORDS, rows(LOG_RECORDS, [_record(*r) for r in RECORDS]))
    samples = [_sample(*s) for s in SAMPLES]
    samples += [_sample(f"u-{i}", UNDER, labels, 0, 1.0, i) for i, labels, _ in BROKERS]
    lake.append(METRIC_SAMPLES, rows(METRIC_SAMPLES, samples))
    legacy = {"client_id": "legacy-p-2", "host": "pod-7.prod.svc"}
    sessions = [HEARTBEAT, {**HEARTBEAT, "session": "s-2", "settings": legacy}]
    lake.append(AUDIT_REPORTS, rows(AUDIT_REPORTS, sessions))
    names = ("producer_events", "consumer_events", "broker_events", "unread_records")
    names += ("client_configs", "client_metrics", "broker_metrics")
    names += ("client_sightings", "clients")
    jobs = jobs_named(names)
    counts = {
        j.name: runner.run(j, lake, lambda: spark, AT, Options(aliases=ALIASES)) for j in jobs
    }
    tables = {job.name: lake.read(job.output).to_pylist() for job in jobs}
    return lake, tables, counts


def test_producer_events(silver):
    _, tables, counts = silver
    got = {r["record_key"]: r for r in tables["producer_events"]}
    retry = got["logs/app/400"]
    assert (retry["kind"], retry["topic"], retry["attempts_left"]) == ("retry", "orders", 4)
    assert (retry["retriable"], retry["category"]) == (True, "replication")
    assert retry["at"] == datetime(2026, 1, 31, 7, 0, 1, tzinfo=UTC)  # the source's zone is Tokyo
    assert retry["hour"] == "2026-01-31T07"
    assert got["logs/app/1400"]["client_id"] == "rd-1"  # librdkafka's instance number is no name
    # One batch of two records, printed by both callbacks: two rows, one event.
    assert got["logs/app/700"]["event_key"] == got["logs/app/900"]["event_key"]
    counted = counts["producer_events"]
    assert counted.rows_in == len(RECORDS)
    assert counted.rows_in == counted.rows_out + sum(counted.dropped.values())


def test_an_election_printed_by_two_controllers_is_one_event(silver):
    _, tables, _ = silver
    elections = [r for r in tables["broker_events"] if r["kind"] == "unclean_election"]
    assert len(elections) == 2
    assert len({r["event_key"] for r in elections}) == 1
    assert (elections[0]["leader"], elections[0]["leader_epoch"]) == (2, 8)


def test_consumers_and_what_cannot_be_read(silver):
    _, tables, _ = silver
    (commit,) = tables["consumer_events"]
    assert (commit["kind"], commit["group"], commit["offset"]) == ("commit_failed", "g", 6)
    (unread,) = tables["unread_records"]
    assert (unread["reason"], unread["path"]) == ("Got error produce response", "/l/app")


def test_settings_are_read_with_the_version_behind_them(silver):
    _, tables, _ = silver
    (config,) = tables["client_configs"]
    assert (config["client_id"], config["client_version"]) == ("p-1", "3.9.2")
    assert (config["acks"], config["retries"], config["idempotent"]) == ("all", 5, False)
    assert (config["guarantee"], config["ordered"]) == ("at_least_once", False)
    assert config["linger_ms"] == 0
    assert dict(config["overridden"]) == {"enable.idempotence": "false", "retries": "5"}


def test_totals_grow_across_resets_and_never_out_of_nothing(silver):
    _, tables, _ = silver
    grown = sorted(
        (r["metric"], r["topic"] or "", r["at"], r["value"], r["increase"])
        for r in tables["client_metrics"]
    )
    minutes = [(m, t, (at - AT).total_seconds() / 60, v, i) for m, t, at, v, i in grown]
    assert minutes == [
        ("record-error-total", "", 0, 10.0, None),
        ("record-error-total", "", 1, 16.0, 6.0),
        ("record-error-total", "", 2, 4.0, 4.0),  # restarted: counted from 0
        ("record-error-total", "", 90, 9.0, None),  # too long unseen: unknown, not zero
        ("record-queue-time-max", "", 0, None, None),
        ("record-retry-total", "", 0, 5.0, None),
        ("record-retry-total", "", 1, None, None),
        ("record-retry-total", "", 2, 9.0, 4.0),  # since the number before NaN
        ("record-retry-total", "", 3, None, None),
        ("record-retry-total", "", 4, 2.0, 2.0),  # restarted while it was no number
        ("record-retry-total", "", 30, None, None),
        ("record-retry-total", "", 65, 4.0, None),  # the last number is more than an hour old
        ("record-retry-total", "orders", 0, 1.0, None),
        ("record-retry-total", "orders", 1, 3.0, 2.0),
        ("record-send-rate", "", 0, 1.0, None),
    ]
    since = [r["elapsed_ms"] for r in tables["client_metrics"] if r["increase"] == 4.0]
    assert sorted(since) == [60_000, 120_000]
    errors = [r for r in tables["client_metrics"] if r["increase"] == 6.0]
    assert [r["rate_per_s"] for r in errors] == [0.1]
    assert {r["host"] for r in errors} == {"app-host"}


def test_all_topics_and_one_topic_stay_apart(silver):
    _, tables, _ = silver
    failed = [r for r in tables["broker_metrics"] if r["metric"] == "failed-produce-requests-total"]
    latest = {r["topic"]: r["increase"] for r in failed if r["at"] > AT}
    assert latest == {None: 2.0, "orders": 2.0}  # the topic's series began with its first failure
    began = [r["elapsed_ms"] for r in failed if r["topic"] == "orders"]
    assert began == [60_000]  # since the target's samples before it
    (none,) = [r for r in tables["broker_metrics"] if r["metric"] == "request-errors-total"]
    assert (none["request"], none["error"]) == ("Produce", "NONE")


def test_a_producer_s_log_metrics_and_audit_meet(silver):
    _, tables, _ = silver
    rows = {r["client_id"]: r for r in tables["clients"]}
    met = rows["p-1"]
    assert (met["host"], met["session"], met["instance"]) == ("app-host", "s-1", "10.0.0.7:9404")
    assert (met["in_logs"], met["in_metrics"], met["in_audits"]) == (True, True, True)
    assert (rows["rd-1"]["in_logs"], rows["rd-1"]["in_metrics"]) == (True, False)


def test_the_alias_rules_hold_for_every_kind_of_evidence(silver):
    _, tables, _ = silver
    (met,) = [r for r in tables["clients"] if r["client_id"].endswith("p-2")]
    assert (met["client_id"], met["host"], met["session"]) == ("p-2", "app-host", "s-2")
    assert (met["in_logs"], met["in_metrics"], met["in_audits"]) == (True, True, True)


def test_which_broker_a_target_is(silver):
    _, tables, _ = silver
    below = [r for r in tables["broker_metrics"] if r["metric"] == "under-min-isr-partitions"]
    assert {r["instance"]: r["broker"] for r in below} == {i: b for i, _, b in BROKERS}


def test_a_client_known_from_audits_alone_has_no_host_to_look_for(spark):
    columns = ["cluster", "client_id", "evidence", "host"]
    named = spark.createDataFrame([("c", "p-9", "audits", "")], columns)
    assert [row["host"] for row in _meet(named).collect()] == [""]


def test_growth_across_nan_is_the_same_in_any_split(spark, tmp_path):
    """Numbers, NaN and a restart on both sides of two hours, dealt out to three runs."""
    nan = float("nan")
    values = [5.0, nan, 9.0, nan, nan, 2.0, nan, 7.0, nan, nan, nan, 8.0]
    total, failed = SAMPLES[0][1], "kafka_server_brokertopicmetrics_failedproducerequests_total"
    samples = [
        _sample(name, metric, labels, 20 * n, value)
        for n, value in enumerate(values)
        for name, metric, labels in (
            ("a", total, {"client_id": "p-1"}),
            ("d", failed, {}),
            *([("e", failed, {"topic": "orders"})] if n > 4 else []),
        )
    ]
    jobs = jobs_named(("client_metrics", "broker_metrics"))
    found = {}
    for name, parts in (
        ("whole", [samples]),
        ("split", [samples[2::3], samples[::3], samples[1::3]]),
    ):
        lake = Lake(tmp_path / name)
        for part in parts:
            lake.append(METRIC_SAMPLES, rows(METRIC_SAMPLES, part))
            for job in jobs:
                runner.run(job, lake, lambda: spark, AT)
        found[name] = [
            sorted((r["series"], r["at"], r["increase"], r["elapsed_ms"]) for r in lake.read(j.output).to_pylist())
            for j in jobs
        ]  # fmt: skip
    assert found["split"] == found["whole"]
    grown = {at: (by, ms) for series, at, by, ms in found["whole"][0] if by is not None}
    assert grown == {
        AT + timedelta(minutes=40): (4.0, 2_400_000),
        AT + timedelta(minutes=100): (2.0, 3_600_000),  # the number before is just an hour old
        AT + timedelta(minutes=140): (5.0, 2_400_000),
    }
