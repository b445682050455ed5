"""The truth: small pure readers against naive ones, and one whole run written by hand."""

from __future__ import annotations

import json
from itertools import pairwise

import pytest
from hypothesis import given
from hypothesis import strategies as st

from lab.truth import cause_of_error, establish, read_scan, seq_of, silence, steps_back

VALUES = [
    ("its own", "17", "17.204", 204),
    ("another producer's", "17", "18.204", None),
    ("a longer prefix", "17", "171.4", None),
    ("no id", "17", "17.", None),
    ("not ours at all", "17", "hello", None),
    ("a tombstone", "17", None, None),
]


@pytest.mark.parametrize(
    ("prefix", "value", "seq"), [c[1:] for c in VALUES], ids=[c[0] for c in VALUES]
)
def test_whose_message_is_it(prefix, value, seq):
    assert seq_of(prefix, value) == seq


@given(st.lists(st.tuples(st.integers(0, 2), st.integers(0, 30))))
def test_steps_back_are_counted_per_partition(placed):
    records = [
        {"partition": partition, "offset": offset, "value": f"5.{seq}"}
        for offset, (partition, seq) in enumerate(placed)
    ]
    expected = 0
    for wanted in range(3):
        ids = [seq for partition, seq in placed if partition == wanted]
        expected += sum(after < before for before, after in pairwise(ids))
    assert steps_back("5", records) == expected


SILENCES = [
    ("nothing after the fault", [10, 20], 30, None),
    ("nothing at all", [], 30, None),
    ("the gap over the fault", [10, 20, 5020, 5030], 25, 4.995),
    ("a longer gap before the fault does not count", [0, 9000, 9100, 9200], 9050, 0.1),
    ("a gap that begins with the fault", [4000], 1000, 3.0),
]


@pytest.mark.parametrize(
    ("times", "began", "seconds"), [c[1:] for c in SILENCES], ids=[c[0] for c in SILENCES]
)
def test_how_long_it_was_silent(times, began, seconds):
    assert silence(times, began) == seconds


ERRORS = [
    (
        "TimeoutException",
        "Expiring 3 record(s) for a-0:8001 ms has passed since batch creation",
        "delivery_timeout",
    ),
    ("TimeoutException", "Topic a not present in metadata after 2000 ms.", "metadata_timeout"),
    ("NotEnoughReplicasException", "Messages are rejected since …", "retries_exhausted"),
    ("_MSG_TIMED_OUT", "Local: Message timed out", "delivery_timeout"),
    ("RecordTooLargeException", "The message is 9 bytes …", "record_too_large"),
    ("TimeoutException", "Failed to allocate 16384 bytes within the …", "buffer_exhausted"),
    ("_PURGE_QUEUE", "Local: Purged in queue", "dropped_at_close"),
    ("UnknownServerException", "The server …", None),
    (None, None, None),
]


@pytest.mark.parametrize(("error", "text", "cause"), ERRORS)
def test_what_an_error_says_of_the_cause(error, text, cause):
    assert cause_of_error(error, text) == cause


def lines(path, *rows):
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text("".join(json.dumps(row) + "\n" for row in rows))


def acked(seq, offset, at):
    place = {"topic": "t", "partition": 0, "offset": offset, "key": None, "value": f"7.{seq}"}
    return {"timestamp": at, "name": "producer_send_success", **place}


def failed(seq, at):
    what = {"exception": "class org.example.NotEnoughReplicasException", "message": "no"}
    return {
        "timestamp": at,
        "name": "producer_send_error",
        "value": f"7.{seq}",
        "topic": "t",
        **what,
    }


def stored(seq, offset):
    return {"partition": 0, "offset": offset, "value": f"7.{seq}"}


