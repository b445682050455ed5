"""Three producers of one topic, with acks 0, 1 and all, meet a leader that dies ahead of all."""

from lab.faults import KillBroker, PauseBrokers
from lab.scenario import ANY, SOME, Consumer, Expect, Producer, Scenario, Topic
from lab.steps import Acked, LeaderMoved, Seconds, Start, Stop

_SETTINGS = {"request.timeout.ms": "5000", "delivery.timeout.ms": "60000"}

SCENARIO = Scenario(
    name="acks-0-1-all",
    question="Which of three producers of one topic loses what, when its leader dies?",
    topics=(Topic("trades", settings={"min.insync.replicas": "2"}),),
    producers=(
        Producer("ticker", "trades", 4000, 80, acks="0", settings=_SETTINGS),
        Producer("broker", "trades", 4000, 80, acks="1", settings=_SETTINGS),
        Producer("clearing", "trades", 4000, 80, acks="all", settings=_SETTINGS),
    ),
    consumers=(Consumer("tape", "trades", group="tape"),),
    steps=(
        Acked("broker", 400),
        Acked("clearing", 100),
        Start(PauseBrokers((2, 3))),
        Seconds(0.5),
        Acked("broker", 100, within=2.0, or_go_on=True),
        Start(KillBroker(1)),
        Stop(PauseBrokers((2, 3))),
        LeaderMoved("trades", (2, 3)),
        Acked("broker", 300),
        Acked("clearing", 300),
        Stop(KillBroker(1)),
    ),
    expect={
        "ticker": Expect(cause="fire_and_forget", lost_silent=SOME),
        "broker": Expect(
            cause="acks_1_leader_change", lost_after_ack=SOME, duplicated=ANY, out_of_order=ANY
        ),
        "clearing": Expect(),
    },
    missed={"tape": ANY},
)
