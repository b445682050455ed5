"""When a recording's bytes were received: pieces of whole lines, in the order of receipt."""

from __future__ import annotations

import json

import pytest
from hypothesis import given
from hypothesis import strategies as st

from acktrail.recorded_receipts import Mark, Receipts, ReceivedPiece

TEXT = b"one\ntwo\nthree\n"


@pytest.mark.parametrize(
    ("case", "marks", "pieces"),
    [
        ("nothing noted", [], [ReceivedPiece(0, 14, 99)]),
        ("line by line", [(1, 4), (2, 8), (3, 14)], [(0, 4, 1), (4, 8, 2), (8, 14, 3)]),
        ("a torn line waits", [(1, 6), (2, 14)], [(0, 4, 1), (4, 14, 2)]),
        ("a mark within a line", [(1, 4), (2, 6), (3, 8)], [(0, 4, 1), (4, 8, 3), (8, 14, 99)]),
        ("the rest is later than all marks", [(200, 4)], [(0, 4, 200), (4, 14, 201)]),
        ("a file that was cut", [(1, 40)], [(0, 14, 1)]),
    ],
)
def test_pieces(case, marks, pieces):
    received = Receipts({"a": [Mark(*mark) for mark in marks]})
    wanted = [each if isinstance(each, ReceivedPiece) else ReceivedPiece(*each) for each in pieces]
    assert list(received.pieces("a", TEXT, rest_ms=99)) == wanted, case


@given(
    st.lists(st.binary(max_size=9).map(lambda b: b.replace(b"\n", b"") + b"\n"), max_size=12),
    st.lists(st.tuples(st.integers(0, 50), st.integers(0, 120)), max_size=8),
)
def test_pieces_are_the_file_in_order_and_none_was_there_later_than_it_was_received(lines, looks):
    text = b"".join(lines)
    looks = [(at, min(size, len(text))) for at, size in looks]
    grown: list[Mark] = []
    for at, size in sorted(looks):  # a file only grows
        grown.append(Mark(at, max(size, grown[-1].size if grown else 0)))
    received = Receipts({"a": grown})
    pieces = list(received.pieces("a", text, rest_ms=60))
    assert b"".join(text[p.start : p.end] for p in pieces) == text
    assert [p.received_ms for p in pieces] == sorted(p.received_ms for p in pieces)
    for piece in pieces:
        assert text[piece.end - 1 : piece.end] == b"\n"
        seen = [mark.at_ms for mark in grown if mark.size >= piece.end]
        assert piece.received_ms == min(seen, default=60)


def test_the_newest_receipt_before_a_time():
    received = Receipts({"a": [Mark(10, 1), Mark(30, 2)], "b": [Mark(20, 5)]})
    assert [received.newest_before(at) for at in (10, 11, 20, 21, 99)] == [None, 10, 10, 20, 30]
    assert Receipts({}).newest_before(5) is None


def test_rows_are_read_back():
    received = Receipts({"a": [Mark(10, 1), Mark(30, 2)], "b": [Mark(10, 5)]})
    rows = [json.loads(line) for line in received.text().splitlines()]
    assert rows == [{"at_ms": 10, "sizes": {"a": 1, "b": 5}}, {"at_ms": 30, "sizes": {"a": 2}}]
    assert Receipts.of_rows(rows).marks == received.marks


def test_without_receipts_a_line_was_received_when_its_second_was_over():
    lines = [
        b'{"timestamp":1000,"name":"startup_complete"}\n',
        b'{"timestamp": 1999}\n',
        b"a note to people\n",
        b'{"time_ms":2000}\n',
        b'{"timestamp":1500,"name":"printed late"}\n',
    ]
    text = b"".join(lines)
    received = Receipts.of_texts({"a": text, "b": b"nothing\n"})
    assert [(p.received_ms, text[p.start : p.end]) for p in received.pieces("a", text, 9)] == [
        (2000, b"".join(lines[:3])),
        (3000, b"".join(lines[3:])),
    ]
    assert received.first_ms == 2000
