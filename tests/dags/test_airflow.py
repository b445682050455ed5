"""The DAGs in a real Airflow, on a lake with the recorded incident and a real Alertmanager."""

from __future__ import annotations

import json
import re
import shlex
import signal
import subprocess
from datetime import UTC, datetime, timedelta

import pytest

from acktrail.cli.demo import incident
from acktrail.contracts import TABLES
from acktrail.contracts.gold import RETRY_BUDGETS
from acktrail.contracts.silver import PRODUCER_EVENTS
from acktrail.lake import Lake
from tests.dags.airflow_session import ROOT, AirflowSession, Answer
from tests.dags.place import Place
from tests.integration.s3_server import KEY_ID, SECRET, make_bucket, s3_server

AUDIT = "acktrail_audit_5min"
DAILY = "acktrail_lake_daily"
DAGS = {AUDIT, "acktrail_audit_hourly", DAILY, "acktrail_backfill"}
TICK = "2026-11-16T07:00:00+00:00"
PARSE_S = 0.5
ALL_JOBS = pytest.mark.timeout(1800)
"""For tests in which every Spark job runs: minutes, where other work keeps the machine busy."""

NOWHERE = """
[lake]
uri = "s3://nowhere/lake"
[lake.storage_options]
aws_endpoint_url = "http://127.0.0.1:9"
aws_allow_http = "true"
aws_region = "us-east-1"
aws_access_key_id = "nobody"
aws_secret_access_key = "nothing"
max_retries = "0"
"""
SMALL = """
[spark.conf]
# One small executor: what is set for a local master by itself.
"spark.sql.shuffle.partitions" = "2"
"spark.sql.adaptive.enabled" = "false"
"spark.sql.codegen.wholeStage" = "false"
"spark.sql.codegen.factoryMode" = "NO_CODEGEN"
"spark.executor.extraJavaOptions" = "-XX:TieredStopAtLevel=1 -XX:+UseSerialGC"
"""


def _installed_steps() -> list[str]:
    """The commands of the page, from the DAG files on."""
    page = (ROOT / "docs" / "airflow.md").read_text(encoding="utf-8")
    steps = re.findall(r"^ +\$ ((?:cp|airflow) .*)$", page, re.MULTILINE)
    assert len(steps) >= 8
    return steps


def _installed(step: str, place: Place) -> str:
    """A step of the page with the paths of this test."""
    return (
        step.replace("/opt/acktrail/bin/acktrail", str(place.command))
        .replace("/etc/acktrail/acktrail.toml", str(place.config))
        .replace("airflow_dags/", f"{ROOT}/airflow_dags/")
    )


@pytest.fixture(scope="session")
def installed(airflow: AirflowSession, place: Place) -> dict[str, Answer]:
    """What each step of the page printed."""
    answers = {}
    for step in _installed_steps():
        line = _installed(step, place)
        if step.startswith("airflow "):
            answers[step] = airflow.airflow(*shlex.split(line)[1:])
            assert answers[step].code == 0, f"{step}:\n{answers[step].output}"
        else:
            subprocess.run(line, shell=True, check=True, env={"AIRFLOW_HOME": str(airflow.home)})
    return answers


def _audit(airflow: AirflowSession, place: Place) -> Answer:
    """The same five-minute run, asked as of the end of the recording."""
    return airflow.airflow("dags", "test", AUDIT, TICK, "-c", json.dumps({"as_of": place.as_of}))


def _versions(place: Place, *layers: str) -> dict[str, int | None]:
    lake = Lake(place.lake)
    return {table.name: lake.version(table) for table in TABLES if table.layer in layers}


def _outbox(place: Place) -> int | None:
    return _versions(place, "runs")["alerts"]


def _events(airflow: AirflowSession) -> dict[str, int]:
    """Asset events so far, by the table they speak of."""
    return dict(
        airflow.rows(
            "SELECT asset.uri, count(*) FROM asset_event"
            " JOIN asset ON asset.id = asset_event.asset_id GROUP BY asset.uri"
        )
    )


def test_airflow_reads_every_file_quickly_and_without_errors(airflow, installed):
    assert "No data found" in installed["airflow dags list-import-errors"].output
    bag = json.loads(airflow.airflow("bag", str(airflow.dags)).output.splitlines()[-1])
    assert bag["errors"] == {}
    assert set(bag["dags"]) == DAGS
    assert max(bag["seconds"].values()) < PARSE_S, bag["seconds"]
    for dag in bag["dags"].values():
        assert dag["max_active_runs"] == 1
        assert dag["catchup"] is False
        assert "safe to clear" in dag["on_call"]
    assert bag["dags"][AUDIT]["tasks"] == {"agent": ["run"], "run": ["check"], "check": []}


