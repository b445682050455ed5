"""What ranges cover, against plain sets."""

from __future__ import annotations

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from acktrail.audit.intervals import Coverage

RANGES = st.lists(st.tuples(st.integers(0, 60), st.integers(0, 60)), max_size=8)


@given(RANGES, st.integers(0, 70), st.integers(0, 70))
def test_coverage_against_sets(ranges, first, last):
    covered = Coverage(ranges)
    there = {o for a, b in ranges for o in range(a, b + 1)}
    reach = first - 1
    while reach + 1 in there:
        reach += 1
    assert covered.reach(first) == reach
    if first <= last:
        wanted = set(range(first, last + 1)) <= there
        assert covered.covers(np.array([first]), np.array([last])).tolist() == [wanted]
