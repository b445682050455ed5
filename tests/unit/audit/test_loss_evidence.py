"""Findings of several blocks become one loss; the settings that were in force at a loss."""

from __future__ import annotations

import pytest

from acktrail.audit.block_account import StateRange
from acktrail.audit.loss_evidence import merge_ranges, printed_settings


def finding(first, last, **more):
    given_ = {"state": "rejected", "reason": "told", "error": "E", **more}
    base = {
        "partition": None, "first_offset": None, "last_offset": None, "first_ms": 5, "last_ms": 9,
        "told": True, "acked": False,
    }  # fmt: skip
    return StateRange(first, last, **{**base, **given_})


@pytest.mark.parametrize(
    ("case", "found", "wanted"),
    [
        ("across a block", [finding(0, 9), finding(10, 19)], [(0, 19)]),
        ("a gap between", [finding(0, 9), finding(11, 19)], [(0, 9), (11, 19)]),
        ("another error", [finding(0, 9), finding(10, 19, error="F")], [(0, 9), (10, 19)]),
        ("in any order", [finding(10, 19), finding(0, 9)], [(0, 19)]),
        ("none", [], []),
    ],
)
def test_ranges_that_follow_are_one(case, found, wanted):
    assert [(f.first_seq, f.last_seq) for f in merge_ranges(found)] == wanted


def block(host, started_ms, **settings):
    return {"host": host, "started_ms": started_ms, "key": "k", "settings": settings}


WEAK, SAFE = {"acks": "1", "retries": "3"}, {"acks": "-1", "retries": "3"}
SHARED = {"retries": "3"}


@pytest.mark.parametrize(
    ("case", "printed", "host", "at_ms", "wanted"),
    [
        ("nothing printed", [], "a", 50, {}),
        ("printed after the loss", [block("a", 60, **SAFE)], "a", 50, {}),
        ("changed after it", [block("a", 10, **WEAK), block("a", 60, **SAFE)], "a", 50, WEAK),
        ("changed before it", [block("a", 10, **WEAK), block("a", 40, **SAFE)], "a", 50, SAFE),
        ("its own host", [block("a", 10, **WEAK), block("b", 20, **SAFE)], "a", 50, WEAK),
        ("two other hosts agree", [block("a", 10, **SAFE), block("b", 20, **SAFE)], "c", 50, {}),
        ("another host alone", [block("a", 10, **WEAK)], "c", 50, {}),
        ("a block without a host", [block(None, 10, **WEAK)], "c", 50, WEAK),
        ("hosts differ", [block("a", 10, **WEAK), block("b", 20, **SAFE)], None, 50, SHARED),
        ("no host reported", [block("a", 10, **WEAK)], None, 50, WEAK),
        ("no time known", [block("a", 10, **WEAK), block("a", 60, **SAFE)], "a", None, SAFE),
    ],
)  # fmt: skip
def test_settings_are_those_printed_by_then_on_that_host(case, printed, host, at_ms, wanted):
    assert printed_settings(printed, host, at_ms) == wanted
    assert printed_settings(printed[::-1], host, at_ms) == wanted
