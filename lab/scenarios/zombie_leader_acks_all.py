"""A leader alone in its in-sync set stands still, another is elected, and it wakes and acks."""

from lab.faults import KillBroker, PauseBrokers
from lab.scenario import ANY, SOME, Consumer, Expect, Producer, Scenario, Topic
from lab.steps import Acked, Isr, LeaderMoved, Start, Stop

_PAUSE = PauseBrokers((1,))

SCENARIO = Scenario(
    name="zombie-leader-acks-all",
    question="Does acks=all help against a deposed leader that was alone in its in-sync set?",
    topics=(
        Topic(
            "stakes",
            ((1, 2),),
            {"unclean.leader.election.enable": "true", "min.insync.replicas": "1"},
        ),
    ),
    producers=(
        Producer(
            "stake",
            "stakes",
            messages=4000,
            per_second=80,
            # Patient: what was sent to the leader waits there until it wakes.
            settings={"request.timeout.ms": "60000", "delivery.timeout.ms": "120000"},
        ),
    ),
    consumers=(Consumer("croupier", "stakes", group="croupier"),),
    steps=(
        Acked("stake", 300),
        Start(KillBroker(2)),
        Isr("stakes", (1,)),
        Acked("stake", 200),
        Start(_PAUSE),
        Stop(KillBroker(2)),
        LeaderMoved("stakes", (2,)),
        Stop(_PAUSE),
        Acked("stake", 300),
    ),
    expect={
        "stake": Expect(
            cause="unclean_election",
            lost_after_ack=SOME,
            lost_told=ANY,
            ghosts=ANY,
            duplicated=ANY,
            out_of_order=ANY,
        )
    },
    missed={"croupier": ANY},
)
