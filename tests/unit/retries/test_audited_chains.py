"""What audits prove of a batch that was being retried."""

from __future__ import annotations

import random
from dataclasses import replace

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from acktrail.audit.wire import Report
from acktrail.retries.audited_chains import Audits, Retried
from tests.unit.retries.audited import Message, ms, seen, verifiable

BATCH = Retried(ms(100), 20_000, "orders", 3)


def steady(first: float, last: float, fate: str, took: float, partition: int = 3) -> list[Message]:
    """A message every second; numbered later."""
    count = int(last - first)
    return [
        Message(0, first + n, fate, first + n + took if fate else 0.0, partition)
        for n in range(count)
    ]


def numbered(*runs: list[Message]) -> list[Message]:
    ordered = sorted((m for run in runs for m in run), key=lambda m: (m.created, m.partition))
    return [replace(m, seq=n) for n, m in enumerate(ordered)]


def until(messages: list[Message], end: float) -> list[Message]:
    """Those created between 95 s and 100 s are told at *end*, as a batch that waited is."""
    return [replace(m, told=end) if 95 <= m.created <= 100 else m for m in messages]


def verdict(reports: list[Report], batch: Retried = BATCH) -> str | None:
    fates = Audits(reports).became(batch)
    if fates is None or fates.other or bool(fates.acked) == bool(fates.failed):
        return None
    return "acked" if fates.acked else "failed"


ALL_ACKED = until(numbered(steady(0, 200, "acked", 0.01)), 112)
ALL_FAILED = numbered(
    steady(0, 95, "acked", 0.01),
    steady(95, 150, "indeterminate", 20.5),
    steady(150, 200, "acked", 0.01),
)
OPEN = numbered(steady(0, 95, "acked", 0.01), steady(95, 101, "", 0), steady(101, 200, "acked", 1))
BOTH = numbered(
    steady(0, 95, "acked", 0.01),
    steady(95, 98, "indeterminate", 20.5),
    steady(98, 200, "acked", 14),
)
TWO_PARTITIONS = numbered(
    steady(0, 95, "acked", 0.01),
    steady(95, 150, "indeterminate", 20.5),
    steady(0, 200, "acked", 0.01, partition=4),
)

CASES = {
    # reports -> what they prove: by a reporter that sees sends, by VerifiableProducer's lines
    "every record acknowledged": (ALL_ACKED, 200, "acked", "acked"),
    "known at once where sends are seen, else when all of then is over": (
        ALL_ACKED, 113, "acked", None),
    "not reported yet": (ALL_ACKED, 111, None, None),
    "no report since": (ALL_ACKED, 100, None, None),
    "every record failed": (ALL_FAILED, 200, "failed", "failed"),
    "failed, and the next ones wait": (ALL_FAILED, 126, "failed", None),
    "failed, by lines that reach beyond its time": (ALL_FAILED, 132, "failed", "failed"),
    "some were never told of": (OPEN, 200, None, None),
    "some of both": (BOTH, 200, None, None),
    "other partitions go on": (TWO_PARTITIONS, 200, "failed", "failed"),
}  # fmt: skip


@pytest.mark.parametrize("case", CASES)
def test_what_audits_prove(case: str) -> None:
    messages, end, by_sends, by_lines = CASES[case]
    assert verdict(seen(messages, end)) == by_sends
    assert verdict(verifiable(messages, end)) == by_lines


def test_a_producer_that_closed_has_told_of_everything() -> None:
    ended = [m for m in ALL_ACKED if m.created <= 105]
    assert verdict(verifiable(ended, 113)) is None
    assert verdict(verifiable(ended, 113, closed=True)) == "acked"


def test_what_was_closed_before_is_another_instance() -> None:
    earlier = [replace(m, created=m.created - 60, told=m.told - 60) for m in ALL_FAILED[:70]]
    never_told = replace(earlier[-9], fate="")
    reports = verifiable([*earlier[:-9], never_told, *earlier[-8:]], 99, closed=True)
    assert verdict(reports) is None
    assert verdict([*reports, *seen(ALL_ACKED, 200)]) == "acked"


def test_what_was_created_long_before_may_still_wait() -> None:
    messages = numbered(steady(0, 500, "acked", 0.01))
    old = Retried(ms(300), 120_000, "orders", 3)
    assert verdict(seen(messages, 500), old) == verdict(verifiable(messages, 500), old) == "acked"
    messages[190] = replace(messages[190], fate="indeterminate", told=310.0)
    assert verdict(seen(messages, 500), old) is verdict(verifiable(messages, 500), old) is None


def test_two_sessions_of_one_client_must_agree() -> None:
    one, other = seen(ALL_ACKED, 200), seen(ALL_FAILED, 200, session="other")
    assert verdict([*one, *other]) is None
    agreeing = seen(ALL_ACKED, 200, session="other")
    assert verdict([*one, *agreeing]) == "acked"


def test_a_session_that_was_last_heard_of_long_before_does_not_speak() -> None:
    crashed = [m if m.seq < 60 else replace(m, fate="") for m in ALL_ACKED if m.created < 65]
    old = seen(crashed, 69, session="old")
    assert verdict([*old, *seen(ALL_ACKED, 200)]) == "acked"
    late = seen([m if m.seq < 85 else replace(m, fate="") for m in ALL_ACKED if m.seq < 90], 91,
                session="late")  # fmt: skip
    assert verdict([*late, *seen(ALL_ACKED, 200)]) is None