@pytest.fixture
def evidence(tmp_path):
    """Ids 0 stored; 1 acked and gone; 2 failed and gone; 3 failed and stored; 4 twice; 5 untold."""
    producer = {"name": "p", "topic": "t", "prefix": "7", "kind": "java", "acks": "1"}
    consumer = {"name": "c", "topic": "t", "group": "g", "kind": "java"}
    scenario = {
        "name": "by hand",
        "began_at_ms": 0,
        "topics": [{"name": "t"}],
        "producers": [producer],
        "consumers": [consumer],
        "expect": {"p": {"cause": "acks_1_leader_change"}},
    }
    (tmp_path / "scenario.json").write_text(json.dumps(scenario))
    (tmp_path / "faults.json").write_text(json.dumps([{"at_ms": 150}]))
    printed = tmp_path / "verifiable" / "producer-p.jsonl"
    lines(
        printed,
        *(acked(0, 0, 100), acked(1, 1, 200), failed(2, 300), failed(3, 300), acked(4, 3, 2200)),
        {"timestamp": 2300, "name": "tool_data", "sent": 6},
    )
    printed.write_text("a note to people\n" + printed.read_text() + '{"cut off')
    lines(
        tmp_path / "verifiable" / "consumer-c.jsonl",
        *(
            {"timestamp": 100, "name": "record_data", **stored(seq, at)}
            for seq, at in [(0, 0), (4, 2)]
        ),
    )
    ended = {"scan": "ended", "partitions": []}
    lines(
        tmp_path / "scan" / "t.jsonl", stored(0, 0), stored(4, 2), stored(3, 1), stored(4, 3), ended
    )
    return tmp_path


def test_a_run_by_hand(evidence):
    sums = establish(evidence).sums["p"]
    assert (sums.handed_over, sums.acked, sums.failed, sums.untold) == (6, 3, 2, 1)
    assert (sums.records, sums.in_log, sums.duplicated, sums.out_of_order) == (4, 3, 1, 0)
    assert (sums.lost_after_ack, sums.lost_told, sums.lost_silent, sums.ghosts) == (1, 1, 1, 1)
    assert sums.missed == {"g": 1}
    assert sums.silence_s == 2.0
    assert sums.complete


def test_every_message_has_its_line(evidence):
    establish(evidence)
    written = (evidence / "truth" / "truth.jsonl").read_text()
    told = [json.loads(line) for line in written.splitlines()]
    assert [(m["seq"], m["told"], m["lost"], m["cause"]) for m in told] == [
        (0, "acked", False, None),
        (1, "acked", True, "acks_1_leader_change"),
        (2, "failed", True, "retries_exhausted"),
        (3, "failed", False, None),
        (4, "acked", False, None),
        (5, "nothing", True, "acks_1_leader_change"),
    ]
    assert told[4]["in_log"] == [[0, 2], [0, 3]]
    assert told[4]["received"] == {"g": 1}


def test_a_killed_producer_is_known_in_part(evidence):
    printed = evidence / "verifiable" / "producer-p.jsonl"
    printed.write_text("\n".join(printed.read_text().splitlines()[:-2]) + "\n")
    sums = establish(evidence).sums["p"]
    assert not sums.complete
    assert sums.handed_over == 5


def test_a_scan_is_read_in_the_order_of_the_log(evidence):
    assert [record["offset"] for record in read_scan(evidence / "scan" / "t.jsonl")] == [0, 1, 2, 3]


def change(evidence, **facts):
    path = evidence / "scenario.json"
    path.write_text(json.dumps({**json.loads(path.read_text()), **facts}))


def told(evidence):
    establish(evidence)
    written = (evidence / "truth" / "truth.jsonl").read_text()
    return [json.loads(line) for line in written.splitlines()]


def test_what_went_with_its_topic_is_not_lost_though_its_offset_is_used_again(evidence):
    printed = evidence / "verifiable" / "producer-p.jsonl"
    again = {**acked(6, 1, 2250), "value": "7.6"}
    printed.write_text(json.dumps(again) + "\n" + printed.read_text())
    made = {"action": "recreate_topic", "topic": "t", "from_ms": 201, "gone_ms": 210, "at_ms": 220}
    change(evidence, actions=[made])
    by_seq = {m["seq"]: m for m in told(evidence)}
    assert (by_seq[1]["taken_by"], by_seq[1]["lost"]) == ("topic_deleted", False)
    assert by_seq[1]["groups"] == {"g": "deleted"}
    assert (by_seq[6]["taken_by"], by_seq[6]["lost"], by_seq[6]["cut"]) == (None, True, True)


