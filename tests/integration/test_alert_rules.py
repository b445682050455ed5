"""Every Prometheus rule, firing and not firing, by promtool; and its runbook is there."""

from __future__ import annotations

import re
import subprocess
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pytest
import yaml

from expectations.policy_suites import check_names
from expectations.suites import SUITES

ROOT = Path(__file__).parents[2]
FILES = sorted((ROOT / "deploy/prometheus").glob("*.rules.yml"))
RULES: dict[str, dict[str, Any]] = {
    rule.get("alert") or rule["record"]: rule
    for file in FILES
    for group in yaml.safe_load(file.read_text())["groups"]
    for rule in group["rules"]
}


@dataclass(frozen=True)
class Case:
    """Samples of a minute each, and the alerts that fire after *minutes*: labels to summary."""

    alert: str
    series: dict[str, str]
    fires: dict[str, str] = field(default_factory=dict)
    minutes: int = 20


def steady(value: str) -> str:
    """A value for half an hour; promtool's short form does not know NaN."""
    return " ".join([value] * 30)


NAN = steady("NaN")
LOST = 'acktrail_lost_messages{topic="pay",group="",state="%s",cause="truncated"}'
MISSED = 'acktrail_lost_messages{topic="pay",group="billing",state="%s",cause="retention"}'
NO_LOSS = 'acktrail_lost_messages{topic="",group="",state="",cause=""}'
LEFT = 'acktrail_retry_budget_seconds_left{client_id="shop"}'
CRITICAL = 'acktrail_retry_budgets_critical{client_id="shop"}'
CHECK = 'acktrail_check_state{check="no_message_lost",table="loss_incidents"}'
RESIDUAL = 'acktrail_ledger_residual{cluster="c"}'
AGE = 'acktrail_evidence_age_seconds{source="app"}'
SOURCE = 'acktrail_sources{source="app",state="%s"}'
PENDING = 'acktrail_job_pending_seconds{acktrail_job="coverage"}'
FAILED = 'acktrail_job_failed{acktrail_job="coverage"}'
CHECKED = 'acktrail_job_last_success_timestamp_seconds{acktrail_job="check"}'
CHECKS = 'acktrail_answer_up{answer="checks"}'
STATED = 'acktrail_exporter_timestamp_seconds{instance="a"}'
JMX = 'kafka_producer_producer_metrics_record_%s_total{client_id="shop",instance="a"}'
CONNECT = 'kafka_producer_record_%s_total{clientId="shop",instance="a"}'
BROKER = 'kafka_server_brokertopicmetrics_failed%srequests_total{instance="b"}'
CASES = [
    Case(
        "AcktrailAckedMessagesLost",
        {LOST % "lost_after_ack": "0 176x30"},
        {LOST % "lost_after_ack": "176 acknowledged messages of pay are lost (truncated)"},
    ),
    Case("AcktrailAckedMessagesLost", {NO_LOSS: "0x30", LOST % "rejected": "9x30"}),
    Case("AcktrailAckedMessagesLost", {NO_LOSS: NAN}),
    Case(
        "AcktrailMessagesLost",
        {LOST % "unaccounted": "2x30", LOST % "lost_in_crash": "3x30"},
        {
            LOST % "unaccounted": "2 messages of pay are lost (unaccounted, truncated)",
            LOST % "lost_in_crash": "3 messages of pay are lost (lost_in_crash, truncated)",
        },
    ),
    Case("AcktrailMessagesLost", {LOST % "lost_after_ack": "9x30", LOST % "rejected": "9x30"}),
    Case(
        "AcktrailMessagesRejected",
        {LOST % "rejected": "4x30"},
        {
            LOST % "rejected": "4 messages of pay were not stored, and the application was told "
            "(truncated)"
        },
    ),
    Case("AcktrailMessagesRejected", {LOST % "lost_after_ack": "9x30", LOST % "rejected": "0x30"}),
    Case(
        "AcktrailMessagesMissedByGroup",
        {MISSED % "expired_before_read": "4x30"},
        {
            MISSED % "expired_before_read": "Group billing missed 4 messages of pay "
            "(expired_before_read, retention)"
        },
    ),
    Case("AcktrailMessagesMissedByGroup", {LOST % "rejected": "4x30"}),
    Case(
        "AcktrailRetryBudgetEnding",
        {LEFT: "90-6x30", CRITICAL: "1x30"},
        {LEFT: "shop gives up a batch in 30s (NaN: not known)"},
        minutes=10,
    ),
    Case(
        "AcktrailRetryBudgetEnding",
        {LEFT: NAN, CRITICAL: "1x30"},
        {LEFT: "shop gives up a batch in NaN (NaN: not known)"},
    ),
    Case("AcktrailRetryBudgetEnding", {LEFT: "90x30", CRITICAL: "0x30"}),
    Case(
        "AcktrailLedgerDoesNotBalance",
        {RESIDUAL: "2x30"},
        {'acktrail_ledger_residual{cluster="c"}': "The accounts of c do not balance by 2 messages"},
    ),
    Case("AcktrailLedgerDoesNotBalance", {'acktrail_ledger_residual{cluster="c"}': "0x30"}),
    Case(
        "AcktrailCheckFailed",
        {CHECK: "0 2x30"},
        {CHECK: "Check no_message_lost failed on loss_incidents"},
    ),
    *(Case("AcktrailCheckFailed", {CHECK: steady(other)}) for other in ("0", "1", "3", "NaN")),
    Case(
        "AcktrailCheckWarning",
        {CHECK: "1x30"},
        {CHECK: "Check no_message_lost failed on loss_incidents (grade warn)"},
    ),
    Case("AcktrailCheckWarning", {CHECK: "0x15 1x15"}),
    *(Case("AcktrailCheckWarning", {CHECK: steady(other)}) for other in ("0", "2", "3", "NaN")),
    Case(
        "AcktrailCheckUndecided",
        {CHECK: "3x30"},
        {CHECK: "Check no_message_lost cannot be decided, evidence is missing"},
    ),
    *(Case("AcktrailCheckUndecided", {CHECK: steady(other)}) for other in ("0", "1", "2", "NaN")),
    Case(
        "AcktrailMetricsMissing",
        {},
        {"{}": "No exporter of acktrail is scraped; nobody would be told of lost messages"},
    ),
    Case("AcktrailMetricsMissing", {"acktrail_lake_up": "0x30"}),
    Case(
        "AcktrailLakeUnreadable",
        {"acktrail_lake_up": "1x5 0x25"},
        {"{}": "The exporter cannot read the lake, or a part of it"},
    ),
    Case("AcktrailLakeUnreadable", {"acktrail_lake_up": "1x30"}),
    Case(
        "AcktrailMetricsStale",
        {STATED: "0x60"},
        {'{instance="a"}': "The metrics file of acktrail is 30m 0s old"},
        minutes=30,
    ),
    Case("AcktrailMetricsStale", {STATED: "0+60x60"}, minutes=30),
    Case(
        "AcktrailEvidenceStale",
        {AGE: "3000+60x60"},
        {AGE: "Source app has given nothing for 1h 20m 0s"},
        minutes=30,
    ),
    Case("AcktrailEvidenceStale", {AGE: "600x60"}),
    Case("AcktrailEvidenceStale", {AGE: NAN}),
    *(
        Case(
            "AcktrailSourceDown",
            {SOURCE % state: "2x30"},
            {SOURCE % state: f"Source app is {state} on 2 hosts"},
        )
        for state in ("failing", "stopped", "silent")
    ),
    Case("AcktrailSourceDown", {SOURCE % "up": "2x30", SOURCE % "ended": "1x30"}),
    Case(
        "AcktrailEvidenceWaits",
        {PENDING: "0+120x60"},
        {PENDING: "Evidence has waited 1h 0m 0s for coverage"},
        minutes=30,
    ),
    Case(
        "AcktrailEvidenceWaits",
        {PENDING: NAN},
        {PENDING: "Evidence has waited NaN for coverage"},
    ),
    Case("AcktrailEvidenceWaits", {PENDING: "600x60"}),
    Case("AcktrailJobFailed", {FAILED: "1x30"}, {FAILED: "The last run of coverage failed"}),
    Case("AcktrailJobFailed", {FAILED: "0x30"}),
    Case(
        "AcktrailChecksNotRunning",
        {CHECKED: "0x90", CHECKS: "1x90"},
        {'{acktrail_job="check"}': "No check has been evaluated for half an hour"},
        minutes=60,
    ),
    Case(
        "AcktrailChecksNotRunning",
        {CHECKS: NAN},
        {'{answer="checks"}': "No check has been evaluated for half an hour"},
    ),
    Case("AcktrailChecksNotRunning", {CHECKED: "0+60x90", CHECKS: "1x90"}, minutes=60),
    *(
        Case(
            "KafkaProducerRetries",
            {series % "retry": "0+120x30"},
            {'{client_id="shop",instance="a"}': "shop retries 2 records a second (a)"},
        )
        for series in (JMX, CONNECT)
    ),
    Case("KafkaProducerRetries", {JMX % "retry": "0+30x30", JMX % "error": "0+600x30"}),
    Case(
        "KafkaProducerErrors",
        {JMX % "error": "0x10 0+60x30"},
        {'{client_id="shop",instance="a"}': "shop gives up 1 records a second (a)"},
    ),
    Case("KafkaProducerErrors", {JMX % "error": "7x30", JMX % "retry": "0+60x30"}),
    Case(
        "KafkaFailedProduceRequests",
        {BROKER % "produce": "0+12x30"},
        {'{instance="b"}': "b failed 60 produce requests in five minutes"},
    ),
    Case("KafkaFailedProduceRequests", {BROKER % "produce": "9x30", BROKER % "fetch": "0+60x30"}),
    Case(
        "KafkaFailedFetchRequests",
        {BROKER % "fetch": "0+12x30"},
        {'{instance="b"}': "b failed 60 fetch requests in five minutes"},
    ),
    Case("KafkaFailedFetchRequests", {BROKER % "fetch": "9x30", BROKER % "produce": "0+60x30"}),
    Case(
        "KafkaProducerMetricsMissing",
        {JMX % "error": "0x60"},
        {"{}": "No producer's retries and errors are scraped under a known name"},
        minutes=30,
    ),
    Case("KafkaProducerMetricsMissing", {JMX % "error": "0x60", JMX % "retry": "0x60"}, minutes=30),
    Case(
        "KafkaBrokerMetricsMissing",
        {},
        {"{}": "No broker's failed requests are scraped under a known name"},
        minutes=30,
    ),
    Case(
        "KafkaBrokerMetricsMissing",
        {BROKER % "produce": "0x60", BROKER % "fetch": "0x60"},
        minutes=30,
    ),
]


