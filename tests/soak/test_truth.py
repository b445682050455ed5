"""The law of truth at length: 100,000 views of 2,000 random worlds."""

from __future__ import annotations

import os
from concurrent.futures import ProcessPoolExecutor

import pytest

from tests.laws.test_truth import TOLD
from tests.worlds.law import Tally, check_views

pytestmark = [
    pytest.mark.skipif(not os.environ.get("ACKTRAIL_SOAK"), reason="make soak"),
    pytest.mark.timeout(2400),
]
WORLDS = range(10_000, 12_000)
VIEWS = 50


def _check(seed: int) -> Tally:
    return check_views(seed, range(VIEWS))


def test_a_hundred_thousand_views_hold() -> None:
    tally = Tally()
    with ProcessPoolExecutor(2) as processes:
        for found in processes.map(_check, WORLDS, chunksize=10):
            tally.add(found)
    print(tally.shown())
    assert not tally.wrong, tally.failures()
    assert tally.views == len(WORLDS) * VIEWS
    assert tally.causes_right("lost_after_ack") >= 0.95, tally.causes
    assert all(tally.causes_right(state) == 1.0 for state in TOLD), tally.causes
