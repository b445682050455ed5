"""Acked by the leader alone, and the leader dies before the followers have it."""

from lab.faults import KillBroker, PauseBrokers
from lab.scenario import ANY, SOME, Consumer, Expect, Producer, Scenario, Topic
from lab.steps import Acked, LeaderMoved, Seconds, Start, Stop

SCENARIO = Scenario(
    name="acks-1-leader-crash",
    question="With acks=1, what is lost when the leader crashes right after its acks?",
    topics=(Topic("payments"),),
    producers=(
        Producer(
            "pay",
            "payments",
            messages=4000,
            per_second=200,
            acks="1",
            settings={"request.timeout.ms": "4000", "delivery.timeout.ms": "30000"},
        ),
    ),
    consumers=(Consumer("billing", "payments", group="billing"),),
    steps=(
        Acked("pay", 600),
        Start(PauseBrokers((2, 3))),
        Seconds(0.5),
        Acked("pay", 200, within=2.0, or_go_on=True),
        Start(KillBroker(1)),
        Stop(PauseBrokers((2, 3))),
        LeaderMoved("payments", (2, 3)),
        Acked("pay", 300),
        Stop(KillBroker(1)),
    ),
    # Without acks from all there is no idempotence: retries may double and overtake.
    expect={
        "pay": Expect(
            cause="acks_1_leader_change", lost_after_ack=SOME, duplicated=ANY, out_of_order=ANY
        )
    },
)