def test_every_alert_has_a_case_in_which_it_fires_and_one_in_which_it_does_not():
    alerts = {name for name, rule in RULES.items() if "alert" in rule}
    assert {case.alert for case in CASES if case.fires} == alerts
    assert {case.alert for case in CASES if not case.fires} == alerts


def test_rules_are_well_formed():
    promtool("check", "rules", *map(str, FILES))


def test_every_rule_fires_when_it_should_and_only_then(tmp_path):
    found = [_as_promtool(case) for case in CASES]
    file = tmp_path / "cases.yml"
    file.write_text(yaml.safe_dump({"rule_files": list(map(str, FILES)), "tests": found}))
    promtool("test", "rules", str(file))


def test_a_wrong_case_is_found(tmp_path):
    """promtool fails where an alert does not fire: the test above can fail."""
    wrong = Case("AcktrailLakeUnreadable", {"acktrail_lake_up": "1x30"}, {"{}": "x"})
    file = tmp_path / "cases.yml"
    tests = [_as_promtool(wrong)]
    file.write_text(yaml.safe_dump({"rule_files": list(map(str, FILES)), "tests": tests}))
    with pytest.raises(AssertionError, match="FAILED"):
        promtool("test", "rules", str(file))


def promtool(*words: str) -> None:
    done = subprocess.run(["promtool", *words], capture_output=True, text=True, check=False)
    assert done.returncode == 0, f"{done.stdout[-3000:]}\n{done.stderr[-3000:]}"


