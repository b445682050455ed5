"""A leader election, and a producer that asks for no acks at all."""

from lab.faults import KillBroker
from lab.scenario import SOME, Consumer, Expect, Producer, Scenario, Topic
from lab.steps import Acked, LeaderMoved, Start, Stop

SCENARIO = Scenario(
    name="election-acks-0",
    question="At most once: what does acks=0 lose when a leader dies?",
    topics=(Topic("events-0"),),
    producers=(
        Producer(
            "events",
            "events-0",
            messages=6000,
            per_second=300,
            acks="0",
            settings={"request.timeout.ms": "3000", "delivery.timeout.ms": "6000"},
        ),
    ),
    consumers=(Consumer("reader", "events-0", group="reader-0"),),
    steps=(
        Acked("events", 1000),
        Start(KillBroker(1)),
        LeaderMoved("events-0", (2, 3)),
        Acked("events", 500),
        Stop(KillBroker(1)),
    ),
    expect={"events": Expect(cause="fire_and_forget", lost_silent=SOME)},
)
