"""Whole suites on small lakes: Great Expectations runs, findings come back, nothing is guessed."""

from __future__ import annotations

import json
from dataclasses import replace
from datetime import timedelta
from pathlib import Path

import pytest
from gold_rows import NOW, ago, ask, budget, row, write

from acktrail.alerts.finding import NOT_EVALUATED
from acktrail.answers.pending import PendingEvidence
from acktrail.contracts.bronze import AUDIT_REPORTS, METRIC_SAMPLES
from acktrail.contracts.gold import (
    DELIVERY_LEDGER,
    LOSS_INCIDENTS,
    PRODUCER_RELIABILITY,
    RETRY_BUDGETS,
)
from acktrail.contracts.runs import CHECK_RESULTS, COVERAGE, SOURCE_STATES
from acktrail.contracts.silver import CLIENT_CONFIGS, PRODUCER_EVENTS
from acktrail.contracts.vocabulary import Grade, Outcome
from acktrail.errors import ConfigError
from acktrail.lake import Lake
from acktrail.terminal.check_lines import text_lines
from expectations.domain.losses import ExpectNoLossAfterAck
from expectations.paging import keep_results
from expectations.stale import Waiting

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
    results = ask(lake, None, RUNBOOKS)
    assert {r.outcome for r in results} == {Outcome.UNDECIDED}
    assert not any(r.failed for r in results)
    told = {f.cause for r in results for f in r.findings}
    assert told == {"no_logs", "no_audits", "no_metrics", "no_evidence"}


def test_evidence_one_does_without_is_not_told(lake, tmp_path):
    chosen = policy(tmp_path, "not_collected: [audits, metrics]")
    results = ask(lake, chosen, RUNBOOKS)
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
    kinds = ("audit", "logs", "metrics")
    write(lake, COVERAGE, *(row(COVERAGE, kind=k, subject=k, **seen) for k in kinds))


def test_a_lake_with_everything_wrong_says_what_and_whom_and_where_to_read(lake, tmp_path):
    fill(lake)
    chosen = policy(
        tmp_path,
        """
        owners:
          - {topics: payments, owner: team-payments}
        """,
    )
    results = by_check(ask(lake, chosen, RUNBOOKS, docs=tmp_path / "docs"))
    failed = {name for name, r in results.items() if r.outcome is Outcome.FAIL}
    assert failed == {
        "retry_budget_left",
        "no_loss_after_ack",
        "ledger_balances",
        "error_rate_within_bounds",
    }
    loss = results["no_loss_after_ack"].findings[0]
    assert loss.owner == "team-payments"
    assert loss.runbook == f"{RUNBOOKS}/no_loss_after_ack.md"
    assert "12 messages of checkout on topic payments for group billing" in loss.because
    assert results["no_duplicate_from_idempotent_producer"].outcome is Outcome.UNDECIDED
    keep_results(lake, list(results.values()), NOW)
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
    results = by_check(ask(lake, None, RUNBOOKS))
    assert results["no_duplicate_from_idempotent_producer"].outcome is outcome


def test_a_gap_in_the_evidence_makes_what_passed_undecided_and_what_failed_stay(lake):
    fill(lake)
    gap = {"source": "audit", "hour": "2026-01-31T11", "last_at": ago(60), "kind": "audit"}
    write(lake, COVERAGE, row(COVERAGE, missing="reports 3 to 5 of reporter ab", **gap))
    results = by_check(ask(lake, None, RUNBOOKS))
    assert results["no_loss_after_ack"].outcome is Outcome.FAIL
    assert results["no_unaccounted_message"].outcome is Outcome.UNDECIDED
    assert results["evidence_complete_and_fresh"].outcome is Outcome.FAIL
    assert results["retry_budget_left"].outcome is Outcome.FAIL


def test_a_table_that_breaks_its_contract_fails(lake):
    write(lake, LOSS_INCIDENTS, incident(), incident())
    write(lake, DELIVERY_LEDGER, ledger())
    broken = [r for r in ask(lake, None, RUNBOOKS) if r.outcome is Outcome.FAIL]
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
    results = by_check(ask(lake, chosen, RUNBOOKS))
    assert results["retry_budget_left"].outcome is Outcome.PASS
    assert results["retry_budget_left"].findings[0].muted_by == "rolling restart"
    assert results["error_rate_within_bounds"].outcome is Outcome.PASS
    assert results["no_loss_after_ack"].outcome is Outcome.FAIL
    assert results["ledger_balances"].outcome is Outcome.FAIL


