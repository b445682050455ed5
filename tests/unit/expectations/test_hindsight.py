"""What a resolved alert says: what was lost in the end, and why a verdict is not there any more."""

from __future__ import annotations

from dataclasses import replace
from datetime import timedelta

import pytest
from gold_rows import NOW, ago, row, write

from acktrail.alerts.alert import OPEN, RESOLVED, Alert
from acktrail.contracts.gold import DELIVERY_LEDGER, VERDICT_CHANGES
from acktrail.lake import Lake
from expectations.outbox import Outbox
from tests.unit.alerts.test_lifecycle import finding

DAY = timedelta(days=1)


@pytest.fixture
def lake(tmp_path) -> Lake:
    return Lake(tmp_path)


def lost(topic="orders", seconds=600.0, **facts):
    return replace(
        finding(topic, state="lost_after_ack", cause="truncated", loss=True, count=7, **facts),
        starts_at=ago(seconds), ends_at=ago(seconds - 10), past="7 messages of app are gone",
    )  # fmt: skip


def burning(topic="orders"):
    found = finding(topic, state="retries_running_out", cause="NOT_ENOUGH_REPLICAS")
    return replace(
        found, starts_at=ago(600), because="app retries; the first may be given up in 14 s",
        what="app retries 2 batches", past="app retried 2 batches", deadline=ago(-14), at_stake=9,
    )  # fmt: skip


def resolved(lake, *findings, until=()) -> Alert:
    """The alert that *findings* open, and that is over once *until* is all that is found."""
    outbox = Outbox(lake)
    outbox.record(findings, {"a", "b"}, NOW, None, NOW - DAY)
    outbox.record(until, {"a", "b"}, NOW + timedelta(seconds=75), None, NOW - DAY)
    (alert,) = outbox.alerts().values()
    return alert


def ledger(lake, topic="orders"):
    write(lake, DELIVERY_LEDGER, row(DELIVERY_LEDGER, topic=topic, last_at=NOW))


def test_an_open_page_has_no_clock_in_it_and_a_resolved_one_tells_the_past(lake):
    ledger(lake)
    outbox = Outbox(lake)
    (opened,) = outbox.record([burning()], {"a", "b"}, NOW)
    assert opened.status == OPEN
    assert opened.summary == (
        "app retries 2 batches. 9 records can still be saved. "
        "The first may be given up at 2026-01-31T12:00:14Z."
    )
    alert = resolved(lake, burning())
    assert alert.status == RESOLVED
    assert alert.summary == (
        "Over: 2026-01-31T11:50:00Z to 2026-01-31T12:01:15Z (11 min). app retried 2 batches. "
        "No message is known to be lost so far; audits may still find losses."
    )


def test_what_nobody_audits_is_not_said_to_be_safe(lake):
    ledger(lake, "orders")
    alert = resolved(lake, burning("orders"), burning("clicks"))
    assert "Whether messages were lost is not known: clicks is not audited." in alert.summary


def test_losses_that_stand_are_counted_in_the_end(lake):
    outbox = Outbox(lake)
    outbox.record([burning(), lost()], {"a", "b"}, NOW)
    (alert,) = outbox.alerts().values()
    seen = outbox.acknowledge(alert.fingerprint[:4], "maria", "sent again", NOW)
    assert seen.status == OPEN
    outbox.record([lost()], {"a", "b"}, NOW + timedelta(seconds=5))
    (alert,) = outbox.alerts().values()
    assert alert.status == RESOLVED
    assert "Lost in the end: 7 acknowledged and gone. Acknowledged by maria" in alert.summary
    kept = alert.row()
    assert (kept["acknowledged"], kept["acknowledged_by"]) == (7, "maria")
    assert kept["acknowledged_because"] == "sent again"


WHY = {
    # verdict changes, age of the loss -> what is said
    "corrected": ([{"after_state": None, "because": "a later scan read offset 12"}], 600,
                  "The verdict was corrected: lost_after_ack became not lost (a later scan read"),
    "another cause": ([{"after_state": "rejected", "because": "x"}], 600,
                      "The verdict was corrected: lost_after_ack became rejected (x)."),
    "of another topic": ([{"topic": "other", "after_state": None, "because": "x"}], 600,
                         "Later evidence withdrew the loss"),
    "too old": ([], 86_500, "older than the policy's window"),
    "nobody says why": ([], 600, "Later evidence withdrew the loss"),
}  # fmt: skip


@pytest.mark.parametrize("case", WHY)
def test_a_loss_that_is_not_there_any_more_has_a_reason(lake, case):
    changes, seconds, said = WHY[case]
    usual = {"topic": "orders", "before_state": "lost_after_ack", "changed_at": ago(1)}
    write(lake, VERDICT_CHANGES, *(row(VERDICT_CHANGES, **{**usual, **c}) for c in changes))
    alert = resolved(lake, lost(seconds=seconds))
    assert alert.status == RESOLVED
    assert said in alert.annotations["resolution"]
    assert ("Lost in the end: 7" in alert.summary) == (case == "too old")


def test_the_runbook_is_a_link_where_the_settings_have_one(lake):
    outbox = Outbox(lake)
    at = "https://runbooks.example.com/retry_budget_left.md"
    outbox.record([replace(burning(), runbook=at, keys=("a", "b", "c", "d"))], {"a"}, NOW)
    (alert,) = outbox.alerts().values()
    assert alert.annotations["runbook_url"] == at
    assert alert.annotations["keys"] == "a\nb\nc", "three at most"
    assert alert.annotations["explain"] == "acktrail budgets --fleet"
    assert alert.labels["cluster"] == "east"
