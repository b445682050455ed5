"""An alert is resolved only when all who found it have looked again."""

from __future__ import annotations

from dataclasses import replace
from datetime import UTC, datetime, timedelta

from hypothesis import given, settings
from hypothesis import strategies as st

from acktrail.alerts.alert import OPEN, Alert, newest
from acktrail.alerts.finding import WAITING, Finding
from acktrail.alerts.lifecycle import alerts_due
from acktrail.contracts.vocabulary import Grade, Outcome

NOW = datetime(2026, 1, 31, 7, tzinfo=UTC)
SCOPES = ("runs.fits_its_contract", "retry_budgets.fits_its_contract", "alerts.other", WAITING)


def finding(found_by: str) -> Finding:
    return Finding(
        outcome=Outcome.FAIL, cluster="", topic="", group="", state="broken", cause="x",
        starts_at=NOW, ends_at=None, because="It is broken.",
        check=found_by.partition(".")[2] or "other",
        grade=Grade.FAIL, owner="me", found_by=(found_by,),
    )  # fmt: skip


class Alerts:
    """The outbox's rows, and a command that evaluates some scopes."""

    def __init__(self) -> None:
        self.rows: list[dict] = []

    def evaluate(self, scopes: frozenset[str], broken: frozenset[str]) -> list[Alert]:
        now = NOW + timedelta(seconds=len(self.rows))
        found = [finding(scope) for scope in sorted(scopes & broken)]
        changes = alerts_due(found, newest(self.rows), scopes, now, SCOPES[:3])
        self.rows += [change.row() for change in changes]
        return changes

    @property
    def open(self) -> list[Alert]:
        return [alert for alert in newest(self.rows).values() if alert.status == OPEN]


some = st.frozensets(st.sampled_from(SCOPES))


@settings(deadline=None)
@given(st.frozensets(st.sampled_from(SCOPES), min_size=1), st.lists(some, max_size=8))
def test_whoever_looks_at_a_part_resolves_nothing_that_others_found(broken, looks):
    alerts = Alerts()
    seen = False
    for scopes in looks:
        alerts.evaluate(scopes, broken)
        seen = seen or bool(scopes & broken)
        assert len(alerts.open) == seen, "one alert, open from the first look that could see it on"
    assert all(row["number"] == 1 for row in alerts.rows), "nothing was resolved and opened again"
    for scope in SCOPES:  # cured: each looks once more, in any order
        alerts.evaluate(frozenset({scope}), frozenset())
    alerts.evaluate(frozenset(SCOPES), frozenset())
    assert alerts.open == []


def test_a_watch_leaves_the_alert_of_a_table_that_it_does_not_check():
    alerts = Alerts()
    runs, budgets = map(frozenset, ([SCOPES[0]], [SCOPES[1]]))
    (opened,) = alerts.evaluate(runs | budgets, runs)
    assert alerts.evaluate(budgets, runs) == []
    assert [a.fingerprint for a in alerts.open] == [opened.fingerprint]
    (resolved,) = alerts.evaluate(runs, frozenset())
    assert (resolved.fingerprint, resolved.number) == (opened.fingerprint, 2)


def test_an_alert_of_an_earlier_version_waits_for_every_check_of_its_name():
    alerts = Alerts()
    (opened,) = alerts.evaluate(frozenset(SCOPES[:1]), frozenset(SCOPES[:1]))
    alerts.rows = [replace(opened, found_by=(), fault="", symptoms=()).row()]
    assert alerts.evaluate(frozenset(SCOPES[1:]), frozenset()) == []
    (resolved,) = alerts.evaluate(frozenset(SCOPES[:3]), frozenset())
    assert resolved.status == "resolved"


def test_an_alert_stays_while_one_of_its_checks_exists_and_has_not_run():
    alerts = Alerts()
    gone, kept = "alerts.gone", SCOPES[0]
    both = frozenset({gone, kept})
    (opened,) = alerts.evaluate(both, both)
    assert opened.found_by == (gone, kept)
    alerts.rows = [replace(opened, check="gone").row()]
    assert alerts.evaluate(frozenset(SCOPES[1:2]), frozenset()) == []
    (resolved,) = alerts.evaluate(frozenset({kept}), frozenset())
    assert (resolved.status, resolved.annotations.get("resolution")) == ("resolved", None)


def test_an_alert_of_a_check_that_left_its_table_does_not_stay_for_ever():
    alerts = Alerts()
    former = frozenset({"delivery_ledger.fits_its_contract"})
    alerts.evaluate(former, former)
    (resolved,) = alerts.evaluate(frozenset(SCOPES[:3]), frozenset())
    assert resolved.status == "resolved"
    assert "no longer exists" in resolved.summary


def test_what_is_over_and_what_goes_on_from_one_start_are_one_alert():
    over = replace(finding(SCOPES[0]), ends_at=NOW, keys=("a",))
    goes_on = replace(finding(SCOPES[1]), keys=("b",))
    for found in ([over, goes_on], [goes_on, over]):
        (alert,) = alerts_due(found, {}, SCOPES[:2], NOW, SCOPES[:3])
        assert (len(alert.symptoms), alert.annotations["count"]) == (2, "1")
        assert alert.found_by == tuple(sorted(SCOPES[:2]))
        (changed,) = alerts_due(
            [replace(f, because="It is still broken.") for f in found],
            {alert.fingerprint: alert}, SCOPES[:2], NOW, SCOPES[:3],
        )  # fmt: skip
        assert (len(changed.symptoms), changed.annotations["count"]) == (2, "1")
