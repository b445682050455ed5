"""Why the log lost records: the change of leader that cut them off, whatever else happened near."""

from __future__ import annotations

import random
from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from acktrail.audit.causes import cause_of
from acktrail.audit.leaders import cut_of
from acktrail.audit.loss_evidence import Loss
from tests.unit.audit.leader_evidence import (
    AT,
    HOUR,
    LOST,
    allowed,
    answer,
    created,
    cut,
    elected,
    last_known,
    lost,
    started,
    unclean,
)

FIRST = started(0, 0, 1, -HOUR)
TAKEN = started(1, 600, 2, 3_000)
FAILED_OVER = (FIRST, TAKEN)
FORBIDDEN = allowed("false")
RECOVERING = replace(unclean(None), kind="leader_recovering", key="r", broker=2, leader=None)
# A controller made 2 leader, which left again; then 2 came back as the last known leader.
TWO_STEPS = (
    *(FIRST, unclean(1, 2, 2_000), elected("leader_change", 2, -1, 2_050)),
    *(last_known(3, 2, 2_500), started(3, 600, 2, 2_900)),
)

CASES = [
    # case, finding, acks, facts -> cause, confidence, what the text must and must not hold
    ("unclean, and the leader's start", LOST, "all", (*FAILED_OVER, unclean(1)),
     "unclean_election", "exact"),
    ("unclean, and answers alone", LOST, "all",
     (answer(0, 590, 1, -500), unclean(1), answer(1, 600, 2, 4_000)), "unclean_election", "exact"),
    ("unclean, with acks=1: both were needed", LOST, "1", (*FAILED_OVER, unclean(1)),
     "unclean_election", "same_client"),
    ("unclean, acks not known", LOST, None, (*FAILED_OVER, unclean(1)),
     "unclean_election", "same_client"),
    ("unclean, and nobody served before the next", LOST, "all", TWO_STEPS,
     "unclean_election", "exact"),
    ("unclean, by a line without an epoch", LOST, "all",
     (*FAILED_OVER, unclean(None, None, detail="unclean_triggered")),
     "unclean_election", "exact"),
    ("unclean, by a line with the epoch before", LOST, "all",
     (*FAILED_OVER, unclean(0, None, detail="unclean_triggered")), "unclean_election", "exact"),
    ("unclean, of an old controller, and no more", LOST, "all", (unclean(None, 2),),
     "unclean_election", "same_client"),
    ("unclean, and no more", LOST, "all", (unclean(1),), "unclean_election", "same_client"),
    ("marked as recovering, and another led before", LOST, "all", (*FAILED_OVER, RECOVERING),
     "unclean_election", "exact"),
    ("marked as recovering, where the setting forbids it", LOST, "all",
     (*FAILED_OVER, RECOVERING, allowed("false")), "unknown", "none"),
    ("unclean on another partition", LOST, "all", (replace(unclean(1), partition=7),),
     "unknown", "none"),
    ("acks=1 loss, then an unclean election of the partition", LOST, "1",
     (*FAILED_OVER, unclean(2, 3, 90_000), started(2, 590, 3, 91_000)),
     "acks_1_leader_change", "same_client"),
    ("acks=1 loss, then one that began above it", LOST, "1",
     (*FAILED_OVER, unclean(2, 3, 90_000), started(2, 2_000, 3, 91_000), FORBIDDEN),
     "acks_1_leader_change", "exact"),
    ("acks=1 loss below it, and 25 s later an unclean election at it", lost(1_146, 1_514), "1",
     (FIRST, started(1, 301, 2, -9_000), unclean(2, 1, 17_000), started(2, 1_146, 1, 17_300)),
     "unclean_election", "same_client"),
    ("acks=1 loss at it, and a clean change in the midst of its offsets", lost(301, 900), "1",
     (FIRST, started(1, 301, 2, 3_000), started(2, 500, 1, 9_000)),
     "acks_1_leader_change", "same_client"),
    ("an unclean election began above it; acks=all", LOST, "all",
     (FIRST, unclean(1), started(1, 2_000, 2, 3_000)), "unknown", "none"),
    ("acks=1, then an unclean election of another topic's partition", LOST, "1",
     (*FAILED_OVER, replace(unclean(1), partition=3), FORBIDDEN),
     "acks_1_leader_change", "exact"),
    ("acks=1, by the leader's start", LOST, "1", (*FAILED_OVER, FORBIDDEN),
     "acks_1_leader_change", "exact"),
    ("acks=1, by answers", LOST, "1",
     (answer(0, 590, 1, -500), answer(1, 600, 2, 4_000), FORBIDDEN),
     "acks_1_leader_change", "exact"),
    ("acks=1, and the line of an unclean election may be missing", LOST, "1", FAILED_OVER,
     "acks_1_leader_change", "same_client"),
    ("acks=1, the topic was created again, by the ids that brokers print", LOST, "1",
     (replace(FIRST, topic_id="t1"), replace(TAKEN, topic_id="t1"), FORBIDDEN,
      replace(started(1, 0, 3, 9_000), key="of t2", topic_id="t2"),
      answer(1, 600, 2, 4_000, topic_id="t1")), "acks_1_leader_change", "exact"),
    ("acks=1, the topic was created again: epoch 1 begins twice", LOST, "1",
     (*FAILED_OVER, FORBIDDEN, replace(started(1, 700, 3, 9_000), key="again")),
     "acks_1_leader_change", "same_client"),
    ("acks=all, an in-sync replica in between, and later the unclean one", lost(600, 790), "all",
     (FIRST, started(1, 600, 3, 2_000), unclean(2, 2, 3_000), started(2, 590, 2, 4_000)),
     "unclean_election", "same_client"),
    ("a restart with all, after the log directory was lost", lost(5, 593), "all",
     (FIRST, created(1, -HOUR - 1), created(1, 2_500), last_known(1, 1, 2_600),
      started(1, 0, 1, 2_700), last_known(2, 1, 2_800), started(2, 5, 1, 3_000)),
     "log_directory_lost", "same_client"),
    ("acks=1, by answers that skip epochs", LOST, "1",
     (answer(0, 590, 1, -500), answer(4, 600, 2, 4_000)), "acks_1_leader_change", "same_client"),
    ("acks=1, and the answer is from long after", LOST, "1",
     (answer(0, 590, 1, -500), answer(1, 5_000, 2, 240_000)),
     "acks_1_leader_change", "same_client"),
    ("acks=1, one leader", LOST, "1", (answer(0, 590, 1, -500),), "unknown", "none"),
    ("acks=1, the same leader again with less", LOST, "1",
     (FIRST, started(1, 600, 1, 3_000)), "truncated", "same_client"),
    ("acks=all and another leader", LOST, "all", FAILED_OVER, "unknown", "none"),
    ("acks not known, and another leader", LOST, None, FAILED_OVER, "unknown", "none"),
    ("acks=-1 is all", LOST, "-1", FAILED_OVER, "unknown", "none"),
    ("a leader that was not in sync, answers 30 s apart", LOST, "all",
     (answer(0, 590, 1, -500, isr=(1,)), answer(1, 600, 2, 29_500, isr=(2,))), "unknown", "none"),
    ("the last known leader came back with less", LOST, "all",
     (FIRST, last_known(2, 1), started(2, 600, 1, 3_000), allowed("false")), "truncated", "exact"),
    ("the last known leader came back with all", LOST, "all",
     (FIRST, last_known(2, 1), started(2, 804, 1, 3_000)), "unknown", "none"),
    ("all brokers died, and the last known leader had never led; acks=1", LOST, "1",
     (FIRST, last_known(3, 2, 2_500), started(3, 600, 2, 2_900), allowed("false")),
     "acks_1_leader_change", "same_client"),
    ("all brokers died, and the last known leader had never led; acks=all", LOST, "all",
     (FIRST, last_known(3, 2, 2_500), started(3, 600, 2, 2_900), allowed("false")),
     "unknown", "none"),
    ("the last known leader, and nobody knows who led before", LOST, "1",
     (last_known(3, 2, 2_500), started(3, 600, 2, 2_900), allowed("false")),
     "truncated", "same_client"),
    ("its log directory was lost", lost(0, 593), "all",
     (FIRST, created(1, -HOUR - 1), created(1, 2_500), last_known(2, 1, 2_800),
      started(2, 0, 1, 3_000), allowed("false")), "log_directory_lost", "exact"),
    ("its log directory was lost; acks=1 makes no difference", lost(0, 593), "1",
     (FIRST, created(1, 2_500), last_known(2, 1, 2_800), started(2, 0, 1, 3_000)),
     "log_directory_lost", "exact"),
    ("another broker's log was created", lost(0, 593), "all",
     (FIRST, created(3, 2_500), last_known(2, 1, 2_800), started(2, 0, 1, 3_000)),
     "truncated", "same_client"),
    ("the log was created when the topic was", lost(5, 593), "all",
     (created(1, -HOUR - 1), FIRST, last_known(2, 1, 2_800), started(2, 5, 1, 3_000)),
     "truncated", "exact"),
    ("cut below the high watermark", LOST, "all", (cut(600, 804),), "truncated", "same_client"),
    ("cut by a clean leader", LOST, "all", (*FAILED_OVER, cut(600, 804)),
     "truncated", "same_client"),
    ("cut above its offsets", LOST, "all", (cut(900, 950),), "unknown", "none"),
    ("the usual cut of a follower", LOST, "all", (cut(600, 600),), "unknown", "none"),
    ("a high watermark that went back", LOST, "1",
     (*FAILED_OVER, replace(cut(600, 804), kind="high_watermark_back"), FORBIDDEN),
     "acks_1_leader_change", "exact"),
    ("the producer's clock is an hour slow",
     replace(LOST, first_ms=AT - HOUR, last_ms=AT - HOUR + 9), "all",
     (answer(0, 590, 1, -500), *FAILED_OVER, unclean(1)), "unclean_election", "exact"),
    ("an hour slow, and a restart an hour ago",
     replace(LOST, first_ms=AT - HOUR, last_ms=AT - HOUR + 9), "1",
     (started(0, 0, 1, -9 * HOUR), unclean(1, 3, -HOUR + 1_000), started(1, 300, 3, -HOUR + 2_000),
      started(2, 600, 2, 3_000)), "acks_1_leader_change", "same_client"),
    ("reported a day late", replace(LOST, first_received_ms=AT + 24 * HOUR,
                                    last_received_ms=AT + 24 * HOUR), "1",
     (*FAILED_OVER, unclean(2, 3, 2 * HOUR), started(2, 600, 3, 2 * HOUR + 1_000)),
     "acks_1_leader_change", "same_client"),
    ("brokers' clocks a day fast, answers say when", LOST, "1",
     (answer(0, 590, 1, -500), started(1, 600, 2, 24 * HOUR), answer(1, 600, 2, 4_000), FORBIDDEN),
     "acks_1_leader_change", "exact"),
    ("no offset: an unclean election near it", replace(LOST, first_offset=None, last_offset=None),
     "all", (*FAILED_OVER, unclean(1)), "unclean_election", "same_client"),
    ("no offset: and none near it", replace(LOST, first_offset=None, last_offset=None),
     "1", (FIRST, started(1, 600, 2, 2 * HOUR)), "unknown", "none"),
    ("no partition: one change of the topic", replace(LOST, partition=None, first_offset=None,
                                                      last_offset=None), "1", FAILED_OVER,
     "acks_1_leader_change", "same_client"),
]  # fmt: skip


