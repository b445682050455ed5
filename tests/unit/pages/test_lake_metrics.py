"""`acktrail exporter`: a scrape, a file, and a lake that is missing, damaged or has changed."""

from __future__ import annotations

import math
import os
import urllib.request
from datetime import datetime
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner
from prometheus_client.parser import text_string_to_metric_families

from acktrail.cli import main
from acktrail.contracts.gold import DELIVERY_LEDGER, LOSS_INCIDENTS
from acktrail.contracts.runs import RUN_FAILURES, RUNS, SOURCE_STATES
from acktrail.lake import Lake
from acktrail.pages.lake_metrics import ANSWERS, LakeMetrics, serve, write_textfile
from acktrail.policy.model import Policy
from tests.integration.servers import free_port
from tests.unit.expectations.gold_rows import NOW, ago, row, write
from tests.unit.pages.lake_with_answers import lake_with_answers, ledger, lost

Labels = dict[str, str]


def read(text: str) -> dict[tuple[str, frozenset[tuple[str, str]]], float]:
    return {
        (s.name, frozenset(s.labels.items())): s.value
        for family in text_string_to_metric_families(text)
        for s in family.samples
    }


def value(metrics: LakeMetrics, name: str, **labels: str) -> float | None:
    for family in metrics.collect():
        for sample in family.samples:
            if sample.name == name and labels.items() <= sample.labels.items():
                return float(sample.value)
    return None


def metrics_of(lake: Lake, clock: Any = lambda: NOW) -> LakeMetrics:
    return LakeMetrics(lake, Policy(), 50, clock)


@pytest.fixture
def lake(tmp_path: Path) -> Lake:
    return lake_with_answers(tmp_path / "lake")


def test_a_scrape_says_what_the_lake_knows(lake):
    metrics = metrics_of(lake)
    assert value(metrics, "acktrail_lake_up") == 1
    assert value(metrics, "acktrail_lost_messages", topic="payments") == 5
    assert value(metrics, "acktrail_ledger_messages", state="lost_after_ack") == 5
    assert value(metrics, "acktrail_ledger_residual") == 2
    assert value(metrics, "acktrail_retry_budget_seconds_left", client_id="checkout") == 30
    assert value(metrics, "acktrail_retry_budget_seconds_left", client_id="fine") is None
    assert value(metrics, "acktrail_retry_budgets_critical", client_id="checkout") == 1
    assert value(metrics, "acktrail_check_state", check="no_loss_after_ack") == 0
    assert value(metrics, "acktrail_check_state", check="ledger_balances") == 2
    assert value(metrics, "acktrail_evidence_age_seconds", source="app") == 30
    job = "acktrail_job_last_success_timestamp_seconds"
    assert value(metrics, job, acktrail_job="check") == ago(60).timestamp()
    assert value(metrics, job, acktrail_job="loss_events") == ago(120).timestamp()
    assert math.isnan(value(metrics, "acktrail_answer_up", answer="sources"))
    assert metrics.up


def test_logs_without_lines_are_fresh_while_an_agent_reads_them(lake):
    metrics = metrics_of(lake)
    state = row(SOURCE_STATES, source="app", kind="log_files", state="up", at=ago(7))
    write(lake, SOURCE_STATES, state)
    assert value(metrics, "acktrail_evidence_age_seconds", source="app") == 7
    assert value(metrics, "acktrail_sources", source="app", state="up") == 1


def test_a_failed_run_shows_until_the_job_succeeds(lake):
    metrics = metrics_of(lake)
    write(lake, RUN_FAILURES, row(RUN_FAILURES, job="loss_events", failed_at=ago(60)))
    assert value(metrics, "acktrail_job_failed", acktrail_job="loss_events") == 1
    write(lake, RUNS, row(RUNS, job="loss_events", run=2, ended_at=ago(30)))
    assert value(metrics, "acktrail_job_failed", acktrail_job="loss_events") == 0


def test_the_lake_is_read_only_where_it_changed(lake):
    metrics = metrics_of(lake)
    list(metrics.collect())
    assert metrics.facts.reads == len(ANSWERS)
    list(metrics.collect())
    assert metrics.facts.reads == len(ANSWERS)
    write(lake, LOSS_INCIDENTS, lost(3, "orders"))
    assert value(metrics, "acktrail_lost_messages", topic="orders") == 3
    assert metrics.facts.reads == len(ANSWERS) + 2, "losses and jobs only"


def test_seconds_count_down_without_a_read(lake):
    now = [NOW]
    metrics = metrics_of(lake, lambda: now[0])
    seconds = "acktrail_retry_budget_seconds_left"
    assert value(metrics, seconds, client_id="checkout") == 30
    reads = metrics.facts.reads
    now[0] = ago(-10)
    assert value(metrics, seconds, client_id="checkout") == 20
    now[0] = ago(-3000)
    assert value(metrics, seconds, client_id="checkout") is None
    assert metrics.facts.reads == reads


def names(metrics: LakeMetrics) -> set[str]:
    return {sample.name for family in metrics.collect() for sample in family.samples}


