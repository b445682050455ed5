"""The client writes what the lake reads: the same header, run lists and errors, on any input."""

from __future__ import annotations

import base64
from types import SimpleNamespace

import pytest
from acktrail_client import identity, run_lists, send_errors
from acktrail_client.rows import encode_message
from acktrail_client.sent_ids import SentIds
from hypothesis import given
from hypothesis import strategies as st

from acktrail.audit import send_errors as lake_errors
from acktrail.audit import wire
from tests.unit.audit.test_wire import _cells, _numbers

IDS = st.lists(st.integers(0, wire.BLOCK_IDS - 1), unique=True, max_size=300).map(sorted)


def test_vectors_of_the_page():
    for session, seq, created, value in _cells("## The record header"):
        made = identity.pack_header(identity.header_prefix(session), int(seq), int(created))
        assert made.hex() == value
        assert identity.read_header(made) == (session, int(seq), int(created))
    for ids, offsets, text in _cells("## Run lists"):
        numbers, at = _numbers(ids), _numbers(offsets)
        made = run_lists.encode_offsets(numbers, at) if at else run_lists.encode_ids(numbers)
        assert made.hex() == text


@given(IDS)
def test_ids_as_the_lake_encodes_them(ids):
    assert run_lists.encode_ids(ids) == wire.encode_ids(ids)


@given(IDS, st.data())
def test_offsets_as_the_lake_encodes_them(ids, data):
    offsets = data.draw(
        st.lists(st.integers(0, 2**60), min_size=len(ids), max_size=len(ids))
        | st.integers(0, 2**60).map(lambda base: [base + i for i in range(len(ids))])
    )
    made = run_lists.encode_offsets(ids, offsets)
    assert made == wire.encode_ids(ids, offsets)
    assert run_lists.ids_without_offsets(made) == wire.encode_ids(ids)


@given(st.integers(0, wire.BLOCK_IDS - 1), st.integers(0, wire.BLOCK_IDS - 1))
def test_ranges_as_the_lake_encodes_them(first, last):
    first, last = sorted((first, last))
    assert run_lists.encode_range(first, last) == wire.encode_ids(range(first, last + 1))


def test_a_set_without_runs_is_a_bitmap():
    every_other = list(range(0, wire.BLOCK_IDS, 2))
    assert run_lists.encode_ids(every_other) == wire.encode_ids(every_other)
    assert len(run_lists.encode_ids(every_other)) == wire.BITMAP_BYTES + 1


def test_a_session_tells_its_start():
    session = identity.new_session()
    assert wire.session_started_ms(session) is not None
    assert wire.bucket_of(session, 0)[:2] == "20"


def test_errors_mean_the_same():
    names = {name for name in lake_errors._NOT_WRITTEN if name == name.upper()}
    assert names == send_errors.NOT_WRITTEN
    for name in (*names, "_MSG_TIMED_OUT", "_PURGE_QUEUE", "strange"):
        assert send_errors.tier_of_error(name) == lake_errors.tier_of_error(name)


def test_of_earlier_ids_only_the_first_is_kept():
    own = ("acktrail", b"3")
    given_ = [("a", b"x"), ("acktrail", b"1"), ("acktrail", b"2"), ("a", b"y")]
    kept = [("a", b"x"), ("acktrail", b"1"), ("a", b"y"), own]
    assert identity.with_header(given_, own) == kept
    assert identity.with_header({"b": "z"}, own) == [("b", "z"), own]
    assert len(given_) == 4


OUTCOME = st.sampled_from(["acked", "acked", "acked", "unplaced", "NOT_ENOUGH_REPLICAS", "_X", ""])


@given(
    st.lists(st.tuples(OUTCOME, st.integers(0, 2), st.booleans()), max_size=80),
    st.integers(0, 40_000),
)
def test_every_id_is_reported_once_with_its_outcome(messages, begins):
    """Whatever comes when, and wherever reports are made in between."""
    ids = SentIds("t", unacked=False, only_errors=False)
    ids.next = ids._reported = begins
    wanted: dict[int, tuple[str, int]] = {}
    rows, offset = [], 0
    for what, place, report in messages:
        seq, ids.next = ids.next, ids.next + 1
        offset += 1 + (seq % 3 == 0)
        if what:
            at = None if what == "unplaced" else offset
            message = SimpleNamespace(partition=lambda p=place: p, offset=lambda o=at: o)
            failed = what not in ("acked", "unplaced")
            error = SimpleNamespace(name=lambda n=what: n) if failed else None
            ids.note(seq, error, message)
            wanted[seq] = (what, offset if what == "acked" else -1)
        if report:
            rows += ids.take(1_000)
    rows += ids.take(2_000)
    assert ids.broken is None
    reports = wire.decode_reports(
        encode_message([{**r, "reporter": "r", "number": 1, "reported_ms": 5} for r in rows])
    )
    tiers = {"acked": "acked", "acked_no_offset": "unplaced"}
    told: dict[int, tuple[str, int]] = {}
    sent: set[int] = set()
    for report in reports:
        runs = wire.decode_runs(report.ids)
        numbers, offsets = runs.listed()
        assert report.records == runs.count
        for i, low in enumerate(numbers.tolist()):
            seq = (report.block << 15) + low
            if report.tier == "sent":
                assert seq not in sent
                sent.add(seq)
                continue
            assert seq not in told, "an id has one outcome"
            name = tiers.get(report.tier) or next(iter(report.errors))
            told[seq] = (name, -1 if offsets is None else int(offsets[i]))
    assert told == wanted
    assert sent == set(range(begins, ids.next))
    assert sum(ids.outcomes.values()) == len(told)
    left = [seq for seq in ids.left_open() if seq >= begins]
    assert left == sorted(sent - set(told))


@pytest.mark.parametrize("has_callback", [True, False])
def test_an_error_that_is_thrown_into_a_callback_goes_on_to_the_application(has_callback):
    """As confluent-kafka does with a fatal error: the first call in a callback fails with it."""
    fatal, heard = RuntimeError("fenced"), []

    def partition():
        if not heard:
            heard.append("partition")
            raise SystemError("returned a result with an exception set") from fatal
        return 1

    def users(*_: object) -> None:
        heard.append("user")

    ids = SentIds("t", unacked=False, only_errors=False)
    ids.next = 1
    note = ids.note_and_tell(users) if has_callback else ids.note
    with pytest.raises((SystemError, RuntimeError)) as thrown:
        note(0, None, SimpleNamespace(partition=partition, offset=lambda: 7))
    assert heard == (["partition", "user"] if has_callback else ["partition"])
    assert thrown.value.__cause__ is fatal if has_callback else thrown.value is fatal
    assert ids.broken is None
    (row,) = (row for row in ids.take(1) if row["tier"] == "acked")
    assert row["first_offset"] == 7


def test_a_report_is_text_that_names_the_version():
    assert encode_message([]) == b'{"v":1,"reports":[]}'
    assert base64.b64decode("AABj") == run_lists.encode_range(0, 99)
