"""The checks of a watch: early to warn, and nothing is resolved by what was not read yet."""

from __future__ import annotations

from dataclasses import asdict
from datetime import timedelta

import pytest
from deltalake import write_deltalake

from acktrail.contracts.arrow import rows
from acktrail.contracts.gold import RETRY_BUDGETS
from acktrail.contracts.runs import SOURCE_STATES
from acktrail.lake import Lake
from acktrail.operate.watch_steps import CheckStep, hasty
from acktrail.retries.budget import budgets_of
from acktrail.settings.alerts import AlertSettings
from acktrail.window import hour_of
from expectations.outbox import Outbox
from tests.unit.retries.retry_lines import DEFAULTS, MAX, NOON, line


@pytest.fixture
def lake(tmp_path) -> Lake:
    """Lines until 12:00:40; the next are on their way."""
    made = Lake(tmp_path / "lake")
    lines = [line(n, MAX - 1 - n, n + 1) for n in range(41)]
    found = [
        {**asdict(b), "evidence": list(b.evidence), "cluster": "c", "host": "app1",
         "client_id": "pay", "opened_hour": hour_of(b.opened_at)}
        for b in budgets_of(lines, [DEFAULTS])
    ]  # fmt: skip
    write_deltalake(made.path(RETRY_BUDGETS), rows(RETRY_BUDGETS, found))
    return made


def test_a_slow_round_neither_warns_late_nor_resolves_early(lake: Lake, capsys) -> None:
    now = NOON + timedelta(seconds=36)
    checks = CheckStep(lake, AlertSettings(), [RETRY_BUDGETS], lambda: now)
    assert checks(NOON + timedelta(seconds=20)), "critical by now, though not when it was read"
    now = NOON + timedelta(seconds=80)
    checks(NOON + timedelta(seconds=45))
    assert "resolved" not in capsys.readouterr().out
    checks(NOON + timedelta(seconds=79))
    assert "resolved" in capsys.readouterr().out


def test_a_source_that_is_down_alerts_and_changes_nothing_for_other_checks(lake, capsys) -> None:
    down = {"cluster": "c", "source": "dead", "kind": "prometheus", "host": "", "agent": "h:1:x"}
    down |= {
        "command": "watch",
        "state": "failing",
        "error": "no answer",
        "notes": [],
        "unread": [],
    }
    at = NOON - timedelta(minutes=6)
    told = rows(SOURCE_STATES, [down | {"at": at, "day": f"{at:%Y-%m-%d}"}])
    lake.append(SOURCE_STATES, told)
    now = NOON + timedelta(seconds=36)
    checks = CheckStep(lake, AlertSettings(), [RETRY_BUDGETS, SOURCE_STATES], lambda: now)
    assert checks(NOON + timedelta(seconds=20))
    said = capsys.readouterr().out
    assert "open  page  Source dead" in said
    assert "Source dead (prometheus) is failing since" in said
    now = NOON + timedelta(seconds=80)
    checks(NOON + timedelta(seconds=45))
    assert "resolved" not in capsys.readouterr().out, "the budget was not seen to end"


def test_before_anything_was_written_nothing_is_missed(tmp_path, capsys) -> None:
    checks = CheckStep(Lake(tmp_path), AlertSettings(), [RETRY_BUDGETS], lambda: NOON)
    assert not checks(NOON)
    assert capsys.readouterr().out == ""


def test_what_was_not_read_yet_is_not_taken_for_silence(lake: Lake) -> None:
    """A round can be longer than a line is waited for: by its end all chains would be quiet."""
    now = NOON + timedelta(seconds=85)
    checks = CheckStep(lake, AlertSettings(), [RETRY_BUDGETS], lambda: now)
    assert checks(NOON + timedelta(seconds=42)), "critical by all that was read"


def test_alerts_that_nobody_takes_do_not_end_a_watch(lake: Lake, caplog) -> None:
    nowhere = AlertSettings(alertmanager_urls=("http://127.0.0.1:9",))
    now = NOON + timedelta(seconds=40)
    checks = CheckStep(lake, nowhere, [RETRY_BUDGETS], lambda: now)
    for _ in range(3):
        checks(now)
    (line,) = [r.getMessage() for r in caplog.records if getattr(r, "source", "") == "alerts"]
    assert line.startswith("Not delivered: alertmanager: http://127.0.0.1:9 did not answer: conn")
    assert [a.status for a in Outbox(lake).alerts().values()] == ["open"], "it waits in the outbox"


def test_a_round_waits_less_than_a_scheduled_check() -> None:
    patient = AlertSettings(timeout_s=10, give_up_s=30)
    assert (hasty(patient).timeout_s, hasty(patient).give_up_s) == (5, 1)
    brief = AlertSettings(timeout_s=2, give_up_s=0.5)
    assert (hasty(brief).timeout_s, hasty(brief).give_up_s) == (2, 0.5)
