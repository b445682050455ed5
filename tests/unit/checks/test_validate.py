"""Whole suites on small lakes: Great Expectations runs, findings come back, nothing is guessed."""

from __future__ import annotations

import json
from datetime import timedelta

import pytest
from gold_rows import NOW, ago, budget, row, write

from acktrail.contracts.bronze import AUDIT_REPORTS
from acktrail.contracts.gold import (
    DELIVERY_LEDGER,
    LOSS_INCIDENTS,
    PRODUCER_RELIABILITY,
    RETRY_BUDGETS,
)
from acktrail.contracts.runs import CHECK_RESULTS, COVERAGE
from acktrail.contracts.silver import CLIENT_CONFIGS, PRODUCER_EVENTS
from acktrail.contracts.vocabulary import Outcome
from acktrail.errors import ConfigError
from acktrail.lake import Lake
from expectations.ask import ask

RUNBOOKS = "https://runbooks.example.com"


@pytest.fixture
def lake(tmp_path):
    return Lake(tmp_path / "lake")


def policy(tmp_path, text):
    path = tmp_path / "policy.yaml"
    path.write_text(text)
    return path


def by_check(results):
    return {r.check: r for r in results if r.check != "fits_its_contract"}


def test_an_empty_lake_decides_nothing(lake):
    results = ask(lake, NOW, None, RUNBOOKS)
    assert {r.outcome for r in results} == {Outcome.UNDECIDED}
    assert not any(r.failed for r in results)
    told = {f.cause for r in results for f in r.findings}
    assert told == {"no_logs", "no_audits", "no_metrics", "no_evidence"}


def test_evidence_one_does_without_is_not_told(lake, tmp_path):
    chosen = policy(tmp_path, "not_collected: [audits, metrics]")
    results = ask(lake, NOW, chosen, RUNBOOKS)
    told = {f.cause for r in results for f in r.open_findings}
    assert told == {"no_logs", "no_evidence"}


def ledger(**facts):
    usual = {"session": "s1", "topic": "payments", "last_at": ago(60), "first_at": ago(90)}
    return row(DELIVERY_LEDGER, **{**usual, "client_id": "checkout", **facts})


def incident(**facts):
    usual = {
        "incident": "i1",
        "topic": "payments",
        "group": "billing",
        "state": "lost_after_ack",
        "cause": "unclean_election",
        "confidence": "exact",
        "started_at": ago(600),
        "ended_at": ago(500),
        "ids": 12,
        "because": "broker 2 led without having been in sync",
        "client_ids": ["checkout"],
        "evidence": ["log/1"],
    }
    return row(LOSS_INCIDENTS, **{**usual, **facts})


def fill(lake):
    write(lake, RETRY_BUDGETS, budget(), budget(partition=4, ended_at=ago(2), ended_by="recovered"))
    write(lake, PRODUCER_EVENTS, row(PRODUCER_EVENTS, hour="2026-01-31T11", retriable=True))
    write(lake, DELIVERY_LEDGER, ledger(duplicates=2), ledger(block=1, residual=1))
    write(lake, LOSS_INCIDENTS, incident())
    hour = {"client_id": "checkout", "topic": "payments", "hour": "2026-01-31T11"}
    write(lake, PRODUCER_RELIABILITY, row(PRODUCER_RELIABILITY, error_rate_per_s=0.5, **hour))
    seen = {"source": "app", "hour": "2026-01-31T11", "last_at": ago(60), "rows": 5}
    write(lake, COVERAGE, row(COVERAGE, kind="audit", **seen))


def test_a_lake_with_everything_wrong_says_what_and_whom_and_where_to_read(lake, tmp_path):
    fill(lake)
    chosen = policy(
        tmp_path,
        """
        owners:
          - {topics: payments, owner: team-payments}
        """,
    )
    results = by_check(ask(lake, NOW, chosen, RUNBOOKS, docs=tmp_path / "docs"))
    failed = {name for name, r in results.items() if r.outcome is Outcome.FAIL}
    assert failed == {
        "retries_not_about_to_run_out",
        "no_loss_after_ack",
        "books_to_balance",
        "error_rate_within_bounds",
    }
    loss = results["no_loss_after_ack"].findings[0]
    assert loss.owner == "team-payments"
    assert loss.runbook == f"{RUNBOOKS}/no_loss_after_ack.md"
    assert "12 message(s) of topic payments for group billing" in loss.because
    assert results["no_duplicate_from_idempotent_producer"].outcome is Outcome.UNDECIDED
    kept = lake.read(CHECK_RESULTS).to_pylist()
    assert {r["check"] for r in kept if r["outcome"] == "fail"} == failed
    assert {r["subject"] for r in kept if r["outcome"] == "fail"} == {"team-payments"}
    pages = list((tmp_path / "docs").rglob("*.html"))
    assert (tmp_path / "docs" / "index.html") in pages
    assert any("no loss after ack" in p.read_text().replace("_", " ") for p in pages)


PROMISES = {
    "said by the session": ("session", "true", Outcome.FAIL),
    "denied by the session": ("session", "false", Outcome.PASS),
    "printed by the client": ("client", True, Outcome.FAIL),
    "denied by the client": ("client", False, Outcome.PASS),
}


