"""What groups were owed and missed: a table of cases, and a law against a naive reader."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from lab.group_truth import GroupReading, judge_groups
from lab.removed import LogStart, TopicLog
from lab.truth import Message

MEMBER = {"group": "g", "topic": "t", "isolation": "read_committed"}


def read(at, offset):
    return {"name": "record_data", "timestamp": at, "partition": 0, "offset": offset}


def assigned(at):
    place = {"topic": "t", "partition": 0}
    return {"name": "partitions_assigned", "timestamp": at, "partitions": [place]}


def committed(at, offset):
    place = {"topic": "t", "partition": 0, "offset": offset}
    return {"name": "offsets_committed", "timestamp": at, "success": True, "offsets": [place]}


def message(offset, **facts):
    there = Message("p", "t", offset, "acked", 1, 0, offset, in_log=[(0, offset)])
    for name, value in facts.items():
        setattr(there, name, value)
    return there


def taken(offset, by):
    return message(offset, in_log=[], taken_by=by)


def deleted_below(offset, at_ms):
    return TopicLog(starts={0: [LogStart(at_ms, offset, "delete_records")]})


NOTHING = TopicLog()
READS = [assigned(0), *(read(10 + n, n) for n in range(5))]
RESET = {"action": "reset_group", "group": "g", "partition": 0, "offset": 9, "at_ms": 50}
CASES = [
    # name, events, actions, log, message, latest, state
    ("received", READS, [], NOTHING, message(3, received={"g": 1}), False, "received"),
    ("not come so far", READS, [], NOTHING, message(5), False, "not_read"),
    ("passed over by a jump", [*READS, read(40, 9)], [], NOTHING, message(6), False, "skipped"),
    ("committed ahead", [*READS, committed(40, 9)], [], NOTHING, message(8), False, "skipped"),
    ("not committed", [*READS, committed(40, 9)], [], NOTHING, message(9), False, "not_read"),
    ("moved by an admin", READS, [RESET], NOTHING, message(8), False, "skipped"),
    ("before a latest group", [assigned(0), read(9, 4)], [], NOTHING, message(3), True,
     "before_start"),
    ("passed by a latest group", [assigned(0), read(9, 4), read(10, 6)], [], NOTHING, message(5),
     True, "skipped"),
    ("aborted", [*READS, read(40, 9)], [], NOTHING, message(6, aborted=True), False, "aborted"),
    ("cut off", READS, [], NOTHING, message(6, in_log=[], lost=True), False, "lost"),
    ("removed before it was read", READS, [], deleted_below(8, 30), taken(6, "delete_records"),
     False, "expired"),
    ("removed after it was passed", [*READS, read(20, 7)], [], deleted_below(8, 30),
     taken(6, "delete_records"), False, "skipped"),
    ("removed before the group came", [assigned(40), read(41, 8)], [], deleted_below(8, 30),
     taken(6, "delete_records"), False, "before_start"),
    ("gone with its topic", READS, [], NOTHING, taken(6, "topic_deleted"), False, "deleted"),
    ("compacted", [*READS, read(40, 9)], [], NOTHING, taken(6, "compaction"), False, "compacted"),
]  # fmt: skip


@pytest.mark.parametrize(
    ("events", "actions", "log", "given", "latest", "state"),
    [c[1:] for c in CASES],
    ids=[c[0] for c in CASES],
)
def test_what_became_of_a_message_for_a_group(events, actions, log, given, latest, state):
    member = {**MEMBER, "reset": "latest" if latest else "earliest"}
    assert GroupReading([member], events, actions, log).judge(given) == state


def test_who_reads_uncommitted_records_is_owed_aborted_ones():
    reading = GroupReading(
        [{**MEMBER, "isolation": "read_uncommitted"}], [*READS, read(40, 9)], [], NOTHING
    )
    assert reading.judge(message(6, aborted=True)) == "skipped"
    assert reading.judge(message(6, aborted=True, in_log=[])) == "aborted"


def test_causes_are_given_to_what_was_missed_alone():
    reading = GroupReading([MEMBER], READS, [RESET], NOTHING)
    messages = [message(4, received={"g": 1}), message(8)]
    owed = {"g": {"cause": "consumer_reset", "also": ["retention"]}}
    sums = judge_groups([reading], messages, owed)
    assert sums["g"].states == {"received": 1, "skipped": 1}
    assert (sums["g"].starts, sums["g"].ends) == ({0: 0}, {0: 9})
    assert [m.group_causes for m in messages] == [{}, {"g": ["consumer_reset", "retention"]}]


@given(st.sets(st.integers(0, 30)), st.integers(0, 31))
def test_every_stored_message_below_the_end_was_received_or_skipped(offsets, commit):
    events = [assigned(0), *(read(1 + n, at) for n, at in enumerate(sorted(offsets)))]
    reading = GroupReading([MEMBER], [*events, committed(99, commit)], [], NOTHING)
    end = max([commit, *(at + 1 for at in offsets)])
    for offset in range(31):
        there = message(offset, received={"g": 1} if offset in offsets else {})
        expected = "received" if offset in offsets else "skipped" if offset < end else "not_read"
        assert reading.judge(there) == expected
