"""A leader election, and a producer that waits for all replicas in sync."""

from lab.faults import KillBroker
from lab.scenario import Consumer, Expect, Producer, Scenario, Topic
from lab.steps import Acked, LeaderMoved, Start, Stop

SCENARIO = Scenario(
    name="election-acks-all",
    question="At least once: what does acks=all with idempotence lose when a leader dies?",
    topics=(Topic("events-all"),),
    producers=(
        Producer(
            "events",
            "events-all",
            messages=6000,
            per_second=300,
            acks="all",
            settings={"request.timeout.ms": "4000", "delivery.timeout.ms": "30000"},
        ),
    ),
    consumers=(Consumer("reader", "events-all", group="reader-all"),),
    steps=(
        Acked("events", 1000),
        Start(KillBroker(1)),
        LeaderMoved("events-all", (2, 3)),
        Acked("events", 500),
        Stop(KillBroker(1)),
    ),
    expect={"events": Expect()},
)
