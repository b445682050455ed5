"""A user's day on a real cluster: healthy without an alert, then one page per owner and fault."""

from __future__ import annotations

from functools import partial

import pytest

from acktrail.settings.sources import LogScanSource
from lab.cluster import cluster
from tests.journey.applications import Applications
from tests.journey.day import STOCK_RULES, Fault, Journey, complaints, journey, refused
from tests.journey.faults import (
    lose_acknowledged,
    return_slowly,
    stop_broker,
    stop_until_given_up,
)
from tests.journey.operation import Pace

SETTLE_S = int(LogScanSource.model_fields["settle_s"].default)
BOTH = frozenset({"shop", "web"})
OUT = "Bring the missing replicas back"
ALL = {"shop": frozenset({"orders", "payments"}), "web": frozenset({"clicks"})}


def lost_and_settled(day: Journey, _began_ms: int) -> dict[str, int]:
    """When the last ack that was lost had been there for as long as scans wait."""
    return {"web": day.applications.marks["died"] + SETTLE_S * 1000}


FAULTS = (
    Fault(
        "a broker is gone for 75 s",
        partial(stop_broker, broker=3, seconds=75),
        BOTH,
        frozenset({"platform"}),
        ALL,
        "3",
        OUT,
        proven=refused,
    ),
    Fault(
        "a broker is gone until producers give up",
        partial(stop_until_given_up, broker=3, producer="orders-api"),
        BOTH,
        frozenset({"platform"}),
        ALL,
        "3",
        OUT,
        proven=refused,
    ),
    Fault(
        "acknowledged by a leader alone",
        partial(lose_acknowledged, producer="views-api", topic="views"),
        frozenset({"web"}),
        frozenset(),
        {"web": frozenset({"views"})},
        "1",
        "acks=all",
        proven=lost_and_settled,
    ),
    Fault(
        "a group skips",
        lambda applications: applications.skip("billing", 150),
        frozenset({"shop"}),
        frozenset({"platform", "web"}),
        {"shop": frozenset({"payments"})},
        proven=lambda day, _began: {"shop": day.applications.marks["skipped"]},
    ),
    Fault(
        "a broker returns slowly",
        partial(return_slowly, broker=3, away_s=30, slow_s=60),
        BOTH,
        frozenset({"platform"}),
        ALL,
        "3",
        OUT,
        proven=refused,
    ),
)


@pytest.mark.timeout(3600)
def test_the_whole_journey(tmp_path):
    with (
        cluster(broker_rules=STOCK_RULES) as nodes,
        journey(Applications(nodes, tmp_path / "applications"), Pace(120, 20)) as day,
    ):
        healthy = day.stay_healthy(180)
        for fault in FAULTS:
            day.meet(fault, over_within=420, quiet_s=75)
        truth = day.truth()
        accounts = day.accounts(truth, 300)
        rounds = day.operation.rounds()
    print(truth.summary(), accounts, *rounds, sep="\n")
    assert [(p.severity, p.fault, p.texts[-1].get("summary")) for p in healthy] == []
    assert complaints(day.seen) == []
    assert accounts == truth.summary()
    assert day.operation.unexpected() == []
