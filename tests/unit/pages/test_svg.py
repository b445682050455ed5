"""Each primitive draws what it drew before, byte for byte; and escapes whatever it is given."""

from __future__ import annotations

from datetime import UTC, datetime
from pathlib import Path
from xml.etree import ElementTree

import pytest
from hypothesis import given
from hypothesis import strategies as st

from acktrail.pages.svg import (
    Cell,
    LineStep,
    Scale,
    axis,
    band,
    lane,
    mark,
    matrix,
    number_ticks,
    rule,
    step_line,
    time_scale,
    time_ticks,
)

GOLDEN = Path(__file__).parents[2] / "golden" / "svg"
HOSTILE = '</title><script>alert("1")</script>'
HOUR = time_scale(
    datetime(2026, 11, 16, 7, 0, tzinfo=UTC), datetime(2026, 11, 16, 8, 0, tzinfo=UTC)
)
STEPS = [LineStep(0, 2, 1, 1), LineStep(2, 4, 1, 3), LineStep(7, 9, 0, 0)]
DRAWN = {
    "axis_time": axis(HOUR, time_ticks(HOUR), "Time, UTC"),
    "axis_number": axis(Scale(0, 3823), number_ticks(Scale(0, 3823)), "Offsets"),
    "step_line": step_line(Scale(0, 10), STEPS, 3, 40),
    "band": band(Scale(0, 10), 2, 2.001, "lost", 3, 20, HOSTILE),
    "lane": lane(
        HOSTILE, "two events", 26,
        band(Scale(0, 10), 1, 4, "gap", 0, 26), rule(Scale(0, 10), 5, "election", 26, "leader 2"),
        mark(Scale(0, 10), 6, "dot", 13, "an event"), mark(Scale(0, 10), 7, "star", 13, "proof"),
    ),
    "matrix": matrix(
        "client", [Cell("clean"), Cell("clean"), Cell("lost", HOSTILE), Cell("none")]
    ),
}  # fmt: skip


@pytest.mark.parametrize("name", DRAWN)
def test_a_primitive_is_drawn_as_it_was(name: str) -> None:
    golden = GOLDEN / f"{name}.svg"
    assert DRAWN[name] + "\n" == golden.read_text(), f"look at it, then write {golden}"
    ElementTree.fromstring(DRAWN[name])


def test_a_line_breaks_where_nothing_is_known() -> None:
    assert step_line(Scale(0, 10), STEPS, 3, 40).count("M") == len(STEPS) + 2  # an area each


numbers = st.floats(allow_nan=False, allow_infinity=False, width=32)


@given(numbers, numbers, numbers)
def test_nothing_is_drawn_outside(low: float, high: float, value: float) -> None:
    assert 0 <= Scale(low, high).share(value) <= 100


@given(st.floats(0, 4e9), st.floats(0.01, 4e9))
def test_an_axis_has_few_ticks_inside(low: float, width: float) -> None:
    scale = Scale(low, low + width)
    for ticks in (time_ticks(scale), number_ticks(scale)):
        assert len(ticks) <= 15
        assert all(scale.low <= t.value <= scale.high for t in ticks)