def test_the_housekeeping_of_the_page_is_done(airflow, installed):
    run = airflow.last_run(DAILY)
    assert run.state == "success"
    assert run.tasks == {
        **dict.fromkeys(("optimize", "expire", "vacuum"), "success"),
        "data_docs": "skipped",
    }


@ALL_JOBS
def test_the_audit_goes_red_with_its_findings_and_the_alert_is_there(airflow, installed, place):
    said = _audit(airflow, place)
    run = airflow.last_run(AUDIT)
    assert run.tasks == {"agent": "skipped", "run": "success", "check": "failed"}, said.output
    assert run.tries["check"] == 1, "a verdict is not tried again"
    findings = run.xcoms["check", "findings"]
    assert findings
    for finding in findings:
        assert f"{finding['check']} ({finding['table']}): {finding['sentence']}" in said.output
        assert f"Runbook: {finding['runbook']}" in said.output
    assert run.xcoms["check", "runbooks"][0].startswith("https://runbooks.example/")
    told = [alert["annotations"]["checks"] for alert in place.alertmanager.active().values()]
    assert {finding["check"] for finding in findings} <= set(", ".join(told).split(", "))
    jobs = {record["job"] for record in run.xcoms["run", "return_value"]}
    changed = {uri.rpartition("/")[2] for uri in _events(airflow)}
    assert changed
    assert changed <= jobs

    # The same run again: nothing changes, and nobody is told anything new.
    tables, outbox = _versions(place, "bronze", "silver", "gold"), _outbox(place)
    events, alerts = _events(airflow), place.alertmanager.active()
    _audit(airflow, place)
    assert airflow.last_run(AUDIT).tasks == run.tasks
    assert _versions(place, "bronze", "silver", "gold") == tables
    assert _outbox(place) == outbox
    assert _events(airflow) == events
    again = place.alertmanager.active()
    assert {key: alert["startsAt"] for key, alert in again.items()} == {
        key: alert["startsAt"] for key, alert in alerts.items()
    }


@ALL_JOBS
def test_the_hourly_audit_lists_what_was_lost(airflow, installed, place):
    asked = json.dumps({"as_of": place.as_of})
    said = airflow.airflow("dags", "test", "acktrail_audit_hourly", "-c", asked)
    run = airflow.last_run("acktrail_audit_hourly")
    assert run.tasks == {"run": "success", "losses": "success"}, said.output
    assert run.xcoms["losses", "return_value"]
    for loss in run.xcoms["losses", "return_value"]:
        assert loss["because"] in said.output


@ALL_JOBS
def test_where_airflow_runs_the_agent_its_sources_are_read_first(airflow, installed, place):
    log = next(incident().glob("logs/shipments-api*/*.log.gz"))
    source = f'[[sources]]\nkind = "log_files"\nname = "shipments"\npaths = ["{log}"]\n'
    variables = {"acktrail_agent_once": "true", "acktrail_master": "local[1]"}
    place.config.write_text(place.settings(lake="once") + source, encoding="utf-8")
    try:
        for name, value in variables.items():
            airflow.airflow("variables", "set", name, value)
        said = _audit(airflow, place)
    finally:
        for name in variables:
            airflow.airflow("variables", "delete", name)
        place.config.write_text(place.settings(), encoding="utf-8")
    run = airflow.last_run(AUDIT)
    assert run.tasks["agent"] == run.tasks["run"] == "success", said.output
    assert "--master local[1]" in said.output.replace("'", "")
    jobs = {record["job"]: record for record in run.xcoms["run", "return_value"]}
    assert jobs["producer_events"]["rows_out"] > 0, "what the agent read is what the jobs ran on"
    assert jobs["retry_budgets"]["rows_out"] > 0


@ALL_JOBS
def test_settings_of_a_store_and_of_executors_reach_the_jobs(airflow, installed, place):
    """The settings file names both; the credentials are those of the worker's environment."""
    log = next(incident().glob("logs/shipments-api*/*.log.gz"))
    source = f'[[sources]]\nkind = "log_files"\nname = "shipments"\npaths = ["{log}"]\n'
    with s3_server() as address:
        make_bucket(address, "books")
        settings = place.settings().replace(str(place.lake), "s3://books/lake")
        settings = settings.replace("local[2]", "local-cluster[1,1,1024]")
        store = f'[lake.storage_options]\nendpoint_url = "{address}"\n'
        place.config.write_text(f"{settings}{store}{SMALL}{source}", encoding="utf-8")
        airflow.airflow("variables", "set", "acktrail_agent_once", "true")
        try:
            said = _audit(airflow, place)
        finally:
            airflow.airflow("variables", "delete", "acktrail_agent_once")
            place.config.write_text(place.settings(), encoding="utf-8")
        run = airflow.last_run(AUDIT)
        assert run.tasks["agent"] == run.tasks["run"] == "success", said.output
        jobs = {record["job"]: record for record in run.xcoms["run", "return_value"]}
        keys = {"access_key_id": KEY_ID, "secret_access_key": SECRET}
        lake = Lake("s3://books/lake", {"endpoint_url": address, **keys})
        for table in (PRODUCER_EVENTS, RETRY_BUDGETS):
            assert lake.read(table).num_rows == jobs[table.name]["rows_out"] > 0
    assert SECRET not in said.output


