"""No random history, seen in whole or in part, makes the rules deny a group what it received."""

from __future__ import annotations

import random
from collections import Counter

import pytest

from acktrail.audit.reasons import Reason
from tests.unit.audit.group_worlds import GroupWorld

LOUD = ("skipped_by_consumer", "expired_before_read")
VIEWS = 3


def claims(seed: int) -> Counter[str]:
    """Ids by reason of all claims about one history, each checked against the truth."""
    world, chance = GroupWorld(seed), random.Random(seed)
    found: Counter[str] = Counter()
    for view in (world.made, *(world.view(chance) for _ in range(VIEWS))):
        until = max((made.at for made in view), default=0)
        for finding in world.judge(view):
            if finding.state in LOUD:
                assert not world.transactional, (seed, finding)
                assert not world.got(finding, until), (seed, finding)
                found[finding.reason] += finding.count
    return found


@pytest.mark.parametrize("seed", [141, 258])
def test_histories_that_went_wrong_once(seed):
    claims(seed)


def test_what_is_claimed_holds_and_something_is_claimed():
    found = sum((claims(seed) for seed in range(60)), Counter())
    for reason in (Reason.JUMPED_OVER, Reason.RESET_WHILE_EMPTY, Reason.EXPIRED):
        assert found[reason.value] >= 3, found
