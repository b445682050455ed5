"""losses, ledger and explain: what a person reads, from a lake without a JVM."""

from __future__ import annotations

import json
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pyarrow as pa
import pytest
from click.testing import CliRunner
from deltalake import write_deltalake

from acktrail.cli import main
from acktrail.contracts import Table
from acktrail.contracts.arrow import rows
from acktrail.contracts.bronze import CLUSTER_STATES
from acktrail.contracts.gold import DELIVERY_LEDGER, LOSS_EVENTS, LOSS_INCIDENTS
from acktrail.contracts.silver import BROKER_EVENTS, PRODUCER_EVENTS
from acktrail.contracts.vocabulary import State
from acktrail.lake import Lake

AT = datetime(2026, 1, 31, 7, 0, tzinfo=UTC)
LOSS = {
    "cluster": "c", "topic": "payments", "group": "", "state": "lost_after_ack",
    "cause": "acks_1_leader_change", "confidence": "same_client", "told": False,
}  # fmt: skip


def _write(lake: Lake, table: Table, records: list[dict]) -> None:
    """Spark writes these tables; a test may stand in for it in a lake of its own."""
    data: pa.Table = rows(table, records)
    write_deltalake(lake.path(table), data, partition_by=list(table.partition) or None)


@pytest.fixture
def lake(tmp_path: Path) -> Lake:
    lake = Lake(tmp_path)
    later = AT + timedelta(seconds=3)
    _write(lake, LOSS_INCIDENTS, [
        {**LOSS, "incident": "abcd1234", "started_at": AT, "ended_at": later, "ids": 204,
         "events": 1, "sessions": 1, "partitions": [0], "client_ids": ["pay"],
         "because": "204 messages of pay to payments were lost: why.", "evidence": ["k"]},
        {**LOSS, "incident": "abff0000", "started_at": AT - timedelta(days=1), "topic": "other",
         "ended_at": AT - timedelta(days=1), "ids": 1, "events": 1, "sessions": 1,
         "partitions": [], "client_ids": [], "because": "1 message.", "evidence": []},
    ])  # fmt: skip
    _write(lake, LOSS_EVENTS, [
        {**LOSS, "session": "s", "client_id": "pay", "first_seq": 600, "last_seq": 803,
         "count": 204, "partition": 0, "first_offset": 600, "last_offset": 803, "first_at": AT,
         "last_at": later, "because": "why", "reason": "scanned_past", "bucket": "x00.0",
         "evidence": ["broker_events:e2", "cluster_states:/payments/0/1769842802000"]},
    ])  # fmt: skip
    event = {"cluster": "c", "source": "l", "record_key": "r", "topic": "payments", "partition": 0}
    retry = {**event, "kind": "retry", "client_id": "pay", "error": "NOT_LEADER", "hour": "h"}
    _write(lake, PRODUCER_EVENTS, [
        {**retry, "event_key": f"e{n}", "at": AT + timedelta(milliseconds=500 + n),
         "attempts_left": 4 - n}
        for n in range(3)
    ] + [
        {**retry, "event_key": "x", "client_id": "stranger", "at": AT, "attempts_left": 1}
    ])  # fmt: skip
    _write(lake, BROKER_EVENTS, [
        {**event, "kind": "truncation", "event_key": "e2", "at": AT + timedelta(seconds=2),
         "broker": 1, "offset": 600, "high_watermark": 600, "hour": "h"},
    ])  # fmt: skip
    state = {
        "cluster": "c", "source": "k", "topic": "payments", "topic_id": "t", "partition": 0,
        "earliest_offset": 0, "replicas": [1, 2], "read_at": AT, "day": "2026-01-31",
    }  # fmt: skip
    lake.append(CLUSTER_STATES, rows(CLUSTER_STATES, [
        {**state, "at": AT, "leader": 1, "isr": [1, 2], "latest_offset": 700, "leader_epoch": 0},
        {**state, "at": AT + timedelta(seconds=2), "leader": 2, "isr": [2], "latest_offset": 600,
         "leader_epoch": 1},
    ]))  # fmt: skip
    zero = {s.value: 0 for s in State}
    account = {
        "cluster": "c", "session": "s", "topic": "payments", "client_id": "pay", "sent": 4000,
        "acked": 4000, **zero, "delivered": 3796, "lost_after_ack": 204, "residual": 0,
        "duplicates": 0, "redelivered": 0, "out_of_order": 4, "ghosts": 0, "forwarded": 0,
        "findings": [], "open": True, "bucket": "x00.0", "first_at": AT, "last_at": later,
    }  # fmt: skip
    _write(lake, DELIVERY_LEDGER, [
        {**account, "group": "", "block": 0}, {**account, "group": "", "block": 1},
        {**account, "group": "billing", "block": 0},
    ])  # fmt: skip
    return lake


def ask(lake: Lake, *words: str) -> str:
    result = CliRunner().invoke(main, [*words, "--lake", lake.uri])
    assert result.exit_code == 0, result.output
    return result.stdout


def test_losses_open_at_incidents_newest_first(lake):
    found = [json.loads(line) for line in ask(lake, "losses", "--format", "json").splitlines()]
    assert [r["incident"] for r in found] == ["abcd1234", "abff0000"]
    recent = ask(lake, "losses", "--since", "2026-01-31", "--format", "csv").splitlines()
    assert len(recent) == 2
    assert "204 messages of pay" in ask(lake, "losses", "--topic", "payments")


def test_losses_by_range(lake):
    (row,) = map(json.loads, ask(lake, "losses", "--ranges", "--format", "json").splitlines())
    assert (row["first_seq"], row["last_seq"], row["count"]) == (600, 803, 204)


def test_ledger_sums_over_blocks(lake):
    log, group = map(json.loads, ask(lake, "ledger", "--format", "json").splitlines())
    assert (log["sent"], log["lost"], log["group"]) == (8000, 408, "")
    assert (group["sent"], group["delivered"], group["group"]) == (4000, 3796, "billing")
    assert len(ask(lake, "ledger", "--blocks").splitlines()) == 4


def test_explain_tells_it_in_order_and_marks_the_proof(lake):
    lines = ask(lake, "explain", "abcd").splitlines()
    told = [line[2:].split(None, 2)[1:] for line in lines[lines.index("") + 1 :]]
    assert told == [
        ["pay", "sends ids 600 to 803, acked at offsets 600 to 803 of partition 0: lost; "
         "the application got no error"],
        ["pay", "partition 0: retries: NOT_LEADER, 4 attempts left … 2 attempts left  "
         "(3 times until 07:00:00.502Z)"],
        ["broker", "1         partition 0: cuts its log to offset 600 (high watermark 600)"],
        ["cluster", "partition 0: broker 2 leads (epoch 1); in sync: [2]; the log ends at 600, "
         "it ended at 700"],
    ]  # fmt: skip
    assert [line[0] for line in lines[lines.index("") + 1 :]] == [" ", " ", "*", "*"]


@pytest.mark.parametrize("name", ["ab", "nothing"])
def test_explain_wants_one_incident(lake, name):
    result = CliRunner().invoke(main, ["explain", name, "--lake", lake.uri])
    assert result.exit_code == 2
    assert "abcd1234" in result.output