def judged(finding, acks, facts, **more):
    settings = {} if acks is None else {"acks": acks}
    return cause_of(Loss(finding, "", "pay", settings, facts, topic="orders", **more))


@pytest.mark.parametrize("case", CASES, ids=lambda case: case[0])
def test_cause(case):
    _, finding, acks, facts, cause, confidence = case
    found = judged(finding, acks, facts)
    assert (found.cause, found.confidence) == (cause, confidence), found
    assert set(found.evidence) <= {f.key for f in facts}
    assert found.evidence or confidence != "exact"
    if any(f.setting == "false" for f in facts):
        assert "unclean.leader.election.enable" not in found.because


@pytest.mark.parametrize("case", CASES, ids=lambda case: case[0])
def test_the_order_of_the_evidence_makes_no_difference(case):
    _, finding, acks, facts, *_ = case
    wanted = judged(finding, acks, facts)
    for seed in range(5):
        shuffled = random.Random(seed).sample(facts, len(facts)) + list(facts[:1])
        assert judged(finding, acks, shuffled) == wanted


@given(st.data())
def test_the_leader_that_cut_it_off_is_the_first_that_lacked_it(data):
    """Against a judge that knows the record's epoch: every leader in turn, until one lacks it."""
    offset = data.draw(st.integers(0, 50), "offset")
    starts = data.draw(st.lists(st.integers(0, 100), min_size=1, max_size=6), "starts")
    epoch = data.draw(st.integers(0, len(starts) - 1), "epoch of the record")
    guilty = next((e for e in range(epoch + 1, len(starts) + 1) if starts[e - 1] <= offset), None)
    leaders = [started(0, 0, 1, -10 * HOUR)]
    minutes = 10 * 60_000
    for number, start in enumerate(starts, 1):
        at = (number - epoch - 1) * minutes + 5_000  # the record is acked between two changes
        leaders.append(started(number, start, 1 + number % 3, at))
    found = cut_of(Loss(lost(offset, offset), facts=leaders))
    if guilty is not None:
        assert found is not None
        assert found.hand_over.epoch == guilty
    able = [e for e, start in enumerate(starts, 1) if start <= offset]
    if found is not None and found.exact:
        assert able == [found.hand_over.epoch]
    if guilty is None:
        assert found is None or not found.exact or found.hand_over.epoch <= epoch


@given(st.data())
def test_answers_after_the_receipt_decide_whatever_the_clocks(data):
    """The cluster answered under the record's epoch, then under the next with a lower end."""
    epoch = data.draw(st.integers(0, 5), "epoch")
    skew = data.draw(st.integers(-5 * 24 * HOUR, 5 * 24 * HOUR), "clock of the producer")
    brokers = data.draw(st.integers(-HOUR, HOUR), "clock of the brokers")
    facts = [answer(epoch, 590, 1, 6_000), answer(epoch + 1, 600, 2, 36_000)]
    facts += [started(e, 100 * e, 3, -2 * HOUR + brokers) for e in range(epoch)]
    facts += [started(epoch + 2, 600, 3, 90_000 + brokers), unclean(epoch + 2, 3, 89_000 + brokers)]
    finding = replace(LOST, first_ms=AT + skew, last_ms=AT + skew + 9)
    found = cut_of(Loss(finding, facts=facts))
    assert found is not None
    assert found.hand_over.epoch == epoch + 1
    assert not found.hand_over.elections
