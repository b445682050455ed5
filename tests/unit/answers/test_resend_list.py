"""`acktrail resend-list`: what to send or read again, and what is not known of it."""

from __future__ import annotations

import csv
import io
import json
from datetime import timedelta
from typing import Any

import pytest
from click.testing import CliRunner

from acktrail.answers.resend_list import advice, resend_list, text_columns, unknown_of
from acktrail.audit.incidents import group_losses, incident_row
from acktrail.cli import main
from acktrail.contracts.gold import DELIVERY_LEDGER, LOSS_EVENTS, LOSS_INCIDENTS
from acktrail.contracts.vocabulary import State
from acktrail.lake import Lake
from tests.unit.expectations.gold_rows import NOW, row, write

KEYS = "keys: audits hold ids, not keys or values; find the messages by session and id"


def loss(**facts: Any) -> dict[str, Any]:
    usual = {
        "session": "run-1", "client_id": "pay", "host": "app-1", "topic": "payments",
        "first_seq": 10, "last_seq": 14, "count": 5, "partition": 0, "first_offset": 100,
        "last_offset": 104, "first_at": NOW, "last_at": NOW + timedelta(seconds=1),
        "state": "lost_after_ack", "cause": "acks_1_leader_change", "told": False,
    }  # fmt: skip
    return {**dict.fromkeys(LOSS_EVENTS.names), **row(LOSS_EVENTS, **{**usual, **facts})}


def lake_of(tmp_path: Any, *losses: dict[str, Any]) -> Lake:
    """A lake with these losses, put together to incidents as the jobs do it."""
    lake = Lake(tmp_path)
    write(lake, LOSS_EVENTS, *losses)
    timed = [
        {
            **one,
            "first_ms": one["first_at"] and one["first_at"].timestamp() * 1000,
            "last_ms": one["last_at"] and one["last_at"].timestamp() * 1000,
        }
        for one in losses
    ]
    for name, events in group_losses(timed):
        made = {k: v for k, v in incident_row(name, events).items() if not k.endswith("_ms")}
        times = [e["first_at"] for e in events if e["first_at"]]
        made["started_at"] = min(times, default=None)
        made["ended_at"] = max((e["last_at"] for e in events if e["last_at"]), default=None)
        write(lake, LOSS_INCIDENTS, row(LOSS_INCIDENTS, **made))
    lost = sum(one["count"] for one in losses)
    ledger = row(DELIVERY_LEDGER, topic="payments", sent=lost, lost_after_ack=lost, last_at=NOW)
    write(lake, DELIVERY_LEDGER, ledger)
    return lake


def ask(lake: Lake, *words: str) -> str:
    (incident, *_) = lake.read(LOSS_INCIDENTS).to_pylist()
    words = ("resend-list", incident["incident"], "--lake", lake.uri, *words)
    answer = CliRunner().invoke(main, words)
    assert answer.exit_code == 0, answer.output
    return answer.stdout


UNKNOWN = [
    # facts                                                        what is not known beside the keys
    ({}, []),
    ({"partition": None}, ["partition: no report names it"]),
    ({"first_offset": None, "last_offset": None}, ["offsets: no report names them"]),
    ({"last_offset": 110}, ["offsets: other records are between the first and the last"]),
    ({"first_at": None, "last_at": None}, ["times: no report has them"]),
    ({"client_id": None}, ["client: the session reported no client id"]),
    ({"state": "rejected", "first_offset": None, "last_offset": None, "told": True}, []),
    (
        {"state": "lost_in_crash"},
        ["number: the process ended without a last report, so there may be more"],
    ),
]


@pytest.mark.parametrize(("facts", "unknown"), UNKNOWN)
def test_what_is_not_known_is_listed(tmp_path, facts, unknown):
    lake = lake_of(tmp_path, loss(**facts))
    (incident,) = lake.read(LOSS_INCIDENTS).to_pylist()
    (found,) = resend_list(lake, incident)
    assert found["unknown"] == [KEYS, *unknown]


def test_what_is_unknown_of_some_is_counted():
    rows = [{"count": 5, "unknown": ["a", "b"]}, {"count": 2, "unknown": ["a"]}]
    assert unknown_of(rows) == ["a", "b (5 of 7 messages)"]


ADVICE = [
    (State.LOST_AFTER_ACK, False, "Send them again: the log does not have them."),
    (State.REJECTED, True, "ask its owner whether it has already sent them again"),
    (State.SKIPPED_BY_CONSUMER, False, "Do not send them again: they are in the log."),
    (State.EXPIRED_BEFORE_READ, False, "to group billing only"),
]


@pytest.mark.parametrize(("state", "told", "sentence"), ADVICE)
def test_what_to_do_depends_on_where_the_messages_are(state, told, sentence):
    assert sentence in advice({"state": state.value, "told": told, "group": "billing"})


def test_every_message_of_an_incident_is_listed_once(tmp_path):
    """Losses at other times, of other causes or of another topic belong to other incidents."""
    later = NOW + timedelta(hours=1)
    lake = lake_of(
        tmp_path,
        loss(),
        loss(first_seq=20, last_seq=20, count=1, first_offset=110, last_offset=110),
        loss(session="run-2", host="app-2", first_at=NOW + timedelta(seconds=1)),
        loss(first_seq=30, last_seq=31, count=2, first_at=later, last_at=later),
        loss(first_seq=40, last_seq=41, count=2, cause="truncated"),
        loss(first_seq=50, last_seq=51, count=2, first_at=None, last_at=None),
        loss(first_seq=60, last_seq=61, count=2, topic="orders"),
    )
    incidents = lake.read(LOSS_INCIDENTS).to_pylist()
    assert len(incidents) == 5
    for incident in incidents:
        assert sum(r["count"] for r in resend_list(lake, incident)) == incident["ids"]
    first = next(i for i in incidents if i["events"] == 3)
    rows = resend_list(lake, first)
    assert [(r["session"], r["first_seq"]) for r in rows] == [
        ("run-1", 10), ("run-1", 20), ("run-2", 10),
    ]  # fmt: skip
    assert "host" in text_columns(rows)
    assert "client_id" not in text_columns(rows)


def test_text_json_and_csv(tmp_path):
    lake = lake_of(tmp_path, loss(partition=None))
    text = ask(lake)
    assert "run-1" in text
    assert f"- {KEYS}" in text
    assert "- partition: no report names it" in text
    told = json.loads(ask(lake, "--format", "json"))
    assert (told["first_offset"], told["last_offset"], told["action"]) == (100, 104, "send again")
    (read,) = csv.DictReader(io.StringIO(ask(lake, "--format", "csv")))
    assert read["unknown"] == f"{KEYS}; partition: no report names it"
    assert read["keys"] == ""
    assert (read["first_seq"], read["last_seq"], read["session"]) == ("10", "14", "run-1")


def test_an_incident_that_is_not_there(tmp_path):
    lake = lake_of(tmp_path, loss())
    answer = CliRunner().invoke(main, ["resend-list", "zz", "--lake", lake.uri])
    assert answer.exit_code == 2
    assert "No incident is named zz" in answer.output
