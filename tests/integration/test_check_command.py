"""`acktrail check` as a process, with a real Alertmanager: delivered first, then the exit code."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

from acktrail.contracts.gold import DELIVERY_LEDGER, LOSS_EVENTS, LOSS_INCIDENTS, VERDICT_CHANGES
from acktrail.contracts.runs import CHECK_RESULTS
from acktrail.lake import Lake
from expectations.outbox import Outbox
from tests.integration.servers import AlertmanagerServer, free_port
from tests.unit.expectations.gold_rows import ago, row, write

ROOT = Path(__file__).parents[2]
AT = "2026-01-31T12:00Z"
SESSIONS = 5_000
LOST = {"topic": "payments", "group": "billing", "state": "lost_after_ack"}
LOST |= {"cause": "unclean_election", "confidence": "exact"}


@pytest.fixture(scope="module")
def alertmanager(tmp_path_factory):
    server = AlertmanagerServer(tmp_path_factory.mktemp("alertmanager"))
    server.start()
    yield server
    server.stop()


def acktrail(*words: str, **settings: str) -> subprocess.CompletedProcess[str]:
    """The command, with the alert *settings* in its environment."""
    named = {f"ACKTRAIL_ALERTS__{key.upper()}": value for key, value in settings.items()}
    return subprocess.run(
        [sys.executable, "-m", "acktrail", *words],
        env={**os.environ, "PYTHONPATH": str(ROOT), **named},
        capture_output=True,
        text=True,
        check=False,
        timeout=300,
    )


def unclean_election(lake: Lake) -> None:
    """5,000 sessions lost messages at once: as many loss events, one incident."""
    names = [f"session-{n}" for n in range(SESSIONS)]
    ledger = {"topic": "payments", "group": "billing", "last_at": ago(60), "first_at": ago(600)}
    write(lake, DELIVERY_LEDGER, *(row(DELIVERY_LEDGER, session=s, **ledger) for s in names))
    when = {"first_at": ago(600), "last_at": ago(500)}
    write(lake, LOSS_EVENTS, *(row(LOSS_EVENTS, session=s, **LOST, **when) for s in names))
    incident = {"started_at": ago(600), "ended_at": ago(500), "sessions": SESSIONS}
    about = {"incident": "i1", "ids": 12_345, "because": "broker 2 led out of sync"}
    write(lake, LOSS_INCIDENTS, row(LOSS_INCIDENTS, **LOST, **incident, **about))
    write(lake, VERDICT_CHANGES)


def test_one_election_over_5000_sessions_is_one_alert_and_its_correction_resolves_it(
    alertmanager, tmp_path
):
    lake = Lake(tmp_path / "lake")
    unclean_election(lake)
    words = ("check", "--lake", lake.uri, "--as-of", AT, "--format", "json")
    told = acktrail(*words, alertmanager_urls=alertmanager.url)
    assert told.returncode == 1, told.stderr
    results = {r["check"]: r for r in map(json.loads, told.stdout.splitlines())}
    assert results["no_loss_after_ack"]["outcome"] == "fail"
    assert "12345 messages" in results["no_loss_after_ack"]["findings"][0]["because"]
    (alert,) = alertmanager.active(severity="page")
    assert alert["labels"]["fault"] == "brokers"
    assert alert["annotations"]["cause"] == "unclean_election"
    assert alert["annotations"]["count"] == "12345"
    # What cannot be seen is told as well: once for each kind of evidence that is missing.
    blind = sorted(a["labels"]["fault"] for a in alertmanager.active(severity="ticket"))
    assert blind == ["undecided:no_evidence", "undecided:no_logs", "undecided:no_metrics"]
    # A question about the day before opens and resolves nothing.
    past = acktrail(*words[:4], "2026-01-30T12:00Z", alertmanager_urls=alertmanager.url)
    assert "alerts are unchanged" in past.stderr
    assert alertmanager.active(severity="page") == [alert]
    # Later evidence: they were delivered after all. The incident is withdrawn, the alert resolved.
    write(lake, LOSS_INCIDENTS, mode="overwrite")
    cured = acktrail(*words, alertmanager_urls=alertmanager.url)
    assert cured.returncode == 0, cured.stderr
    assert alertmanager.active(severity="page") == []
    (resolved,) = [a for a in Outbox(lake).alerts().values() if a.severity == "page"]
    assert "Later evidence withdrew the loss" in resolved.summary
    assert lake.read(CHECK_RESULTS).num_rows > 0


def test_an_alert_nobody_took_ends_with_75_and_the_next_run_delivers_it(alertmanager, tmp_path):
    lake = Lake(tmp_path / "lake")
    incident = {"started_at": ago(600), "ended_at": ago(500), "incident": "i2", "ids": 3}
    write(lake, LOSS_INCIDENTS, row(LOSS_INCIDENTS, **{**LOST, "topic": "refunds"}, **incident))
    words = ("check", "--lake", lake.uri, "--as-of", AT)
    nowhere = f"http://127.0.0.1:{free_port()}"
    down = acktrail(*words, alertmanager_urls=nowhere, give_up_s="1")
    assert down.returncode == 75, down.stderr
    assert "stay in the outbox" in down.stderr
    listed = acktrail("alerts", "list", "--lake", lake.uri, "--format", "json")
    waiting = [json.loads(line) for line in listed.stdout.splitlines()]
    assert {a["delivered"] for a in waiting} == {""}
    sent = acktrail("alerts", "send", "--lake", lake.uri, alertmanager_urls=alertmanager.url)
    assert sent.returncode == 0, sent.stderr
    (page,) = alertmanager.active(severity="page")
    assert page["annotations"]["topics"] == "refunds"
    # Acknowledged by a person, it is over though the loss is still in the window.
    ack = ("alerts", "ack", page["labels"]["fingerprint"][:6], "--lake", lake.uri)
    said = acktrail(*ack, "--by", "maria", "--because", "refunds were sent again")
    assert said.returncode == 0, said.stderr
    acktrail(*words, alertmanager_urls=alertmanager.url)
    assert alertmanager.active(severity="page") == []
    again = acktrail(*ack, "--by", "maria", "--because", "again")
    assert (again.returncode, "No open alert is called" in again.stderr) == (2, True)


def test_the_way_to_each_receiver_can_be_tried(alertmanager):
    tried = acktrail("alerts", "test", alertmanager_urls=alertmanager.url)
    assert tried.returncode == 0, tried.stderr
    assert "alertmanager: took a test alert" in tried.stdout
    assert alertmanager.active(owner="test") == []
    assert acktrail("alerts", "test").returncode == 2
