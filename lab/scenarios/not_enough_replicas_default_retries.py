"""Fewer replicas in sync than the topic demands, and default retries: only the time runs out."""

from lab.faults import KillBroker
from lab.scenario import ANY, SOME, Consumer, Expect, Producer, Scenario, Topic
from lab.steps import Acked, Failed, Start, Stop

SCENARIO = Scenario(
    name="not-enough-replicas-default-retries",
    question="With min.insync.replicas unmet and default retries, what ends the retrying?",
    topics=(Topic("transfers-default", settings={"min.insync.replicas": "3"}),),
    producers=(
        Producer(
            "transfer",
            "transfers-default",
            messages=4000,
            per_second=100,
            settings={"request.timeout.ms": "4000", "delivery.timeout.ms": "12000"},
        ),
    ),
    consumers=(Consumer("settlement", "transfers-default", group="settlement-default"),),
    steps=(
        Acked("transfer", 300),
        Start(KillBroker(3)),
        Failed("transfer", 200),
        Stop(KillBroker(3)),
    ),
    # What the leader had appended when a follower died is reported failed, and stays: ghosts.
    expect={"transfer": Expect(cause="delivery_timeout", lost_told=SOME, ghosts=ANY)},
)
