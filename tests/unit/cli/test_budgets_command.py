"""`acktrail budgets`: what is printed, most urgent first, without a JVM."""

from __future__ import annotations

import json
import sys
from dataclasses import asdict
from datetime import UTC, datetime, timedelta

import pytest
from click.testing import CliRunner
from deltalake import write_deltalake

from acktrail.answers.budgets import look_back
from acktrail.cli import main
from acktrail.cli.run import job_options
from acktrail.contracts.arrow import rows
from acktrail.contracts.gold import RETRY_BUDGETS
from acktrail.contracts.silver import BROKER_METRICS, CLIENT_METRICS
from acktrail.errors import ConfigError
from acktrail.lake import Lake
from acktrail.retries.budget import budgets_of
from acktrail.retries.burn import Rate, Rates
from acktrail.retries.signs import RetrySettings, Sign
from acktrail.settings import load
from acktrail.terminal.fleet_lines import _both
from acktrail.window import hour_of
from tests.unit.retries.retry_lines import DEFAULTS, FIVE, MAX, NOON, line

AS_OF = "2026-01-31T12:00:49Z"


def on_broker(sign: Sign, node: int) -> Sign:
    return Sign(**{**sign.__dict__, "node": node})


def budget_rows(client: str, signs: list[Sign], known: list[RetrySettings]) -> list[dict]:
    return [
        {
            **asdict(budget),
            "evidence": list(budget.evidence),
            "cluster": "c",
            "host": "app1",
            "client_id": client,
            "opened_hour": hour_of(budget.opened_at),
        }
        for budget in budgets_of(signs, known)
    ]


@pytest.fixture
def lake(tmp_path) -> Lake:
    made = Lake(tmp_path / "lake")
    burning = [on_broker(line(n, MAX - 1 - n, n + 1), 2) for n in range(49)]
    found = [
        *budget_rows("pay-1", burning, [DEFAULTS]),
        *budget_rows("pay-2", burning, [DEFAULTS]),
        *budget_rows("batch", [line(48, 1, 1)], [FIVE]),
        *budget_rows("web", [line(40, MAX - 1, 1, partition=7)], []),
        *budget_rows("old", [line(-600, MAX - 1, 1)], [DEFAULTS]),
    ]
    write_deltalake(made.path(RETRY_BUDGETS), rows(RETRY_BUDGETS, found))
    at = NOON + timedelta(seconds=30)
    base = {"cluster": "c", "source": "prom", "at": at, "hour": hour_of(at)}
    base["elapsed_ms"] = 120_000
    ours = {"client_id": "pay-1", "host": "app1"}
    retried = {**base, **ours, "series": "s", "metric": "record-retry-total", "increase": 300.0}
    failed = {**base, **ours, "series": "e", "metric": "record-error-total"}
    refused = {**base, "series": "f", "broker": 2, "metric": "failed-produce-requests-total"}
    under = {**base, "series": "u", "broker": 2, "metric": "under-min-isr-partitions", "value": 3.0}
    write_deltalake(
        made.path(CLIENT_METRICS),
        rows(CLIENT_METRICS, [retried, failed, {**retried, "host": "app9"}]),
    )
    write_deltalake(
        made.path(BROKER_METRICS), rows(BROKER_METRICS, [{**refused, "increase": 600.0}, under])
    )
    return made


def said(lake: Lake, *words: str) -> str:
    result = CliRunner().invoke(main, ["budgets", "--lake", lake.uri, "--as-of", AS_OF, *words])
    assert result.exit_code == 0, result.output
    return result.output


def test_the_most_urgent_is_on_top_and_what_is_over_is_not_shown(lake: Lake) -> None:
    found = [json.loads(text) for text in said(lake, "--batches", "--format", "json").splitlines()]
    assert [(r["state"], r["client_id"], r["ends_in_s"]) for r in found] == [
        ("critical", "batch", 0),
        ("critical", "pay-1", 70),
        ("critical", "pay-2", 70),
        ("unknown", "web", None),
    ]


def test_all_shows_what_is_over_too(lake: Lake) -> None:
    states = [json.loads(t)["state"] for t in said(lake, "--all", "--format", "json").splitlines()]
    assert states.count("ended_unknown") == 1


def test_text_says_what_is_not_known(lake: Lake) -> None:
    text = said(lake, "--batches")
    assert "delivery.timeout.ms is not known" in text
    assert text.splitlines()[1].startswith("critical  0")


