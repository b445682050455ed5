"""A replica that has fallen behind is made leader, and what it never had is cut off."""

from lab.faults import KillBroker
from lab.scenario import ANY, SOME, Consumer, Expect, Producer, Scenario, Topic
from lab.steps import Acked, Isr, LeaderMoved, Start, Stop

SCENARIO = Scenario(
    name="unclean-election",
    question="What does an unclean leader election take away from a producer with acks=all?",
    topics=(
        Topic(
            "balances",
            replicas=((1, 2),),
            settings={"unclean.leader.election.enable": "true", "min.insync.replicas": "1"},
        ),
    ),
    producers=(
        Producer(
            "balance",
            "balances",
            messages=5000,
            per_second=100,
            settings={"request.timeout.ms": "5000", "delivery.timeout.ms": "60000"},
        ),
    ),
    consumers=(Consumer("accounts", "balances", group="accounts"),),
    steps=(
        Acked("balance", 300),
        Start(KillBroker(2)),
        Isr("balances", (1,)),
        Acked("balance", 300),
        Start(KillBroker(1)),
        Stop(KillBroker(2)),
        LeaderMoved("balances", (2,)),
        Acked("balance", 300),
        Stop(KillBroker(1)),
    ),
    # A group that had read past the cut goes on from there: what was written below is passed over.
    expect={"balance": Expect(cause="unclean_election", lost_after_ack=SOME, out_of_order=ANY)},
    missed={"accounts": ANY},
)