@pytest.mark.parametrize("case", PROMISES)
def test_idempotence_is_read_from_the_session_or_the_clients_log(lake, case):
    who, said, outcome = PROMISES[case]
    write(lake, DELIVERY_LEDGER, ledger(duplicates=2))
    if who == "session":
        facts = {"tier": "heartbeat", "session": "s1", "day": "2026-01-31"}
        settings = [("enable.idempotence", said)]
        write(lake, AUDIT_REPORTS, row(AUDIT_REPORTS, settings=settings, **facts))
    else:
        facts = {"role": "producer", "client_id": "checkout", "started_at": ago(900)}
        write(lake, CLIENT_CONFIGS, row(CLIENT_CONFIGS, idempotent=said, **facts))
    results = by_check(ask(lake, NOW, None, RUNBOOKS))
    assert results["no_duplicate_from_idempotent_producer"].outcome is outcome


def test_a_gap_in_the_evidence_makes_what_passed_undecided_and_what_failed_stay(lake):
    fill(lake)
    gap = {"source": "audit", "hour": "2026-01-31T11", "last_at": ago(60), "kind": "audit"}
    write(lake, COVERAGE, row(COVERAGE, missing="reports 3 to 5 of reporter ab", **gap))
    results = by_check(ask(lake, NOW, None, RUNBOOKS))
    assert results["no_loss_after_ack"].outcome is Outcome.FAIL
    assert results["no_unaccounted_message"].outcome is Outcome.UNDECIDED
    assert results["evidence_complete_and_fresh"].outcome is Outcome.FAIL
    assert results["retries_not_about_to_run_out"].outcome is Outcome.FAIL


def test_a_table_that_breaks_its_contract_fails(lake):
    write(lake, LOSS_INCIDENTS, incident(), incident())
    write(lake, DELIVERY_LEDGER, ledger())
    broken = [r for r in ask(lake, NOW, None, RUNBOOKS) if r.outcome is Outcome.FAIL]
    assert ("loss_incidents", "fits_its_contract") in {(r.table, r.check) for r in broken}


def test_maintenance_mutes_what_is_expected_and_never_a_loss(lake, tmp_path):
    fill(lake)
    start, end = NOW - timedelta(hours=1), NOW + timedelta(hours=1)
    chosen = policy(
        tmp_path,
        f"""
        maintenance:
          - {{name: rolling restart, from: "{start.isoformat()}", to: "{end.isoformat()}"}}
        """,
    )
    results = by_check(ask(lake, NOW, chosen, RUNBOOKS))
    assert results["retries_not_about_to_run_out"].outcome is Outcome.PASS
    assert results["retries_not_about_to_run_out"].findings[0].muted_by == "rolling restart"
    assert results["error_rate_within_bounds"].outcome is Outcome.PASS
    assert results["no_loss_after_ack"].outcome is Outcome.FAIL
    assert results["books_to_balance"].outcome is Outcome.FAIL


OWN = """
table: producer_reliability
checks:
  - name: checkout_has_few_errors
    expectation: ExpectColumnMaxToBeBetween
    with: {column: error_rate_per_s, max_value: %s}
    where: {client_id: "check*"}
    grade: fail
    sentence: Checkout fails.
    runbook: https://wiki.example.com/checkout
"""


@pytest.mark.parametrize(("bound", "outcome"), [(0.1, Outcome.FAIL), (0.9, Outcome.PASS)])
def test_users_add_suites_of_their_own(lake, tmp_path, bound, outcome):
    fill(lake)
    (tmp_path / "mine").mkdir()
    (tmp_path / "mine" / "checkout.yaml").write_text(OWN % bound)
    results = by_check(ask(lake, NOW, policy(tmp_path, "suites: mine"), RUNBOOKS))
    own = results["checkout_has_few_errors"]
    assert own.outcome is outcome
    assert own.runbook == "https://wiki.example.com/checkout"


WRONG_SUITES = {
    "no such table": (OWN.replace("producer_reliability", "nothing"), "no table 'nothing'"),
    "no such expectation": (OWN.replace("ColumnMax", "ColumnFoo"), "has no ExpectColumnFoo"),
    "no such column": (OWN.replace("client_id", "klient"), "has no column klient"),
    "a wrong argument": (OWN.replace("max_value", "maximum"), "does not take that"),
    "no sentence": (OWN.replace("    sentence: Checkout fails.\n", ""), "checks.0.sentence"),
    "a name of ours": (OWN.replace("checkout_has_few_errors", "no_loss_after_ack"), "Two checks"),
    "not YAML": ("a: [", "not readable YAML"),
}


@pytest.mark.parametrize("case", WRONG_SUITES)
def test_a_wrong_suite_says_what_is_wrong(lake, tmp_path, case):
    text, said = WRONG_SUITES[case]
    (tmp_path / "mine").mkdir()
    (tmp_path / "mine" / "checkout.yaml").write_text(text.replace("%s", "1"))
    with pytest.raises(ConfigError, match=said):
        ask(lake, NOW, policy(tmp_path, "suites: mine"), RUNBOOKS)


def test_results_are_plain_json(lake):
    fill(lake)
    results = ask(lake, NOW, None, RUNBOOKS)
    assert json.dumps([f.to_json() for r in results for f in r.findings])
