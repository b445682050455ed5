"""When a group is told that it skipped a record, or that retention took it before it was read."""

from __future__ import annotations

import random

import pytest

from acktrail.audit.reasons import CLAUSES, Reason
from tests.unit.audit.group_scenes import OPEN_SETTINGS, Scene, commit, read, state

SKIPPED = ("skipped_by_consumer", "jumped_over")
RESET = ("skipped_by_consumer", "reset_while_empty")
UNPROCESSED = ("skipped_by_consumer", "committed_unprocessed")
EXPIRED = ("expired_before_read", "expired")
UNREPORTED = ("inconclusive", "unreported_range")
ANOTHER = ("inconclusive", "may_be_another")
PENDING = ("pending", "group_behind")
QUIET = None

# -- a member jumps while the partition is its own ------------------------------------------------

JUMP = Scene(
    reads=(read(0, 4, 100), read(5, 9, 300), read(20, 24, 400), read(25, 29, 600)),
    answers=(
        state(150, 10),  # 10 to 19 are appended while the partition is the member's
        commit(450, 25),  # it has committed past them
        state(500, 25),  # and still has the partition: it reads 25 to 29 later
        state(700, 30),
    ),
)
"""One member reads 0 to 9 and 20 to 29 in one assignment."""

JUMPS = [
    ("all evidence is there", JUMP, SKIPPED),
    ("no later scan, but the log still begins below", JUMP.but(scanned_after=None), SKIPPED),
    # It was in the log when the member passed.
    ("nobody knows if it was there then", JUMP.but(scanned_after=None).without(after_ms=700)
        .having("state", earliest_offset=None), UNREPORTED),
    ("the log may have been cut and written again", JUMP.but(epoch=3), UNREPORTED),
    ("the same with no epoch known", JUMP.but(epoch=None), UNREPORTED),
    ("no leader came between the range before and the record",
        JUMP.but(epoch=3).having("consumed", leader_epoch=3), SKIPPED),
    ("a leader came between them",
        JUMP.but(epoch=4).having("consumed", leader_epoch=3), UNREPORTED),
    ("what the member was given next is still there", JUMP.but(epoch=3, given=[20, 29]), SKIPPED),
    ("what it was given later proves less", JUMP.but(epoch=3, given=[21, 29]), UNREPORTED),
    ("an answer later than the scan bounds the epoch",
        JUMP.but(epoch=None).also(state(950, 30)), SKIPPED),
    ("the topic was made again", JUMP.also(state(800, 30, topic_id="t2")),
        ("inconclusive", "topic_recreated")),
    # The group owed it, and nobody read it.
    ("it was there before the member began", JUMP.without(after_ms=150), UNREPORTED),
    ("nobody knows when the end was asked", JUMP.having("state", after_ms=None), UNREPORTED),
    ("nobody knows when the member reported", JUMP.having("consumed", received_ms=None),
        ("inconclusive", "topic_recreated")),
    ("the next member may begin below it", JUMP.without(kind="commit"), UNREPORTED),
    ("the commit may be another member's", JUMP.without(after_ms=500).without(after_ms=700),
        UNREPORTED),
    ("a rebalance in between", JUMP.without(first_offset=20).without(first_offset=25).also(
        read(20, 24, 400, assignment=2), read(25, 29, 600, assignment=2)), UNREPORTED),
    ("another member has the rest", JUMP.without(first_offset=20).without(first_offset=25).also(
        read(20, 24, 400, reporter="n"), read(25, 29, 600, reporter="n")), UNREPORTED),
    ("assignments are not known", JUMP.having("consumed", assignment=None), UNREPORTED),
    ("another member reported it later",
        JUMP.also(read(10, 19, 800, reporter="n", part=1)), QUIET),
    ("the group reported the ids", JUMP.but(given=range(10, 20)), QUIET),
    ("the member had only sought forward, and read it then",
        JUMP.also(read(10, 19, 650, part=99)), QUIET),
    ("a second record of the id was read",
        JUMP.but(beside=range(10, 20)).also(read(110, 119, 650, part=110)), QUIET),
    ("a second record of the id has still to be read", JUMP.but(beside=range(10, 20)), PENDING),
    # It would have been read by a member that nobody moved.
    ("a transactional session", JUMP.but(settings={"acks": "all", "transactional.id": "x"}),
        ("inconclusive", "transactional")),
    ("a transactional session, committed",
        JUMP.but(settings={"acks": "all", "transactional.id": "x"}, committed=range(30)), SKIPPED),
    ("a transactional session, aborted",
        JUMP.but(settings={"acks": "all", "transactional.id": "x"}, aborted=range(30)),
        ("aborted", "none")),
    ("a transactional session, committed and aborted, it is said",
        JUMP.but(settings={"acks": "all", "transactional.id": "x"}, committed=range(30),
            aborted=range(30)), ("inconclusive", "transactional")),
    ("a session of unknown settings: offsets without a marker between it and what was given",
        JUMP.but(settings=OPEN_SETTINGS), SKIPPED),
    ("of unknown settings, and a marker may be between",
        JUMP.but(settings=OPEN_SETTINGS, moved=[9, 20]),
        UNREPORTED),
    ("a compacted topic, and they are there later", JUMP.but(compacted=True), SKIPPED),
    ("nobody knows if it is compacted", JUMP.but(compacted=None), SKIPPED),
    ("compacted, and they were there earlier",
        JUMP.but(compacted=True, scanned_after=350), UNREPORTED),
    ("nobody knows if it is compacted, and they were there earlier",
        JUMP.but(compacted=None, scanned_after=350), UNREPORTED),
]  # fmt: skip

