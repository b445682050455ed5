"""A leader election, and a producer content with the leader's own ack."""

from lab.faults import KillBroker
from lab.scenario import ANY, Consumer, Expect, Producer, Scenario, Topic
from lab.steps import Acked, LeaderMoved, Start, Stop

SCENARIO = Scenario(
    name="election-acks-1",
    question="What does acks=1 lose when a leader dies in the middle of its work?",
    topics=(Topic("events-1"),),
    producers=(
        Producer(
            "events",
            "events-1",
            messages=6000,
            per_second=300,
            acks="1",
            settings={"request.timeout.ms": "4000", "delivery.timeout.ms": "30000"},
        ),
    ),
    consumers=(Consumer("reader", "events-1", group="reader-1"),),
    steps=(
        Acked("events", 1000),
        Start(KillBroker(1)),
        LeaderMoved("events-1", (2, 3)),
        Acked("events", 500),
        Stop(KillBroker(1)),
    ),
    expect={
        "events": Expect(
            cause="acks_1_leader_change", lost_after_ack=ANY, duplicated=ANY, out_of_order=ANY
        )
    },
)
