"""A member of a group stands still for longer than its session lasts, and wakes."""

from lab.faults import PauseClient
from lab.scenario import Consumer, Expect, Owed, Producer, Scenario, Topic
from lab.steps import Acked, Received, Start, Stop

_FROZEN = PauseClient("picker-1")

SCENARIO = Scenario(
    name="frozen-member",
    question="Does a group miss anything when a member loses its partitions in its sleep?",
    topics=(
        Topic(
            "shelves", ((1, 2, 3), (2, 3, 1), (3, 1, 2), (1, 3, 2)), {"min.insync.replicas": "2"}
        ),
    ),
    producers=(Producer("intake", "shelves", messages=4500, per_second=90),),
    consumers=(
        Consumer("picker-1", "shelves", group="pickers"),
        Consumer(
            "picker-2",
            "shelves",
            group="pickers",
            kind="python",
            settings={"isolation.level": "read_uncommitted"},
        ),
    ),
    steps=(
        Received("picker-1", 200),
        Received("picker-2", 200),
        Start(_FROZEN),
        Acked("intake", 1500),
        Stop(_FROZEN),
        Acked("intake", 600),
    ),
    expect={"intake": Expect()},
    owed={"pickers": Owed()},
)