@ALL_JOBS
def test_housekeeping_of_a_full_lake_keeps_every_row_and_writes_the_data_docs(
    airflow, installed, place
):
    lake, docs = Lake(place.lake), place.lake.with_name("data-docs")
    before = _rows_to_keep(lake, place)
    assert before
    airflow.airflow("variables", "set", "acktrail_data_docs", str(docs))
    try:
        said = airflow.airflow("dags", "test", DAILY, TICK)
    finally:
        airflow.airflow("variables", "delete", "acktrail_data_docs")
    run = airflow.last_run(DAILY)
    done = ("optimize", "expire", "vacuum", "data_docs")
    assert run.tasks == dict.fromkeys(done, "success"), said.output
    assert (docs / "index.html").is_file()
    assert _rows_to_keep(lake, place) == before


def _rows_to_keep(lake: Lake, place: Place) -> dict[str, int]:
    """Rows of the tables whose retention still covers the recording."""
    age = datetime.now(UTC) - datetime.fromisoformat(place.as_of)
    kept = [t for t in TABLES if t.layer != "runs" and lake.exists(t)]
    return {t.name: lake.read(t).num_rows for t in kept if t.retention_days > age.days + 1}


def test_a_lake_that_does_not_answer_is_tried_again_until_it_does(airflow, installed, place):
    place.config.write_text(NOWHERE, encoding="utf-8")
    try:
        airflow.send("dags", "test", DAILY, TICK)
        airflow.wait_for(lambda: airflow.last_run(DAILY).tasks["optimize"] == "up_for_retry", 90)
        place.config.write_text(place.settings(lake="empty"), encoding="utf-8")
        said = airflow.receive()
    finally:
        place.config.write_text(place.settings(), encoding="utf-8")
    run = airflow.last_run(DAILY)
    assert "Will be tried again: SourceUnavailable" in said.output
    assert run.state == "success", said.output
    assert run.tries["optimize"] == 2
    assert run.tries["vacuum"] == 1


def test_broken_settings_fail_at_once(airflow, installed, place):
    place.config.write_text(place.settings() + "[lakes]\n", encoding="utf-8")
    try:
        said = airflow.airflow("dags", "test", AUDIT)
    finally:
        place.config.write_text(place.settings(), encoding="utf-8")
    run = airflow.last_run(AUDIT)
    assert run.tasks == {"agent": "skipped", "run": "failed", "check": "upstream_failed"}
    assert run.tries["run"] == 1
    assert "lakes: there is no such setting" in said.output


def test_a_task_that_airflow_ends_leaves_no_command_behind(airflow, installed):
    said = airflow.airflow("kill", str(airflow.dags), "sh", "-c", "echo began >&2; exec sleep 60")
    ended = json.loads(said.output.splitlines()[-1])
    assert ended["code"] == -signal.SIGTERM
    assert ended["fate"] == "try again"
    assert "began" in said.output, "what the command says is in the log at once"


def test_a_missing_variable_says_where_it_was_looked_for(airflow, installed, place):
    airflow.airflow("variables", "delete", "acktrail_command")
    try:
        said = airflow.airflow("dags", "test", AUDIT)
    finally:
        airflow.airflow("variables", "set", "acktrail_command", str(place.command))
    run = airflow.last_run(AUDIT)
    assert run.tasks["run"] == "failed"
    assert run.tries["run"] == 1
    assert "the Airflow Variable `acktrail_command`   not set" in said.output
    assert "ACKTRAIL_COMMAND in the worker's environment   not set" in said.output


@ALL_JOBS
def test_a_window_made_anew_is_the_same(airflow, installed, place):
    lake = Lake(place.lake)
    before = {t.name: lake.read(t).num_rows for t in TABLES if t.layer == "gold" and lake.exists(t)}
    end = datetime.fromisoformat(place.as_of).replace(minute=0, second=0, microsecond=0)
    window = {
        "start": (end - timedelta(hours=12)).isoformat(),
        "end": (end + timedelta(hours=12)).isoformat(),
        "jobs": "loss_incidents",
    }
    said = airflow.airflow("dags", "test", "acktrail_backfill", "-c", json.dumps(window))
    run = airflow.last_run("acktrail_backfill")
    assert run.tasks == {"rebuild": "success"}, said.output
    assert {r["said"] for r in run.xcoms["rebuild", "return_value"]} == {"rebuilt"}
    after = {t.name: lake.read(t).num_rows for t in TABLES if t.layer == "gold" and lake.exists(t)}
    assert after == before
