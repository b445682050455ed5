"""The active controller dies, and its replica is one that min.insync.replicas demands."""

from lab.faults import KillController
from lab.scenario import ANY, SOME, Consumer, Expect, Producer, Scenario, Topic
from lab.steps import Acked, Failed, Start, Stop

_DEAD = KillController()
_IMPATIENT = {"request.timeout.ms": "3000", "delivery.timeout.ms": "8000"}

SCENARIO = Scenario(
    name="controller-dies-below-min-isr",
    question="What is lost when the death of the controller leaves too few replicas in sync?",
    topics=(
        Topic("wires", ((1, 2, 3), (2, 3, 1), (3, 1, 2)), {"min.insync.replicas": "3"}),
        Topic("quotes", ((1, 2, 3), (2, 3, 1), (3, 1, 2)), {"min.insync.replicas": "2"}),
    ),
    producers=(
        Producer("wire", "wires", messages=3000, per_second=80, settings=_IMPATIENT),
        Producer("quote", "quotes", messages=4000, per_second=80),
    ),
    consumers=(
        Consumer("bank", "wires", group="bank"),
        Consumer("desk", "quotes", group="desk"),
    ),
    steps=(
        Acked("wire", 300),
        Acked("quote", 100),
        Start(_DEAD),
        Failed("wire", 200),
        Stop(_DEAD),
    ),
    # What the leader had appended when the replica died is told failed, and is in the log.
    expect={
        "wire": Expect(cause="delivery_timeout", lost_told=SOME, ghosts=ANY, out_of_order=ANY),
        "quote": Expect(),
    },
)
