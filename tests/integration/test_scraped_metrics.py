"""What rules and dashboard ask for exists: in real scrapes of brokers, of a producer and of ours.

A real Prometheus scrapes them, evaluates the rules, and answers every query of the dashboard.
"""

from __future__ import annotations

import json
import re
import urllib.parse
import urllib.request
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest
import yaml
from prometheus_client.parser import text_string_to_metric_families

from acktrail.contracts.runs import SOURCE_STATES
from acktrail.metrics.names import _known
from acktrail.pages.lake_metrics import LakeMetrics, serve
from acktrail.policy.model import Policy
from lab import exporter
from lab.steps import wait_until
from tests.integration.servers import PrometheusServer, free_port
from tests.unit.expectations.gold_rows import NOW, row, write
from tests.unit.pages.lake_with_answers import lake_with_answers

ROOT = Path(__file__).parents[2]
FILES = sorted((ROOT / "deploy/prometheus").glob("*.rules.yml"))
DASHBOARD = json.loads((ROOT / "deploy/grafana/acktrail.json").read_text())
RECORDED = {
    rule["record"]: rule["expr"]
    for file in FILES
    for group in yaml.safe_load(file.read_text())["groups"]
    for rule in group["rules"]
    if "record" in rule
}
MEANT = {
    # the recorded series, and the metrics it is made of
    "acktrail:kafka_producer_record_retries:rate5m": ("record-retry-total", "record-retry-rate"),
    "acktrail:kafka_producer_record_errors:rate5m": ("record-error-total", "record-error-rate"),
    "acktrail:kafka_failed_produce_requests:rate5m": (
        "failed-produce-requests-total",
        "failed-produce-requests-rate",
    ),
    "acktrail:kafka_failed_fetch_requests:rate5m": (
        "failed-fetch-requests-total",
        "failed-fetch-requests-rate",
    ),
}
SELECTOR = re.compile(
    r'(?:rate|avg_over_time)\((?:(?P<plain>\w+)|\{__name__=~"(?P<regex>[^"]+)"(?P<rest>[^}]*)\})\['
)


def _matcher(found: re.Match[str]) -> Callable[[str, str], bool]:
    """Whether a selector takes a series, by its name and its label `name`."""
    if found["plain"]:
        return lambda metric, _: metric == found["plain"]
    label = re.search(r'name="(\w+)"', found["rest"])
    wanted = label.group(1) if label else ""
    return lambda metric, name: bool(re.fullmatch(found["regex"], metric)) and name == wanted


def _camel(spelling: str) -> str:
    for part in ("BrokerTopicMetrics", "FailedProduceRequests", "FailedFetchRequests", "PerSec"):
        spelling = re.sub(part.lower(), part, spelling)
    return spelling


@pytest.mark.parametrize("record", RECORDED)
def test_a_recording_rule_knows_every_spelling_and_no_other_metric(record):
    chosen = [_matcher(found) for found in SELECTOR.finditer(RECORDED[record])]
    wanted = other = 0
    for (spelt, label), meaning in _known().items():
        of_all_topics = meaning.scope in ("client", "broker")
        named = _camel(label.replace("persec", "PerSec").replace("failed", "Failed"))
        named = named.replace("produce", "Produce").replace("fetch", "Fetch")
        named = named.replace("requests", "Requests")
        for metric in (spelt, _camel(spelt)):
            selected = any(select(metric, named) for select in chosen)
            meant = meaning.name in MEANT[record] and of_all_topics
            assert selected == meant, (metric, label)
            wanted, other = wanted + meant, other + (not meant)
    assert wanted >= 24
    assert other > 100


BEANS = """\
includeObjectNames: ["kafka.server:type=BrokerTopicMetrics,name=Failed*,*",
  "kafka.producer:type=producer-metrics,*"]
"""
PRODUCER_RULES = """\
rules:
  - pattern: 'kafka.producer<type=producer-metrics, client-id=(.+)><>(record-.+-total):'
    name: {prefix}_$2
    labels: {{{label}: "$1"}}
    type: {type}
  - pattern: 'kafka.producer<type=producer-metrics, client-id=(.+)><>(record-.+):'
    name: {prefix}_$2
    labels: {{{label}: "$1"}}
"""
PREFIXES = (
    # of the default export, of rules that do not say the type twice, of the kafka-connect rules
    ("kafka_producer_producer_metrics", "client_id"),
    ("kafka_producer_metrics", "client_id"),
    ("kafka_producer", "clientId"),
)
BROKER_RULES = (
    exporter.BROKER_RULES,
    # attributes in the name, lower case
    "lowercaseOutputName: true\nrules:\n"
    "  - pattern: kafka.server<type=(.+), name=(.+)><>(Count|OneMinuteRate)\n"
    "    name: kafka_server_$1_$2_$3\n",
    # totals without a type, and letter case as in the beans
    "rules:\n"
    "  - pattern: kafka.server<type=(.+), name=(.+)PerSec><>Count\n"
    "    name: kafka_server_$1_$2_total\n",
    'rules: [{pattern: ".*"}]\n',
)


@contextmanager
def other_rules(settings: Path, rules: str) -> Iterator[None]:
    """The exporter of a running JVM with other rules: it reads the file again when it changes."""
    before = settings.read_text()
    settings.write_text(BEANS + rules)
    try:
        yield
    finally:
        settings.write_text(before)