def test_a_check_that_raises_is_reported_and_silences_no_other(lake, monkeypatch):
    fill(lake)

    def broken(_self, _frame):
        raise KeyError("cluster")

    monkeypatch.setattr(ExpectNoLossAfterAck, "findings", broken)
    results = by_check(ask(lake, None, RUNBOOKS))
    raised = results["no_loss_after_ack"]
    assert raised.outcome is Outcome.UNDECIDED
    assert raised.failed, "the command fails for it"
    (finding,) = raised.findings
    assert (finding.state, finding.cause) == (NOT_EVALUATED, "no_loss_after_ack")
    assert finding.grade is Grade.FAIL, "somebody is paged: losses would go unseen"
    assert "no_loss_after_ack raised KeyError: 'cluster'" in finding.because
    assert results["retry_budget_left"].outcome is Outcome.FAIL
    assert results["ledger_balances"].outcome is Outcome.FAIL


def test_nothing_mutes_a_check_that_raises(lake, tmp_path, monkeypatch):
    write(lake, DELIVERY_LEDGER, ledger())
    monkeypatch.setattr(ExpectNoLossAfterAck, "findings", lambda _self, _frame: 1 / 0)
    start, end = NOW - timedelta(hours=1), NOW + timedelta(hours=1)
    window = f"[{{name: n, from: '{start.isoformat()}', to: '{end.isoformat()}'}}]"
    chosen = policy(tmp_path, f"not_collected: [audits]\nmaintenance: {window}")
    result = by_check(ask(lake, chosen, RUNBOOKS))["no_loss_after_ack"]
    assert result.outcome is Outcome.UNDECIDED
    assert result.open_findings


@pytest.mark.parametrize("table", [LOSS_INCIDENTS, COVERAGE], ids=lambda t: t.name)
def test_a_table_that_cannot_be_read_is_reported_and_silences_no_other(lake, table):
    fill(lake)
    for entry in (Path(lake.path(table)) / "_delta_log").glob("*.json"):
        entry.write_text("not what was written")
    results = ask(lake, None, RUNBOOKS)
    broken = [r for r in results if r.table == table.name]
    assert {r.outcome for r in broken} == {Outcome.UNDECIDED}
    assert all(
        r.failed and f"{table.name} could not be read" in r.findings[0].because for r in broken
    )
    assert by_check(results)["retry_budget_left"].outcome is Outcome.FAIL
    # Without coverage nobody knows of gaps, so nothing passes.
    unknown = {f.cause for f in by_check(results)["no_unaccounted_message"].findings}
    assert unknown == {table.name}


def test_evidence_that_waits_for_a_run_makes_what_would_pass_undecided(lake):
    fill(lake)
    quiet = {"source": "app", "hour": "2026-01-31T11", "last_at": ago(7200), "subject": "log"}
    write(lake, COVERAGE, row(COVERAGE, kind="logs", **quiet))
    pending = PendingEvidence("producer_events", "log_records", 1205, True, ago(3600))
    waiting = Waiting([pending, replace(pending, table="coverage")], timedelta(minutes=10), NOW)
    results = by_check(ask(lake, None, RUNBOOKS, waiting=waiting))
    assert results["no_non_retriable_error"].outcome is Outcome.UNDECIDED
    (finding,) = results["no_non_retriable_error"].findings
    assert "1,205 rows of log_records" in finding.because
    assert results["retry_budget_left"].outcome is Outcome.FAIL, "found all the same"
    assert results["no_unaccounted_message"].outcome is Outcome.PASS, "logs do not decide it"
    fresh = results["evidence_complete_and_fresh"]
    assert fresh.outcome is Outcome.UNDECIDED, "the source is not quiet: its evidence waits"


def test_logs_that_wait_do_not_stand_for_audits_that_nobody_collects(lake):
    write(lake, DELIVERY_LEDGER)
    write(lake, PRODUCER_EVENTS)
    write(lake, COVERAGE)
    pending = PendingEvidence("coverage", "log_records", 5, True, ago(60))
    waiting = Waiting([pending], timedelta(minutes=10), NOW)
    results = by_check(ask(lake, None, RUNBOOKS, waiting=waiting))
    assert results["no_loss_after_ack"].outcome is Outcome.UNDECIDED
    assert results["no_non_retriable_error"].outcome is Outcome.PASS, "they came a minute ago"


