"""What the version before the renaming of checks has written: its outbox, results and policy.

`tests/golden/before_rename` was made by that version: a lake whose `retry_budgets` has one critical
chain, four open alerts (three of renamed checks, one of a check of the user's own that is gone),
the results of the check run, and a policy file with the former names. Its `delivery_ledger` is
written here, because gold tables are made again by the version that reads them.
"""

from __future__ import annotations

import logging
import shutil
from datetime import timedelta
from pathlib import Path

import pytest
from click.testing import CliRunner
from gold_rows import NOW, ago, row, write

from acktrail.alerts.alert import OPEN, RESOLVED
from acktrail.cli import main
from acktrail.contracts.gold import DELIVERY_LEDGER, RETRY_BUDGETS
from acktrail.contracts.runs import CHECK_RESULTS
from acktrail.contracts.vocabulary import Grade
from acktrail.errors import ConfigError
from acktrail.lake import Lake
from acktrail.operate.watch_steps import CheckStep
from acktrail.policy import Policy, read_policy
from acktrail.policy.renamed import RENAMED, current_name, names_of
from acktrail.settings.alerts import AlertSettings
from expectations.outbox import Outbox
from expectations.policy_suites import check_names, policy_and_suites
from expectations.suites import SUITES
from expectations.validate import scopes_of

BEFORE = Path(__file__).parents[2] / "golden" / "before_rename"
GONE = "checkout_is_quick"


@pytest.fixture
def lake(tmp_path) -> Lake:
    shutil.copytree(BEFORE / "lake", tmp_path / "lake")
    return Lake(tmp_path / "lake")


def ledger(lake: Lake, **facts) -> None:
    usual = {"session": "s1", "topic": "payments", "client_id": "checkout", "first_at": ago(600)}
    write(lake, DELIVERY_LEDGER, row(DELIVERY_LEDGER, **usual, last_at=ago(60), **facts))


def check(lake: Lake, as_of=NOW, *words: str):
    asked = ["check", "--lake", lake.uri, "--as-of", as_of.isoformat(), *words]
    return CliRunner().invoke(main, asked)


def test_the_fixture_has_the_former_names(lake: Lake) -> None:
    kept = set(lake.read(CHECK_RESULTS).column("check").to_pylist())
    assert set(RENAMED) <= kept
    assert not set(RENAMED.values()) & kept


def test_an_open_alert_is_continued_by_the_renamed_check_under_its_fingerprint(lake: Lake) -> None:
    before = Outbox(lake).alerts()
    ledger(lake, block=0, sent=10, residual=2)
    ledger(lake, block=1, sent=5000, redelivered=2500, group="billing")
    check(lake)
    after = Outbox(lake).alerts()
    for fingerprint, alert in before.items():
        if alert.check == GONE:
            continue
        now = after[fingerprint]
        assert (now.status, now.number, now.check) == (OPEN, 1, alert.check)
        assert now.check in RENAMED.values()
        # Receivers know an alert by its labels, so they do not change while it is open.
        assert now.labels == alert.labels
        assert now.labels["check"] in RENAMED
        assert now.annotations["runbook_url"] == f"docs/runbooks/{now.check}.md"
    about = [(a.cluster, a.fault, a.owner) for a in after.values() if a.check in RENAMED.values()]
    assert len(about) == len(set(about)) == 3, "no alert was opened a second time"


def test_an_open_alert_is_resolved_by_the_renamed_check(lake: Lake) -> None:
    ledger(lake, block=0, sent=10)
    write(lake, RETRY_BUDGETS, mode="overwrite")
    before = {f for f, a in Outbox(lake).alerts().items() if a.check != GONE}
    # Nothing is collected in this lake, so nothing would be decided without saying so.
    opened = Outbox(lake)
    opened.record([], scopes_of(SUITES), NOW, scopes_of(SUITES))
    after = opened.alerts()
    assert {after[f].status for f in before} == {RESOLVED}
    assert not any("resolution" in after[f].annotations for f in before)


def test_an_alert_of_a_check_that_no_longer_exists_is_resolved_with_a_reason(lake: Lake) -> None:
    check(lake)
    (alert,) = [a for a in Outbox(lake).alerts().values() if a.check == GONE]
    assert (alert.status, alert.number, alert.delivered) == (RESOLVED, 2, ())
    assert f"the check {GONE} no longer exists" in alert.annotations["resolution"]
    listed = CliRunner().invoke(main, ["alerts", "list", "--lake", lake.uri, "--all"])
    assert "no longer exists" in " ".join(listed.output.split())


