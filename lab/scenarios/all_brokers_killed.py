"""The power of the whole cluster fails, and all brokers come back."""

from lab.faults import KillBroker, LaunchBroker
from lab.scenario import ANY, Consumer, Expect, Producer, Scenario, Topic
from lab.steps import Acked, Do, InSync, Seconds, Start, Stop

_TOPIC = ((1, 2, 3), (2, 3, 1), (3, 1, 2))

SCENARIO = Scenario(
    name="all-brokers-killed",
    question="What is lost when all brokers are killed at once and start again?",
    topics=(
        Topic("deeds", _TOPIC, {"min.insync.replicas": "2"}),
        Topic("views", _TOPIC, {"min.insync.replicas": "1"}),
    ),
    producers=(
        Producer("notary", "deeds", messages=4000, per_second=80),
        Producer("visitor", "views", messages=4000, per_second=80, acks="1"),
    ),
    consumers=(
        Consumer("registry", "deeds", group="registry"),
        Consumer("counter", "views", group="counter"),
    ),
    steps=(
        Acked("notary", 400),
        Acked("visitor", 100),
        Start(KillBroker(1)),
        Start(KillBroker(2)),
        Start(KillBroker(3)),
        Seconds(2),
        Do(LaunchBroker(3)),
        Do(LaunchBroker(2)),
        Do(LaunchBroker(1)),
        Stop(KillBroker(1)),
        Stop(KillBroker(2)),
        Stop(KillBroker(3)),
        InSync(),
        Acked("notary", 300),
        Acked("visitor", 300),
    ),
    expect={
        "notary": Expect(),
        # The last acks may be of the leader alone.
        "visitor": Expect(
            cause="acks_1_leader_change", lost_after_ack=ANY, duplicated=ANY, out_of_order=ANY
        ),
    },
    missed={"counter": ANY},
)
