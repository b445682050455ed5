"""The exporter on the recorded incident: every metric that rules and dashboard name is there."""

from __future__ import annotations

import json
import re
import shutil
from pathlib import Path

import pytest
import yaml

from acktrail.lake import Lake
from acktrail.pages.lake_metrics import LakeMetrics
from acktrail.policy.model import Policy
from expectations.paging import keep_results
from expectations.policy_suites import policy_and_suites
from expectations.stale import NOTHING_WAITS
from expectations.validate import Asked, validate
from tests.laws.incident import AS_OF

ROOT = Path(__file__).parents[2]
RULES = yaml.safe_load((ROOT / "deploy/prometheus/acktrail.rules.yml").read_text())
DASHBOARD = json.loads((ROOT / "deploy/grafana/acktrail.json").read_text())
QUERIES = [
    *(rule["expr"] for group in RULES["groups"] for rule in group["rules"]),
    *(t["expr"] for panel in DASHBOARD["panels"] for t in panel.get("targets", ())),
]
NAMED = {w for text in QUERIES for w in re.findall(r"\backtrail_\w+", text)} - {"acktrail_job"}
NOT_IN_A_RECORDING = {"acktrail_sources"}
"""What agents report of themselves while they run."""

Samples = dict[tuple[str, frozenset[tuple[str, str]]], float]


@pytest.fixture(scope="module")
def samples(whole_lake: Lake, tmp_path_factory: pytest.TempPathFactory) -> Samples:
    place = tmp_path_factory.mktemp("exported") / "lake"
    shutil.copytree(whole_lake.uri, place)
    lake = Lake(place)
    policy, suites = policy_and_suites(None)
    keep_results(lake, validate(suites, lake, Asked(AS_OF, policy, "", NOTHING_WAITS)), AS_OF)
    metrics = LakeMetrics(lake, Policy(), 50, lambda: AS_OF)
    return {
        (s.name, frozenset(s.labels.items())): s.value for f in metrics.collect() for s in f.samples
    }


def test_every_metric_that_rules_and_dashboard_name_is_there(samples: Samples) -> None:
    assert NAMED - {name for name, _ in samples} == NOT_IN_A_RECORDING


def test_the_page_of_metrics_lists_what_is_served_and_no_more(samples: Samples) -> None:
    page = (ROOT / "docs/metrics.md").read_text()
    listed = set(
        re.findall(r"`(acktrail_[a-z_]+)(?:\{[\w,]+\})?`", page.split("## Alert rules")[0])
    )
    served = {name for name, _ in samples} | NOT_IN_A_RECORDING
    assert listed == served


def test_losses_and_budgets_are_those_of_the_incident(samples: Samples) -> None:
    lost = {
        dict(labels)["topic"]: value
        for (name, labels), value in samples.items()
        if name == "acktrail_lost_messages"
    }
    assert lost == {"payments": 176, "refunds": 279, "": 0}
    burning = {
        dict(labels)["client_id"]
        for name, labels in samples
        if name == "acktrail_retry_budget_seconds_left"
    }
    assert burning == {"orders-api", "shipments-api"}
    failed = {
        dict(labels)["check"]
        for (name, labels), value in samples.items()
        if name == "acktrail_check_state" and value == 2
    }
    assert {"no_loss_after_ack", "retry_budget_left"} <= failed