def _as_promtool(case: Case) -> dict[str, Any]:
    rule = RULES[case.alert]
    expected = []
    for series, summary in case.fires.items():
        labels = dict(re.findall(r'(\w+)="([^"]+)"', series))
        shown = {**labels, "summary": summary}
        expected.append(
            {
                "exp_labels": {**labels, **rule["labels"]},
                "exp_annotations": {
                    name: summary if name == "summary" else _rendered(text, shown)
                    for name, text in rule["annotations"].items()
                },
            }
        )
    return {
        "name": f"{case.alert} {case.series}",
        "interval": "1m",
        "input_series": [{"series": s, "values": v} for s, v in case.series.items()],
        "alert_rule_test": [
            {
                "eval_time": f"{case.minutes}m",
                "alertname": case.alert,
                "exp_alerts": expected,
            }
        ],
    }


def _rendered(template: str, labels: dict[str, str]) -> str:
    return re.sub(r"\{\{ \$labels\.(\w+) \}\}", lambda m: labels[m.group(1)], template)


PRODUCER = ("retries", "retry"), ("errors", "error")
REQUESTS = ("produce", "Produce"), ("fetch", "Fetch")
SPELLINGS = [
    *(
        (f"acktrail:kafka_producer_record_{recorded}:rate5m", spelling % attribute, growth)
        for recorded, attribute in PRODUCER
        for spelling, growth in (
            ("kafka_producer_producer_metrics_record_%s_total", True),
            ("kafka_producer_producer_metrics_record_%s", True),
            ("kafka_producer_record_%s_total", True),
            ("org_apache_kafka_producer_record_%s_total", True),
            ("kafka_producer_producer_metrics_record_%s_rate", False),
            ("kafka_producer_record_%s_rate", False),
        )
    ),
    *(
        (f"acktrail:kafka_failed_{recorded}_requests:rate5m", spelling % label, growth)
        for recorded, label in REQUESTS
        for spelling, growth in (
            ("kafka_server_BrokerTopicMetrics_Failed%sRequests_total", True),
            ("kafka_server_BrokerTopicMetrics_Failed%sRequestsPerSec_Count", True),
            ("kafka_server_BrokerTopicMetrics_Failed%sRequestsPerSec", True),
            ('kafka_server_BrokerTopicMetrics_Count{name="Failed%sRequestsPerSec"}', True),
            ("kafka_server_BrokerTopicMetrics_Failed%sRequestsPerSec_OneMinuteRate", False),
            ('kafka_server_BrokerTopicMetrics_OneMinuteRate{name="Failed%sRequestsPerSec"}', False),
        )
    ),
]


