"""The disk of a leader fills up, and the broker ends."""

from lab.admin import ElectPreferred
from lab.disks import FullDisk, SmallDisk
from lab.faults import StopBroker
from lab.scenario import Consumer, Expect, Producer, Scenario, Topic
from lab.steps import Acked, Do, InSync, LeaderMoved, Start, Stop

_FULL = FullDisk(1)

SCENARIO = Scenario(
    name="full-disk",
    question="Is anything lost when the disk of a leader is full?",
    topics=(Topic("frames", ((1, 2, 3),), {"min.insync.replicas": "2"}),),
    producers=(Producer("camera", "frames", messages=7000, per_second=80),),
    consumers=(Consumer("viewer", "frames", group="viewer"),),
    steps=(
        Acked("camera", 200),
        Start(StopBroker(1)),
        Start(SmallDisk(1)),
        Stop(StopBroker(1)),
        InSync(),
        Do(ElectPreferred("frames")),
        LeaderMoved("frames", (1,)),
        Acked("camera", 300),
        Start(_FULL),
        LeaderMoved("frames", (2, 3), within=120),
        Acked("camera", 300),
        Stop(_FULL),
        InSync(),
        Acked("camera", 200),
    ),
    expect={"camera": Expect()},
)