def test_without_a_heartbeat_nothing_says_how_much_was_reported() -> None:
    reports = [r for r in seen(ALL_ACKED, 200) if r.tier != "heartbeat"]
    assert verdict(reports) is None


def test_neither_a_replay_nor_an_older_report_changes_the_answer() -> None:
    """A part that grows is reported whole each time."""
    parts = [r for r in seen(ALL_ACKED, 200) if r.tier == "acked"]
    rest = [r for r in seen(ALL_ACKED, 200) if r.tier != "acked"]
    older = [replace(p, ids=b"\0", number=-1, ended_ms=p.began_ms) for p in parts]
    expected = Audits([*parts, *rest]).became(BATCH)
    assert expected is not None
    assert Audits([*older, *parts, *rest, *parts, *older]).became(BATCH) == expected
    assert Audits([*older, *rest]).became(BATCH) is None


def test_ids_that_cannot_be_read_say_nothing() -> None:
    broken = [replace(r, ids=b"\xff") if r.tier == "acked" else r for r in seen(ALL_ACKED, 200)]
    assert verdict(broken) is None


def test_acks_nobody_asked_for_prove_nothing() -> None:
    lines = [replace(m, fate="sent_unacked") if m.created > 90 else m for m in ALL_ACKED]
    assert verdict(seen(lines, 200)) is None


STAKES = {
    # first and last sign, end of the reports -> records in doubt: all since 95 s
    "by the report before the last sign": (100, 111, 200, 15),
    "reports end before it": (100, 110, 106, 11),
    "by the first report after it, where none is between": (101, 102, 200, 10),
    "no report since it was first retried": (100, 110, 98, None),
    "told by then": (100, 119, 200, 0),
}


@pytest.mark.parametrize("case", STAKES)
def test_records_in_doubt(case: str) -> None:
    first, last, reported, expected = STAKES[case]
    batch = replace(BATCH, at_ms=ms(first))
    waiting = [
        replace(m, told=112.0 + m.seq / 100) if 95 <= m.created <= 112 else m for m in ALL_ACKED
    ]
    assert Audits(seen(waiting, reported)).in_doubt(batch, ms(last)) == expected


def test_lines_of_answers_do_not_tell_how_many_wait() -> None:
    assert Audits(verifiable(ALL_ACKED, 200)).in_doubt(BATCH, ms(110)) is None


@st.composite
def outages(draw: st.DrawFn) -> tuple[list[Message], Message, Retried]:
    """Messages to two partitions that fail now and then, one that waits, and when it is retried."""
    down = {p: sorted(draw(st.lists(st.integers(60, 200), max_size=4))) for p in (3, 4)}
    pace = draw(st.sampled_from([0.5, 1.0, 3.0]))
    count = draw(st.integers(10, 250))
    where = random.Random(draw(st.integers(0, 999))).choices([3, 3, 4], k=count)
    slow = draw(st.floats(0, 8))
    timeout = draw(st.sampled_from([20.0, 90.0]))
    messages = []
    for n, partition in enumerate(where):
        created = n * pace
        answered = created + 0.02
        spans = zip(down[partition][::2], down[partition][1::2], strict=False)
        for begin, end in spans:
            if begin <= answered <= end:
                answered = end + 0.02
        if answered > created + timeout:
            messages.append(
                Message(n, created, "indeterminate", created + timeout + slow, partition)
            )
        else:
            messages.append(Message(n, created, "acked", answered, partition))
    waiting = [m for m in messages if m.told - m.created > 0.1] or messages[-1:]
    chosen = draw(st.sampled_from(waiting))
    at = draw(st.floats(chosen.created, min(chosen.told, chosen.created + timeout)))
    return messages, chosen, Retried(ms(at), round(timeout * 1000), "orders", chosen.partition)


@settings(max_examples=60, deadline=None)
@given(
    outages(), st.floats(5, 300), st.randoms(use_true_random=False), st.sampled_from([300, 5000])
)
def test_what_is_proven_is_true_whatever_was_reported_by_then(drawn, end, rng, piece) -> None:
    messages, truth, batch = drawn
    fate = "acked" if truth.fate == "acked" else "failed"
    by_lines = verifiable(messages, end, piece)
    by_sends = seen(messages, end)
    assert verdict(by_lines, batch) in (None, fate)
    assert verdict(by_sends, batch) in (None, fate)
    # An outcome that is missing is no outcome.
    missing = [r for r in by_sends if r.tier in ("sent", "heartbeat") or rng.random() < 0.8]
    assert verdict(missing, batch) in (None, fate)
    # The order and a second copy change nothing.
    rng.shuffle(by_sends)
    assert Audits([*by_sends, *missing]).became(batch) == Audits(seen(messages, end)).became(batch)


@settings(max_examples=30, deadline=None)
@given(outages())
def test_what_went_one_way_for_all_is_proven_once_all_is_reported(drawn) -> None:
    """The oracle looks at every message: those that may be the batch's, one by one."""
    messages, truth, batch = drawn
    possible = {
        m.fate
        for m in messages
        if ms(m.told) >= batch.at_ms
        and ms(m.created) <= batch.over_ms + 30_000  # a part holds ten seconds
        and (m.fate != "acked" or m.partition == truth.partition)
    }
    if len(possible) == 1:
        fate = "acked" if possible == {"acked"} else "failed"
        end = max(m.told for m in messages) + 1
        assert verdict(seen(messages, end + 20), batch) == fate
        assert verdict(verifiable(messages, end, closed=True), batch) == fate
