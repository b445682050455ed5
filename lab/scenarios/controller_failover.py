"""The active controller dies."""

from lab.faults import KillController
from lab.scenario import Consumer, Expect, Producer, Scenario, Topic
from lab.steps import Acked, Start, Stop

SCENARIO = Scenario(
    name="controller-failover",
    question="Does the death of the active controller lose anything with default settings?",
    topics=(Topic("rides", ((1, 2, 3), (2, 3, 1), (3, 1, 2)), {"min.insync.replicas": "2"}),),
    producers=(Producer("ride", "rides", messages=4000, per_second=150),),
    consumers=(Consumer("maps", "rides", group="maps"),),
    steps=(
        Acked("ride", 500),
        Start(KillController()),
        Acked("ride", 1500),
        Stop(KillController()),
    ),
    expect={"ride": Expect()},
)