# -- the log's start passes what a member has still to read ---------------------------------------

BEHIND = Scene(
    scanned_after=200,
    reads=JUMP.reads,
    answers=(
        state(150, 10),
        state(310, 25, earliest=20),  # 10 to 19 are gone
        commit(320, 10),  # and the group is still below
        state(700, 30, earliest=20),
    ),
)
"""The member comes to 20 when the log has lost 10 to 19."""

EXPIRIES = [
    ("all evidence is there", BEHIND, EXPIRED),
    ("the group may have come to it before", BEHIND.without(kind="commit"), UNREPORTED),
    ("the group was asked before the log", BEHIND.having("commit", after_ms=300), UNREPORTED),
    ("the group had passed it by then", BEHIND.having("commit", committed_offset=20), UNREPORTED),
    ("part of it was passed by then", BEHIND.having("commit", committed_offset=10), EXPIRED),
    ("the log was seen to lack it only afterwards", BEHIND.without(after_ms=310), UNREPORTED),
    ("the member came to the rest after the answer, whatever was committed",
        BEHIND.without(kind="commit").without(after_ms=310).also(state(310, 20, earliest=20)),
        EXPIRED),
    ("it was there before the member began", BEHIND.without(after_ms=150), UNREPORTED),
    ("a compacted topic", BEHIND.but(compacted=True), UNREPORTED),
    ("a transactional session", BEHIND.but(settings={"transactional.id": "x"}),
        ("inconclusive", "transactional")),
    ("another member reported it; no leader came in between",
        BEHIND.also(read(10, 19, 800, reporter="n", part=1), state(850, 30, earliest=20)), QUIET),
    ("another member reported it; a leader that came before may have written what it read",
        BEHIND.also(read(10, 19, 800, reporter="n", part=1)), ANOTHER),
    ("assignments are not known", BEHIND.having("consumed", assignment=None), UNREPORTED),
]  # fmt: skip

# -- while the group has no members ----------------------------------------------------------------

STOPPED = Scene(
    reads=(read(0, 9, 100), read(20, 29, 600, reporter="n")),
    answers=(
        commit(300, 10, members=0),
        state(310, 10),  # 10 to 19 are appended while nobody is there
        state(380, 20),
        commit(400, 20, members=0),
        state(700, 30),
    ),
)
"""An admin moves the group from 10 to 20 while it has no members; then a member goes on at 20."""

RESETS = [
    ("all evidence is there", STOPPED, RESET),
    ("by the state alone", STOPPED.having("commit", members=None, group_state="EMPTY"), RESET),
    ("members are not known", STOPPED.having("commit", members=None), UNREPORTED),
    ("a member was there before", STOPPED.without(after_ms=300).also(commit(300, 10)), UNREPORTED),
    ("a member was there after", STOPPED.without(after_ms=400).also(commit(400, 20)), UNREPORTED),
    ("a member came and left again", STOPPED.also(commit(350, 15)), UNREPORTED),
    ("a member that came and left reports late",
        STOPPED.also(read(10, 19, 800, reporter="o", part=1)), QUIET),
    ("nobody has gone on yet: one that came and left may still report",
        STOPPED.without(reporter="n"), UNREPORTED),
    ("the next member began below", STOPPED.without(reporter="n").also(
        read(9, 9, 600, reporter="n"), read(20, 29, 600, reporter="n")), UNREPORTED),
    ("it was there when the group stopped", STOPPED.without(after_ms=310), UNREPORTED),
    ("it was there, but the last member had begun before",
        STOPPED.without(after_ms=310).also(state(120, 10)), UNREPORTED),
    ("and it has reported all that it read",
        STOPPED.without(after_ms=310).also(state(120, 10)).but(closed=True), RESET),
    ("but another has not", STOPPED.without(after_ms=310).also(state(120, 10),
        read(0, 9, 90, reporter="o")).but(closed=True), UNREPORTED),
    ("but it has not committed all that it read", STOPPED.without(after_ms=310).also(
        state(120, 10)).without(first_offset=0).also(read(0, 8, 100)).but(closed=True),
        UNREPORTED),
    ("nobody knows when the group was asked", STOPPED.having("commit", after_ms=None), UNREPORTED),
    ("it was appended after the reset", STOPPED.without(after_ms=380), UNREPORTED),
    ("it was written again after the reset", STOPPED.but(epoch=2), UNREPORTED),
    ("no leader came since", STOPPED.but(epoch=2).having("state", leader_epoch=2), RESET),
    ("it was gone at the reset", STOPPED.having("state", earliest_offset=20)
        .but(scanned_after=None), UNREPORTED),
    ("it was gone before, and the group was still below",
        STOPPED.but(scanned_after=None).without(after_ms=380).without(after_ms=700).also(
        state(320, 20, earliest=20), commit(330, 10, members=0)), EXPIRED),
    ("it is gone, and nobody has gone on",
        STOPPED.but(scanned_after=None).without(reporter="n").without(after_ms=400).also(
        state(320, 20, earliest=20), commit(330, 10, members=0)), EXPIRED),
    ("a transactional session", STOPPED.but(settings={"transactional.id": "x"}),
        ("inconclusive", "transactional")),
    ("nobody knows if it is compacted", STOPPED.but(compacted=None), RESET),
    ("compacted, and they are there later", STOPPED.but(compacted=True), RESET),
    ("compacted, and they were there earlier",
        STOPPED.but(compacted=True, scanned_after=350), UNREPORTED),
    ("not compacted, and they were there earlier", STOPPED.but(scanned_after=350), RESET),
]  # fmt: skip