def test_a_watch_resolves_it_too_and_leaves_what_it_does_not_check(lake: Lake, capsys) -> None:
    now = NOW + timedelta(seconds=1)
    step = CheckStep(lake, AlertSettings(), [RETRY_BUDGETS], lambda: now)
    step(now)
    status = {a.check: a.status for a in Outbox(lake).alerts().values()}
    assert status[GONE] == RESOLVED
    assert status["retry_budget_left"] == status["ledger_balances"] == OPEN
    assert "no longer exists" in capsys.readouterr().out


def test_a_policy_file_with_former_names_holds_and_says_the_new_ones(lake: Lake) -> None:
    file = BEFORE / "policy.yaml"
    policy, _ = policy_and_suites(file)
    assert policy.grade_of("redeliveries_within_bounds", Grade.WARN) is Grade.FAIL
    ledger(lake, block=1, sent=5000, redelivered=2500, group="billing")
    at_night = NOW.replace(hour=3)
    done = check(lake, NOW, "--policy", str(file))
    assert "FAIL       redeliveries_within_bounds" in done.stdout
    for former, current in RENAMED.items():
        assert f"the check {former} is now called {current}. Use the new name." in done.stderr
    muted = {
        check: policy.muted_by(_Found(check), at)
        for check, at in (
            ("retry_budget_left", at_night),
            ("retry_rate_within_bounds", at_night),
            ("ledger_balances", NOW.replace(hour=4)),
            ("no_message_rejected", at_night),
        )
    }
    assert list(muted.values()) == ["rolling restart", "rolling restart", "recount", ""]


class _Found:
    cluster, topic, group, clients, loss = "east", "payments", "", (), False

    def __init__(self, check: str) -> None:
        self.check = check


def test_a_watch_says_the_new_names_once(lake: Lake, caplog) -> None:
    settings = AlertSettings(policy=str(BEFORE / "policy.yaml"))
    step = CheckStep(lake, settings, [RETRY_BUDGETS], lambda: NOW)
    with caplog.at_level(logging.WARNING):
        step(NOW)
        step(NOW + timedelta(seconds=5))
    assert caplog.text.count("Use the new name.") == len(RENAMED)


NOTES = {
    # checks of a maintenance window -> notes
    "the new name": (["retry_budget_left"], 0),
    "everything": (["*"], 0),
    "another check": (["retry_rate_within_bounds"], 0),
    "the former name": (["retries_not_about_to_run_out"], 1),
    "a glob on the former name": (["retries_*"], 1),
    "a glob that did not match before": (["retry_*"], 1),
    "the same, with the new name": (["retry_*", "retry_budget_left"], 0),
    "the same, with the former name": (["retry_*", "retries_not_about_to_run_out"], 1),
}


@pytest.mark.parametrize("case", NOTES)
def test_a_window_that_a_renaming_changes_is_noted(case) -> None:
    checks, notes = NOTES[case]
    window = {"name": "w", "between": "02:00-04:00", "checks": checks}
    policy = Policy.model_validate({"maintenance": [window]})
    assert len(policy.notes()) == notes
    policy.require_known(None, check_names(SUITES), {})


def test_the_new_name_wins_where_both_have_a_grade() -> None:
    both = Policy(grades={"books_to_balance": Grade.FAIL, "ledger_balances": Grade.WARN})
    assert both.grade_of("ledger_balances", Grade.FAIL) is Grade.WARN
    assert Policy().grade_of("ledger_balances", Grade.FAIL) is Grade.FAIL


def test_a_check_of_ones_own_cannot_take_a_former_name(tmp_path) -> None:
    (tmp_path / "suites").mkdir()
    (tmp_path / "suites" / "own.yaml").write_text(
        "{table: runs, checks: [{name: books_to_balance, expectation: ExpectColumnToExist, "
        "with: {column: job}, sentence: a., runbook: b}]}"
    )
    (tmp_path / "policy.yaml").write_text("suites: suites")
    with pytest.raises(ConfigError, match="former name of the check ledger_balances"):
        policy_and_suites(tmp_path / "policy.yaml")


def test_every_name_leads_to_a_check_that_exists() -> None:
    for former, current in RENAMED.items():
        assert current_name(former) == current == current_name(current)
        assert names_of(current) == (current, former)
    assert read_policy(BEFORE / "policy.yaml").maintenance