READ = {"source": "app", "kind": "log_files", "command": "agent", "at": ago(300)}
QUIET = {
    # case: how the source of logs stands -> whether checks on logs are undecided
    "no agent reports": ([], True),
    "an agent reads it": ([{**READ, "state": "up"}], False),
    "an agent read it to its end": ([{**READ, "state": "ended"}], False),
    "an agent fails to read it": ([{**READ, "state": "failing", "error": "no"}], True),
    "an agent read it two days ago": ([{**READ, "state": "up", "at": ago(200_000)}], True),
    "another source is read": ([{**READ, "state": "up", "kind": "prometheus"}], True),
}


@pytest.mark.parametrize("case", QUIET)
def test_what_was_collected_before_the_window_decides_nothing_in_it(lake, case):
    """Two days without evidence, and answers without rows: nothing passes but what was read."""
    states, blind = QUIET[case]
    for table in (RETRY_BUDGETS, PRODUCER_EVENTS, DELIVERY_LEDGER, LOSS_INCIDENTS):
        write(lake, table)
    old = {"source": "app", "hour": "2026-01-29T11", "last_at": ago(172_800), "rows": 5}
    write(lake, COVERAGE, *(row(COVERAGE, kind=k, subject=k, **old) for k in ("audit", "logs")))
    for state in states:
        write(lake, SOURCE_STATES, row(SOURCE_STATES, day="2026-01-31", **state))
    results = by_check(ask(lake, None, RUNBOOKS))
    assert results["no_loss_after_ack"].outcome is Outcome.UNDECIDED
    assert results["evidence_complete_and_fresh"].outcome is Outcome.UNDECIDED
    expected = Outcome.UNDECIDED if blind else Outcome.PASS
    assert results["retry_budget_left"].outcome is expected


def test_a_log_that_is_read_and_never_had_a_line_is_collected(lake):
    write(lake, METRIC_SAMPLES, row(METRIC_SAMPLES))
    write(lake, RETRY_BUDGETS)
    name = "retry_budget_left"
    assert by_check(ask(lake, None, RUNBOOKS))[name].outcome is Outcome.UNDECIDED
    write(lake, SOURCE_STATES, row(SOURCE_STATES, day="2026-01-31", **READ, state="up"))
    assert by_check(ask(lake, None, RUNBOOKS))[name].outcome is Outcome.PASS


def test_evidence_one_does_without_is_undecided_and_not_a_reason_to_fail(lake, tmp_path):
    results = ask(lake, policy(tmp_path, "not_collected: [audits, metrics]"), RUNBOOKS)
    audits = [r for r in results if r.table in ("loss_incidents", "delivery_ledger")]
    assert {r.outcome for r in audits} == {Outcome.UNDECIDED}
    assert not any(r.open_findings for r in audits)


def test_lines_fit_a_terminal_and_say_what_is_missing_once(lake, tmp_path):
    fill(lake)
    write(lake, LOSS_INCIDENTS, incident(incident="i2", because="so it was " * 30, ids=1))
    lines = list(text_lines(ask(lake, None, RUNBOOKS), ["A note."]))
    assert max(map(len, lines)) < 120
    assert all(
        line[:11].strip() in ("", "pass", "note", "undecided", "WARN", "FAIL") for line in lines
    )
    assert all(
        " ".join(lines).count(f"No {kind} were collected") <= 1 for kind in ("logs", "metrics")
    )
    left_out = policy(tmp_path, "not_collected: [logs, metrics, audits]")
    said = list(text_lines(ask(lake, left_out, RUNBOOKS)))
    assert not any("were collected" in line for line in said)


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
    results = by_check(ask(lake, policy(tmp_path, "suites: mine"), RUNBOOKS))
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
        ask(lake, policy(tmp_path, "suites: mine"), RUNBOOKS)


def test_results_are_plain_json(lake):
    fill(lake)
    results = ask(lake, None, RUNBOOKS)
    assert json.dumps([f.to_json() for r in results for f in r.findings])