def test_a_topic_that_was_made_again_twice_gave_the_same_offset_to_three_messages(evidence):
    printed = evidence / "verifiable" / "producer-p.jsonl"
    again = [{**acked(6, 1, 2250), "value": "7.6"}, {**acked(7, 1, 2350), "value": "7.7"}]
    printed.write_text("".join(json.dumps(each) + "\n" for each in again) + printed.read_text())
    made = [{"action": "recreate_topic", "topic": "t", "gone_ms": ms} for ms in (210, 2300)]
    change(evidence, actions=made)
    by_seq = {m["seq"]: m for m in told(evidence)}
    assert [by_seq[seq]["taken_by"] for seq in (1, 6, 7)] == ["topic_deleted"] * 2 + [None]
    assert [by_seq[seq]["lost"] for seq in (1, 6, 7)] == [False, False, True]


def test_an_offset_that_was_given_again_was_cut_whatever_was_removed_later(evidence):
    printed = evidence / "verifiable" / "producer-p.jsonl"
    printed.write_text(json.dumps(acked(6, 1, 2250)) + "\n" + printed.read_text())
    deleted = {"action": "delete_records", "topic": "t", "partition": 0, "offset": 2}
    change(evidence, actions=[{**deleted, "at_ms": 2260}])
    by_seq = {m["seq"]: m for m in told(evidence)}
    assert (by_seq[1]["lost"], by_seq[1]["cut"], by_seq[1]["taken_by"]) == (True, True, None)
    assert (by_seq[6]["lost"], by_seq[6]["taken_by"]) == (False, "delete_records")
    assert by_seq[6]["groups"] == {"g": "skipped"}


def test_what_was_aborted_is_not_lost_and_owed_to_nobody_who_reads_what_is_committed(evidence):
    printed = evidence / "verifiable" / "producer-p.jsonl"
    ended = {"name": "transaction_ended", "outcome": "committed", "first": "7.0", "last": "7.1"}
    printed.write_text(json.dumps({**ended, "timestamp": 9}) + "\n" + printed.read_text())
    described = json.loads((evidence / "scenario.json").read_text())
    described["producers"][0]["transaction_messages"] = 2
    described["consumers"][0]["isolation"] = "read_committed"
    change(evidence, **described)
    messages = told(evidence)
    assert [m["aborted"] for m in messages] == [False, False, True, True, True, True]
    assert [m["lost"] for m in messages] == [False, True, False, False, False, False]
    states = [m["groups"]["g"] for m in messages]
    assert states == ["received", "lost", "aborted", "aborted", "received", "aborted"]


def test_causes_differ_by_partition_and_by_moment(evidence):
    place = {"partition": None, "since": None, "until": None, "also": []}
    early = {**place, "cause": "truncated", "until": "m", "also": ["unclean_election"]}
    other = {**place, "cause": "retention", "partition": 3}
    expect = {"p": {"cause": "producer_crash", "blame": [other, early]}}
    change(evidence, expect=expect, marks={"m": 250})
    messages = told(evidence)
    assert messages[1]["causes"] == ["truncated", "unclean_election"]
    assert messages[2]["causes"] == ["retries_exhausted"]
    assert messages[5]["causes"] == ["truncated", "unclean_election"]  # untold: at no time
    change(evidence, marks={"m": 150})
    assert told(evidence)[1]["causes"] == ["producer_crash"]


def test_members_of_a_group_have_received_together(evidence):
    described = json.loads((evidence / "scenario.json").read_text())
    described["consumers"].append({**described["consumers"][0], "name": "d"})
    change(evidence, **described)
    lines(
        evidence / "verifiable" / "consumer-d.jsonl",
        *(
            {"timestamp": 120, "name": "record_data", **stored(seq, at)}
            for seq, at in [(0, 0), (3, 1)]
        ),
    )
    truth = establish(evidence)
    assert truth.sums["p"].missed == {"g": 0}
    assert truth.groups["g"].states == {"received": 3, "lost": 3}