def test_one_line_per_producer_topic_and_error(lake: Lake) -> None:
    lines = [" ".join(line.split()) for line in said(lake).splitlines()]
    assert lines[:7] == [
        "state ends_in_s client_id host topic error batches records_at_stake",
        "critical 0 batch app1 orders NOT_ENOUGH_REPLICAS 1",
        "critical 70 pay-1 app1 orders NOT_ENOUGH_REPLICAS 1",
        "critical 70 pay-2 app1 orders NOT_ENOUGH_REPLICAS 1",
        "unknown web app1 orders NOT_ENOUGH_REPLICAS 1",
        "",
        "What to do:",
    ]
    (advice,) = lines[7:]
    assert advice.startswith("- NOT_ENOUGH_REPLICAS: Bring the missing replicas back")
    rows = [json.loads(text) for text in said(lake, "--format", "json").splitlines()]
    assert all("Do not restart" in row["what_to_do"] for row in rows)


def test_the_fleet_in_one_sentence(lake: Lake) -> None:
    text = said(lake, "--fleet")
    assert (
        "2 producers retry on broker 2, NOT_ENOUGH_REPLICAS, the first may give up in 71 s, "
        "3 partitions under min ISR" in text
    )
    lines = [" ".join(line.split()) for line in text.splitlines()]
    retries = "retries 2.50/s over the 2 min measured"
    assert retries in lines
    assert "failed produce requests 5.00/s over the 2 min measured" in lines
    # A growth that is not known is no zero.
    unknown = "errors ?/s over 5 min, ?/s over 1 h"
    assert f"pay-1@app1 may give up in 71 s; {retries}; {unknown}" in lines
    assert "pay-2@app1 may give up in 71 s; not measured" in lines


MEASURED = {
    "1.00/s over 5 min, 0.10/s over 1 h": Rates(Rate(1.0, 290), Rate(0.1, 3590)),
    "1.00/s over 5 min (60 s of it measured), 0.10/s over 1 h (20 min of it measured)": Rates(
        Rate(1.0, 60), Rate(0.1, 1200)
    ),
    "?/s over 5 min, 0.10/s over 1 h (20 min of it measured)": Rates(None, Rate(0.1, 1200)),
    "1.00/s over the 77 s measured": Rates(Rate(1.0, 77), Rate(1.0, 77)),
}


@pytest.mark.parametrize("text", MEASURED)
def test_a_rate_says_how_much_of_its_window_was_measured(text: str) -> None:
    assert _both(MEASURED[text]) == text


def test_the_fleet_for_pipes_has_every_producer(lake: Lake) -> None:
    found = [json.loads(text) for text in said(lake, "--fleet", "--format", "json").splitlines()]
    (front,) = [f for f in found if f["broker"] == 2]
    assert front["producers"] == ["pay-1@app1", "pay-2@app1"]
    assert (front["retries_5m_per_s"], front["retries_5m_measured_s"]) == (2.5, 120.0)
    assert (front["brokers_measured"], front["errors_5m_per_s"]) == (["2"], None)
    each = [(p["client_id"], p["host"], p["retries_1h_per_s"]) for p in front["producer_rates"]]
    assert each == [("pay-1", "app1", 2.5), ("pay-2", "app1", None)]


def test_no_spark_is_imported(lake: Lake) -> None:
    before = {name for name in sys.modules if name.startswith("pyspark")}
    said(lake)
    assert {name for name in sys.modules if name.startswith("pyspark")} == before


def test_the_inventory_reaches_the_jobs(tmp_path) -> None:
    file = tmp_path / "acktrail.toml"
    file.write_text('[inventory."batch-*"]\nretries = 3\n"delivery.timeout.ms" = 60000\n')
    options = job_options(load(file, environment={}))
    assert options.inventory == {"batch-*": {"retries": "3", "delivery.timeout.ms": "60000"}}


WRONG_INVENTORY = [
    ('"delivery.timeot.ms" = 5', "has no such setting. Did you mean delivery.timeout.ms"),
    ("colour = 5", "has no such setting. It can have: "),
    ('retries = "many"', "= 'many': write a whole number"),
]


@pytest.mark.parametrize(("line", "told"), WRONG_INVENTORY)
def test_an_inventory_that_no_job_reads_is_refused(tmp_path, line, told) -> None:
    file = tmp_path / "acktrail.toml"
    file.write_text(f'[inventory."batch-*"]\n{line}\n')
    with pytest.raises(ConfigError, match=told):
        job_options(load(file, environment={}))


@pytest.mark.parametrize("hours", ["nan", "-1", "0", "1e12"])
def test_a_span_that_is_none_is_refused(hours) -> None:
    done = CliRunner().invoke(main, ["budgets", "--lake", "nowhere", "--hours", hours])
    assert done.exit_code == 2
    assert "above 0" in done.output


def test_the_beginning_of_time_is_early_enough() -> None:
    first = datetime(1, 1, 1, tzinfo=UTC)
    assert look_back(first, 24) == first
    assert look_back(NOON, 24) == NOON - timedelta(hours=24)
