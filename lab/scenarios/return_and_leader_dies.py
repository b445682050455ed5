"""A broker returns, and the leader dies before it has caught up."""

from lab.faults import KillBroker, LaunchBroker
from lab.scenario import ANY, SOME, Consumer, Expect, Producer, Scenario, Topic
from lab.steps import Acked, Do, Isr, LeaderMoved, Seconds, Start, Stop

_SETTINGS = {"request.timeout.ms": "5000", "delivery.timeout.ms": "90000"}

SCENARIO = Scenario(
    name="return-and-leader-dies",
    question="What is lost when the leader dies just as the other replica comes back?",
    topics=(
        Topic(
            "loose",
            ((1, 2),),
            {"unclean.leader.election.enable": "true", "min.insync.replicas": "1"},
        ),
        Topic(
            "strict",
            ((1, 2),),
            {"unclean.leader.election.enable": "false", "min.insync.replicas": "1"},
        ),
    ),
    producers=(
        Producer("fast", "loose", messages=5000, per_second=100, settings=_SETTINGS),
        Producer("safe", "strict", messages=5000, per_second=100, settings=_SETTINGS),
    ),
    consumers=(
        Consumer("reads-loose", "loose", group="reads-loose"),
        Consumer("reads-strict", "strict", group="reads-strict"),
    ),
    steps=(
        Acked("fast", 300),
        Acked("safe", 100),
        Start(KillBroker(2)),
        Isr("loose", (1,)),
        Isr("strict", (1,)),
        Acked("fast", 300),
        Acked("safe", 100),
        Do(LaunchBroker(2)),
        Start(KillBroker(1)),
        Stop(KillBroker(2)),
        LeaderMoved("loose", (2,)),
        Acked("fast", 200),
        Seconds(3),
        Stop(KillBroker(1)),
        LeaderMoved("strict", (1,)),
        Acked("safe", 200),
    ),
    expect={
        "fast": Expect(cause="unclean_election", lost_after_ack=SOME, out_of_order=ANY),
        "safe": Expect(),
    },
    missed={"reads-loose": ANY},
)
