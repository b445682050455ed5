"""Members of a group are killed, stopped and started while it reads six partitions."""

from lab.faults import KillClient, StopClient
from lab.scenario import Consumer, Expect, Owed, Producer, Scenario, Topic
from lab.steps import Acked, Launch, Received, Seconds, Start

SCENARIO = Scenario(
    name="rebalances",
    question="Does a group miss anything while its members come and go?",
    topics=(
        Topic(
            "jobs",
            ((1, 2, 3), (2, 3, 1), (3, 1, 2), (1, 3, 2), (2, 1, 3), (3, 2, 1)),
            {"min.insync.replicas": "2"},
        ),
    ),
    producers=(Producer("scheduler", "jobs", messages=6000, per_second=90),),
    consumers=(
        Consumer("worker-1", "jobs", group="workers"),
        Consumer("worker-2", "jobs", group="workers"),
        Consumer("worker-4", "jobs", group="workers", starts_later=True),
    ),
    steps=(
        Acked("scheduler", 500),
        Launch("worker-4"),
        Received("worker-4", 100),
        Start(KillClient("worker-1")),
        Acked("scheduler", 600),
        Start(StopClient("worker-2")),
        Acked("scheduler", 300),
        Launch("worker-2"),
        Launch("worker-1"),
        Seconds(10),
    ),
    expect={"scheduler": Expect()},
    owed={"workers": Owed()},
)