def scraped(port: int) -> set[tuple[str, str]]:
    """Name of each series that an exporter gives, with its label `name`."""
    text = exporter.scrape(port, within=60)
    assert text is not None
    return {
        (sample.name, sample.labels.get("name", ""))
        for family in text_string_to_metric_families(text)
        for sample in family.samples
    }


def test_every_spelling_is_one_that_an_exporter_gives(nodes, java):
    """But for KIP-714's, which no exporter here gives."""
    broker = nodes.brokers[1]
    (client,) = (nodes.home / "clients").glob("shop-*/exporter.yml")
    seen: set[tuple[str, str]] = set()
    for rules in BROKER_RULES:
        with other_rules(broker.home / "exporter.yml", rules):
            seen |= scraped(broker.exporter_port)
    for prefix, label in PREFIXES:
        for kind in ("COUNTER", "UNTYPED"):
            rules = PRODUCER_RULES.format(prefix=prefix, label=label, type=kind)
            with other_rules(client, rules):
                seen |= scraped(java.exporter_port)
    unseen = [
        found[0]
        for expr in RECORDED.values()
        for found in SELECTOR.finditer(expr)
        if not any(_matcher(found)(*series) for series in seen)
    ]
    assert [text for text in unseen if "org_apache_kafka_producer" not in text] == []
    assert len(unseen) == 6


QUERIES = [
    (panel["title"], target["expr"])
    for panel in DASHBOARD["panels"]
    for target in panel.get("targets", ())
]
ALERTS = [
    (rule["alert"], rule["expr"])
    for file in FILES
    for group in yaml.safe_load(file.read_text())["groups"]
    for rule in group["rules"]
    if "alert" in rule
]


@pytest.fixture(scope="module")
def prometheus(nodes, java, tmp_path_factory):
    """A Prometheus that scrapes brokers, a producer and our exporter, and evaluates the rules."""
    place = tmp_path_factory.mktemp("prometheus")
    port = free_port()
    lake = lake_with_answers(place / "lake")
    write(lake, SOURCE_STATES, row(SOURCE_STATES, source="app", state="up", at=NOW))
    stop = serve(LakeMetrics(lake, Policy(), 50, lambda: NOW), "127.0.0.1", port)
    jmx = [java.exporter_port, *(b.exporter_port for b in nodes.brokers.values())]
    config = {
        "global": {"scrape_interval": "1s", "evaluation_interval": "1s"},
        "rule_files": [str(file) for file in FILES],
        "scrape_configs": [
            {"job_name": job, "static_configs": [{"targets": [f"127.0.0.1:{p}" for p in ports]}]}
            for job, ports in (("acktrail", [port]), ("kafka", jmx))
        ],
    }
    server = PrometheusServer(place, free_port(), config=yaml.safe_dump(config))
    server.start()
    try:
        yield server
    finally:
        server.stop()
        stop()


def ask(server: PrometheusServer, expr: str) -> list[Any]:
    query = urllib.parse.urlencode({"query": expr.replace("$cluster", ".*")})
    with urllib.request.urlopen(f"{server.url}/api/v1/query?{query}", timeout=30) as answer:
        found = json.load(answer)
    assert found["status"] == "success", expr
    return list(found["data"]["result"])


def test_every_query_of_the_dashboard_is_answered(prometheus):
    unanswered = dict.fromkeys(QUERIES)

    def all_answered() -> bool:
        for title, expr in list(unanswered):
            if ask(prometheus, expr):
                del unanswered[title, expr]
        return not unanswered

    assert wait_until(all_answered, 60, pause=1), list(unanswered)


def test_every_metric_of_an_alert_is_there(prometheus):
    words = {w for _, expr in ALERTS for w in re.findall(r"\b(?:acktrail[\w:]+)", expr)}
    metrics = {w for w in words if w != "acktrail_job"}
    assert len(metrics) > 12
    for metric in metrics:
        assert wait_until(lambda metric=metric: bool(ask(prometheus, metric)), 30, pause=1), metric


def test_the_rules_are_evaluated_without_an_error(prometheus):
    def rules() -> list[dict[str, Any]]:
        with urllib.request.urlopen(f"{prometheus.url}/api/v1/rules", timeout=30) as answer:
            groups = json.load(answer)["data"]["groups"]
        return [rule for group in groups for rule in group["rules"]]

    assert wait_until(lambda: all(r["health"] == "ok" for r in rules()), 30, pause=1)
    assert len(rules()) == len(ALERTS) + len(RECORDED)
    firing = {r["name"] for r in rules() if r.get("state") == "firing"}
    assert {"AcktrailAckedMessagesLost", "AcktrailCheckFailed"} <= firing


def test_panels_are_those_of_a_dashboard_that_grafana_can_import():
    panels = DASHBOARD["panels"]
    assert len({p["id"] for p in panels}) == len(panels)
    taken: set[tuple[int, int]] = set()
    for panel in panels:
        place = panel["gridPos"]
        cells = {
            (x, y)
            for x in range(place["x"], place["x"] + place["w"])
            for y in range(place["y"], place["y"] + place["h"])
        }
        assert not cells & taken, panel["title"]
        assert place["x"] + place["w"] <= 24
        taken |= cells
        for target in panel.get("targets", ()):
            assert target["datasource"]["uid"] == "${datasource}"
    assert {v["name"] for v in DASHBOARD["templating"]["list"]} == {"datasource", "cluster"}
