"""Receipts of a recording: rows carry when they were received, answers what came before them."""

from __future__ import annotations

import json
from datetime import UTC, datetime

import pytest

from acktrail.audit.wire import Report, encode_reports
from acktrail.contracts.bronze import AUDIT_REPORTS, CLUSTER_STATES, GROUP_OFFSETS
from acktrail.contracts.vocabulary import Tier
from acktrail.lake import Lake
from ingest.replay import Recording, replay, replay_all

BEGAN = 1_794_814_400_000


def at(second: float) -> int:
    return BEGAN + int(second * 1000)


NONE = -1.0
"""Nothing had been received so far: 1970."""


def second(instant: datetime) -> float:
    if instant.timestamp() == 0:
        return NONE
    return round(instant.astimezone(UTC).timestamp() - BEGAN / 1000, 3)


def lines(*rows) -> str:
    return "".join(json.dumps(row) + "\n" for row in rows)


def ack(seconds, seq):
    return {
        "timestamp": at(seconds), "name": "producer_send_success", "topic": "t", "partition": 0,
        "offset": seq, "key": None, "value": f"7.{seq}",
    }  # fmt: skip


def state(seconds, topic_id, **more):
    return {"at_ms": at(seconds), "topic": "t", "topic_id": topic_id, "partition": 0,
            "latest_offset": 1, **more}  # fmt: skip


def scan(began, ended, **more):
    found = {"partition": 0, "offset": 0, "leader_epoch": 0, "value": "7.0", "headers": []}
    place = {"partition": 0, "first_offset": 0, "end_offset": 1}
    return lines(
        {"scan": "began", "at_ms": at(began), "topic": "t"},
        found,
        {"scan": "ended", "at_ms": at(ended), "topic": "t", "partitions": [place], **more},
    )


OUTPUT = [ack(1, 0), ack(2, 1), ack(9, 2)]
"""The clock of this producer is seconds ahead; it was read at 0.5 s and 1.5 s, then no more."""


@pytest.fixture
def evidence(tmp_path):
    run = tmp_path / "run"
    output = [json.dumps(each) + "\n" for each in OUTPUT]
    live = Report("r", Tier.SCANNED, "t", 0, at(1.8), partition=0, first_offset=0, last_offset=0,
                  began_ms=at(1.6), ended_ms=at(1.7))  # fmt: skip
    name = "verifiable/producer-p.jsonl"
    files = {
        "scenario.json": json.dumps({
            "name": "n", "began_at_ms": BEGAN, "ended_at_ms": at(5), "consumers": [],
            "producers": [{"name": "p", "acks": "all", "retries": 1, "host": "h"}],
        }),
        name: "".join(output),
        "receipts.jsonl": lines(
            {"at_ms": at(0.5), "sizes": {name: len(output[0]) + 7}},
            {"at_ms": at(1.5), "sizes": {name: len(output[0]) + len(output[1])}},
        ),
        "cluster/states.jsonl": lines(
            state(1, "old", asked_ms=at(0.4)), state(2, "old", asked_ms=at(1)),
            state(3, "new", asked_ms=at(1.6)),
        ),
        "cluster/groups.jsonl": lines(
            {**state(8, "new"), "group": "g"}, {**state(1, "old"), "group": "g"},
        ),
        "scan/t.jsonl": scan(2.5, 4),
        "scan/t.early.jsonl": scan(1, 1.2, topic_id="named"),
        "live/log_scan.jsonl": lines(
            {"received_ms": at(1.9), **json.loads(encode_reports([live]))}
        ),
    }  # fmt: skip
    for path, text in files.items():
        (run / path).parent.mkdir(parents=True, exist_ok=True)
        (run / path).write_text(text)
    return run


def rows(lake, tier, *names):
    found = lake.read(AUDIT_REPORTS).to_pylist()
    wanted = [row for row in found if row["tier"] == tier]
    return sorted(tuple(second(row[n]) if n.endswith("_at") else row[n] for n in names)
                  for row in wanted)  # fmt: skip


def test_rows_carry_when_they_were_received(evidence, tmp_path):
    lake = Lake(tmp_path / "lake")
    replay(evidence, lake, "c")
    # The torn second line waits for the next look; the third was seen by none: after the end.
    assert rows(lake, "acked", "read_at", "records") == [(0.5, 1), (1.5, 1), (5.001, 1)]
    assert rows(lake, "scanned", "read_at", "began_at", "after_at", "topic_id") == [
        (1.2, 1.0, 0.5, "named"),
        (1.9, 1.6, 1.5, None),
        (4.0, 2.5, 1.5, "old"),
    ]
    assert rows(lake, "in_log", "read_at", "after_at") == [(1.2, 0.5), (4.0, 1.5)]
    states = lake.read(CLUSTER_STATES).sort_by("at").to_pylist()
    assert [second(row["after_at"]) for row in states] == [NONE, 0.5, 1.5]
    # Older recordings do not say when a question began: as early as it can have been.
    groups = lake.read(GROUP_OFFSETS).sort_by("at").to_pylist()
    assert [second(row["after_at"]) for row in groups] == [NONE, 1.5]


def test_without_receipts_the_times_in_the_lines_are_those_of_the_recorder(evidence, tmp_path):
    (evidence / "receipts.jsonl").unlink()
    lake = Lake(tmp_path / "lake")
    replay(evidence, lake, "c")
    assert rows(lake, "acked", "read_at") == [(2.0,), (3.0,), (10.0,)]
    assert rows(lake, "scanned", "began_at", "after_at") == [(1.0, NONE), (1.6, NONE), (2.5, 2.0)]


def test_a_tier_can_be_left_out_and_many_recordings_are_one_commit(evidence, tmp_path):
    lake = Lake(tmp_path / "lake")
    recordings = [
        Recording(evidence, "all"),
        Recording(evidence, "silent", frozenset({Tier.HEARTBEAT})),
    ]
    replay_all(recordings, lake)
    assert lake.version(AUDIT_REPORTS) == 1
    beating = [(row["cluster"], row["tier"]) for row in lake.read(AUDIT_REPORTS).to_pylist()]
    assert ("all", "heartbeat") in beating
    assert ("silent", "heartbeat") not in beating
    assert beating.count(("all", "acked")) == beating.count(("silent", "acked"))


def test_a_run_that_comes_after_a_later_one_is_moved_as_a_whole(evidence, tmp_path):
    lake = Lake(tmp_path / "lake")
    replay(evidence, lake, "c")
    described = json.loads((evidence / "scenario.json").read_text())
    (evidence / "scenario.json").write_text(json.dumps({**described, "name": "another"}))
    replay(evidence, lake, "c")
    by = 5.001 - 0.5 + 0.001
    times = [read_at for (read_at,) in rows(lake, "acked", "read_at")]
    assert times[3:] == pytest.approx([each + by for each in times[:3]])
    after = [each for _, each in rows(lake, "scanned", "read_at", "after_at")]
    assert after[3:] == pytest.approx([each + by for each in after[:3]])
