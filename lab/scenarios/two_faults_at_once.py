"""One broker dies, and two topics lose by it for two reasons at the same moment."""

from lab.faults import KillBroker, PauseBrokers
from lab.scenario import ANY, SOME, Consumer, Expect, Producer, Scenario, Topic
from lab.steps import Acked, Isr, LeaderMoved, Seconds, Start, Stop

SCENARIO = Scenario(
    name="two-faults-at-once",
    question="Does each loss get its own cause when two topics lose by the death of one broker?",
    topics=(
        Topic(
            "stocks",
            ((1, 2),),
            {"unclean.leader.election.enable": "true", "min.insync.replicas": "1"},
        ),
        Topic("orders", ((1, 3),)),
    ),
    producers=(
        Producer(
            "stock",
            "stocks",
            messages=4000,
            per_second=80,
            settings={"request.timeout.ms": "5000", "delivery.timeout.ms": "60000"},
        ),
        Producer(
            "order",
            "orders",
            messages=4000,
            per_second=80,
            acks="1",
            settings={"request.timeout.ms": "5000", "delivery.timeout.ms": "60000"},
        ),
    ),
    consumers=(
        Consumer("warehouse", "stocks", group="warehouse"),
        Consumer("billing", "orders", group="billing"),
    ),
    steps=(
        Acked("stock", 300),
        Acked("order", 100),
        Start(KillBroker(2)),
        Isr("stocks", (1,)),
        Acked("stock", 200),
        Start(PauseBrokers((3,))),
        Seconds(0.5),
        Acked("order", 100, within=2.5, or_go_on=True),
        Start(KillBroker(1)),
        Stop(PauseBrokers((3,))),
        Stop(KillBroker(2)),
        LeaderMoved("orders", (3,)),
        LeaderMoved("stocks", (2,)),
        Acked("order", 200),
        Acked("stock", 200),
        Stop(KillBroker(1)),
    ),
    expect={
        "stock": Expect(cause="unclean_election", lost_after_ack=SOME, out_of_order=ANY),
        "order": Expect(
            cause="acks_1_leader_change", lost_after_ack=SOME, duplicated=ANY, out_of_order=ANY
        ),
    },
    missed={"warehouse": ANY, "billing": ANY},
)