def test_every_recording_rule_gives_the_same_number_from_every_spelling(tmp_path):
    tests = []
    for record, series, growth in SPELLINGS:
        for spelt in (series, _lower(series)):
            tests.append(
                {
                    "name": spelt,
                    "interval": "1m",
                    "input_series": [{"series": spelt, "values": "0+120x30" if growth else "2x30"}],
                    "promql_expr_test": [
                        {
                            "expr": record,
                            "eval_time": "20m",
                            "exp_samples": [{"labels": record, "value": 2}],
                        }
                    ],
                }
            )
    file = tmp_path / "cases.yml"
    file.write_text(yaml.safe_dump({"rule_files": list(map(str, FILES)), "tests": tests}))
    promtool("test", "rules", str(file))
    assert {record for record, *_ in SPELLINGS} == {n for n, r in RULES.items() if "record" in r}


def _lower(series: str) -> str:
    name, brace, labels = series.partition("{")
    return f"{name.lower()}{brace}{labels}"


@pytest.mark.parametrize("name", [n for n, r in RULES.items() if "alert" in r])
def test_every_alert_links_to_a_page_that_is_there(name):
    url = RULES[name]["annotations"]["runbook_url"]
    for check in check_names(SUITES):
        page, _, anchor = url.replace("{{ $labels.check }}", check).partition("#")
        text = (ROOT / page).read_text()
        headings = {line.lstrip("# ").lower() for line in text.splitlines() if line.startswith("#")}
        assert not anchor or anchor in headings