# -- committed, not processed ----------------------------------------------------------------------

AHEAD = Scene(
    reads=(read(0, 19, 100), read(20, 29, 600, reporter="n")),
    answers=(
        state(300, 20),
        commit(400, 20, members=0, metadata="acktrail:processed=10"),
        state(700, 30),
    ),
)
"""A member dies after it committed 20, with 10 to 19 not processed; the next begins at 20."""

COMMITS = [
    ("all evidence is there", AHEAD, UNPROCESSED),
    ("the ids were reported", AHEAD.but(given=range(20)), QUIET),
    ("the member lives and may still process it", AHEAD.having("commit", members=1), QUIET),
    ("nobody has gone on yet", AHEAD.without(reporter="n"), QUIET),
    ("the next member begins where processing ended", AHEAD.without(reporter="n").also(
        read(10, 29, 600, reporter="n", part=10)), QUIET),
    ("an older commit says so, the last one does not",
        AHEAD.also(commit(450, 20, members=0, metadata="acktrail:processed=20")), QUIET),
    ("it was asked at another time", AHEAD.having("commit", after_ms=None), QUIET),
    ("a transactional session, read offset by offset",
        AHEAD.but(settings={"transactional.id": "x"}), QUIET),
]  # fmt: skip


@pytest.mark.parametrize(("name", "scene", "wanted"), [*JUMPS, *EXPIRIES, *RESETS, *COMMITS])
def test_what_became_of_ten_records(name, scene, wanted):
    """Ids 10 to 19, whatever order the evidence comes in."""
    got = scene.verdicts()
    assert {got.get(n) for n in range(10, 20)} == {wanted}, name
    rows = [*scene.reads, *scene.answers]
    random.Random(1).shuffle(rows)
    assert scene.but(reads=(), answers=(*rows, *rows[:3])).verdicts() == got


READS = [
    ("read in epoch 0", Scene(reads=(read(0, 29, 100),)), QUIET),
    ("the log may have been cut since", Scene(epoch=2, reads=(read(0, 29, 100),)), ANOTHER),
    ("its last record in the same epoch, and that is all that is known",
        Scene(epoch=2, reads=(read(0, 29, 100, leader_epoch=2),)), ANOTHER),
    ("in an earlier epoch", Scene(epoch=2, reads=(read(0, 29, 100, leader_epoch=1),)), ANOTHER),
    ("a record that was given above is still there",
        Scene(epoch=2, given=[25], reads=(read(0, 29, 100),)), ANOTHER),
    ("the topic was made again",
        Scene(reads=(read(0, 29, 100, topic_id="t0"),)), ("inconclusive", "topic_recreated")),
    ("markers or aborted records were passed over",
        Scene(settings=OPEN_SETTINGS, reads=(read(0, 29, 100, records=28),)), UNREPORTED),
    ("the same of a session without transactions",
        Scene(reads=(read(0, 29, 100, records=28),)), QUIET),
    ("below where the group began", Scene(reads=(read(20, 29, 100),)), QUIET),
    ("the group has not come so far", Scene(reads=(read(0, 5, 100),)), PENDING),
    ("the group committed past it", Scene(reads=(read(0, 5, 100),), answers=(commit(200, 30),)),
        UNREPORTED),
    ("a processed offset does not show that all below was given to the group",
        Scene(reads=(read(0, 5, 100),),
              answers=(commit(200, 30, metadata="acktrail:processed=30"),)), UNREPORTED),
]  # fmt: skip


@pytest.mark.parametrize(("name", "scene", "wanted"), READS)
def test_what_a_group_has_read(name, scene, wanted):
    got = scene.verdicts()
    assert {got.get(n) for n in range(10, 20)} == {wanted}, name


def test_each_reason_has_a_clause():
    assert set(CLAUSES) == set(Reason)
