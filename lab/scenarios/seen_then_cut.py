"""A group receives records, acts on them, and an unclean election cuts them off."""

from lab.faults import KillBroker
from lab.scenario import ANY, SOME, Consumer, Expect, Producer, Scenario, Topic
from lab.steps import Acked, Isr, LeaderMoved, Received, Start, Stop

SCENARIO = Scenario(
    name="seen-then-cut",
    question="Are records still in the log because a group has received them?",
    topics=(
        Topic(
            "shipments",
            ((1, 2),),
            {"unclean.leader.election.enable": "true", "min.insync.replicas": "1"},
        ),
    ),
    producers=(
        Producer(
            "ship",
            "shipments",
            messages=4000,
            per_second=80,
            settings={"request.timeout.ms": "5000", "delivery.timeout.ms": "60000"},
        ),
    ),
    consumers=(Consumer("carrier", "shipments", group="carrier"),),
    steps=(
        Acked("ship", 300),
        Start(KillBroker(2)),
        Isr("shipments", (1,)),
        Acked("ship", 400),
        Received("carrier", 700),
        Start(KillBroker(1)),
        Stop(KillBroker(2)),
        LeaderMoved("shipments", (2,)),
        Acked("ship", 300),
        Stop(KillBroker(1)),
    ),
    expect={
        "ship": Expect(cause="unclean_election", lost_after_ack=SOME, cut=SOME, out_of_order=ANY)
    },
    missed={"carrier": ANY},
)
