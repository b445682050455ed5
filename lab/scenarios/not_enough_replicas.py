"""Fewer replicas in sync than the topic demands, and a producer with five retries."""

from lab.faults import KillBroker
from lab.scenario import ANY, SOME, Consumer, Expect, Producer, Scenario, Topic
from lab.steps import Acked, Failed, Start, Stop

SCENARIO = Scenario(
    name="not-enough-replicas",
    question="With min.insync.replicas unmet and retries=5, when does the application hear of it?",
    topics=(Topic("transfers", settings={"min.insync.replicas": "3"}),),
    producers=(
        Producer(
            "transfer",
            "transfers",
            messages=4000,
            per_second=100,
            retries=5,
            settings={
                "linger.ms": "500",
                "retry.backoff.ms": "300",
                "retry.backoff.max.ms": "300",
                "request.timeout.ms": "6000",
                "delivery.timeout.ms": "15000",
            },
        ),
    ),
    consumers=(Consumer("settlement", "transfers", group="settlement"),),
    steps=(
        Acked("transfer", 300),
        Start(KillBroker(3)),
        Failed("transfer", 200),
        Stop(KillBroker(3)),
    ),
    # What the leader had appended when a follower died is reported failed, and stays: ghosts.
    expect={"transfer": Expect(cause="retries_exhausted", lost_told=SOME, ghosts=ANY)},
)
