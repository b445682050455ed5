"""A user's day in three minutes: healthy without an alert, then one outage, one page per owner.

The full day, with five faults and their recovery, is in `test_journey.py`.
Both are run by `make soak PART=journey`.
"""

from __future__ import annotations

from functools import partial

import pytest

from lab.cluster import cluster
from lab.steps import wait_until
from tests.journey.applications import PRODUCERS, Applications
from tests.journey.day import Fault, complaints, journey, refused
from tests.journey.faults import stop_broker
from tests.journey.operation import Pace

OUTAGE = Fault(
    "a broker is gone for 35 s",
    partial(stop_broker, broker=3, seconds=35),
    frozenset({"shop", "web"}),
    frozenset({"platform"}),
    {"shop": frozenset({"payments"}), "web": frozenset({"clicks"})},
    "3",
    "Bring the missing replicas back",
    refused,
)
QUICK_SCAN = "settle_s = 5\ninterval_s = 5\n"


@pytest.fixture
def nodes():
    """A cluster of its own: the checks look at every topic, and other tests have some."""
    with cluster() as running:
        yield running


@pytest.mark.timeout(900)
def test_one_page_for_each_owner_and_accounts_that_agree_with_the_applications(nodes, tmp_path):
    producers = [p for p in PRODUCERS if p.acks == "all"]
    applications = Applications(nodes, tmp_path / "applications", producers)
    with journey(applications, Pace(45, 15, QUICK_SCAN)) as day:
        wait_until(lambda: "Updated other jobs" in day.operation.said("watch"), 240, pause=1)
        healthy = day.stay_healthy(15)
        seen = day.break_down(OUTAGE, told_within=240)
        truth = day.truth()
        accounts = day.accounts(truth, 240)
        lost = truth.lost_told["payments-api"]
        page = lambda: next(a for a in day.operation.alerts() if a.owner == "shop")  # noqa: E731
        wait_until(lambda: page().lost == lost, 120, pause=1)
        day.operation.acknowledge_losses()
        shop = page()
    assert [(p.severity, p.fault, p.texts[-1].get("summary")) for p in healthy] == []
    assert complaints([seen]) == []
    assert accounts == truth.summary()
    assert truth.lost_told["payments-api"] > 0
    assert shop.lost == shop.acknowledged == lost
    assert day.operation.unexpected() == []