OWN = {
    "acktrail_lake_up", "acktrail_answer_up", "acktrail_exporter_timestamp_seconds",
    "acktrail_exporter_read_seconds", "acktrail_build_info",
}  # fmt: skip


def test_a_lake_that_is_not_there_is_a_state_and_no_number(tmp_path):
    metrics = metrics_of(Lake(tmp_path / "nothing"))
    assert value(metrics, "acktrail_lake_up") == 0
    assert names(metrics) == OWN
    assert value(metrics, "acktrail_answer_up", answer="losses") == 0
    assert not (tmp_path / "nothing").exists()


def test_a_lake_that_goes_away_and_comes_back(lake, tmp_path):
    metrics = metrics_of(lake)
    assert value(metrics, "acktrail_lake_up") == 1
    os.rename(tmp_path / "lake", tmp_path / "elsewhere")
    assert names(metrics) == OWN
    os.rename(tmp_path / "elsewhere", tmp_path / "lake")
    assert value(metrics, "acktrail_lost_messages", topic="payments") == 5


def test_one_damaged_table_takes_its_answers_only(lake):
    log = Path(lake.path(LOSS_INCIDENTS)) / "_delta_log" / f"{0:020d}.json"
    log.write_text(log.read_text()[:200])
    metrics = metrics_of(Lake(lake.uri))
    assert value(metrics, "acktrail_lake_up") == 0
    assert value(metrics, "acktrail_answer_up", answer="losses") == 0
    assert value(metrics, "acktrail_lost_messages") is None
    assert value(metrics, "acktrail_ledger_residual") == 2


def test_losses_that_no_incident_lists_are_not_zero(tmp_path):
    lake = Lake(tmp_path)
    write(lake, DELIVERY_LEDGER, ledger(delivered=4, lost_after_ack=5))
    metrics = metrics_of(lake)
    assert value(metrics, "acktrail_answer_up", answer="losses") == 0
    assert value(metrics, "acktrail_lost_messages") is None


def test_an_audited_cluster_without_losses_is_zero(tmp_path):
    lake = Lake(tmp_path)
    write(lake, DELIVERY_LEDGER, ledger(delivered=9))
    assert value(metrics_of(lake), "acktrail_lost_messages", cluster="east", topic="") == 0


def test_http_serves_metrics_and_the_port_is_freed(lake):
    port = free_port()
    stop = serve(metrics_of(lake), "127.0.0.1", port)
    with urllib.request.urlopen(f"http://127.0.0.1:{port}/metrics", timeout=10) as answer:
        found = read(answer.read().decode())
    assert found["acktrail_lake_up", frozenset()] == 1
    stop()
    serve(metrics_of(lake), "127.0.0.1", port)()


def test_a_file_is_replaced_whole_and_readable_by_others(lake, tmp_path):
    file = tmp_path / "out.prom"
    file.write_text("old")
    before = file.stat().st_ino
    old = os.umask(0o077)
    try:
        write_textfile(metrics_of(lake), file)
    finally:
        os.umask(old)
    assert read(file.read_text())["acktrail_lake_up", frozenset()] == 1
    assert file.stat().st_ino != before, "renamed over the old one"
    assert file.stat().st_mode & 0o777 == 0o644
    assert [p.name for p in tmp_path.glob("out*")] == ["out.prom"]


def run(*words: str) -> Any:
    return CliRunner().invoke(main, ["exporter", *words])


def test_the_command_writes_a_file_at_a_moment(lake, tmp_path):
    file = tmp_path / "a.prom"
    done = run("--lake", lake.uri, "--textfile", str(file), "--as-of", NOW.isoformat())
    assert done.exit_code == 0, done.output
    found = read(file.read_text())
    assert found["acktrail_exporter_timestamp_seconds", frozenset()] == NOW.timestamp()
    assert datetime.fromtimestamp(NOW.timestamp(), NOW.tzinfo) == NOW


def test_a_file_about_a_missing_lake_says_so_and_the_command_fails(tmp_path):
    file = tmp_path / "a.prom"
    done = run("--lake", str(tmp_path / "no"), "--textfile", str(file))
    assert done.exit_code == 75
    assert read(file.read_text())["acktrail_lake_up", frozenset()] == 0


WRONG = [
    (["--listen", "nowhere"], "--listen is HOST:PORT"),
    (["--listen", "127.0.0.1:99999"], "--listen is HOST:PORT"),
    (["--textfile", "metrics.txt"], "node_exporter reads files named *.prom only"),
    (["--textfile", "/no/such/place/a.prom"], "No such file or directory"),
]


@pytest.mark.parametrize(("words", "said"), WRONG)
def test_wrong_options_say_what_to_write(lake, words, said):
    done = run("--lake", lake.uri, *words)
    assert done.exit_code == 2
    assert said in done.output


def test_a_port_that_is_taken_is_named(lake):
    port = free_port()
    stop = serve(metrics_of(lake), "127.0.0.1", port)
    done = run("--lake", lake.uri, "--listen", f"127.0.0.1:{port}")
    stop()
    assert done.exit_code == 2
    assert f"127.0.0.1:{port}: Address already in use" in done.output
