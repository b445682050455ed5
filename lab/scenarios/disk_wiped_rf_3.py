"""The disk of a broker is replaced, and two others have the same records."""

from lab.admin import ElectPreferred, WipeBroker
from lab.faults import StopBroker
from lab.scenario import Consumer, Expect, Producer, Scenario, Topic
from lab.steps import Acked, Do, InSync, LeaderMoved, Start, Stop

SCENARIO = Scenario(
    name="disk-wiped-rf-3",
    question="Is anything lost when the disk of one of three replicas is wiped?",
    topics=(Topic("avatars", ((3, 1, 2),), {"min.insync.replicas": "2"}),),
    producers=(Producer("upload", "avatars", messages=5000, per_second=80),),
    consumers=(Consumer("profile", "avatars", group="profile"),),
    steps=(
        Acked("upload", 600),
        Start(StopBroker(3)),
        Do(WipeBroker(3)),
        LeaderMoved("avatars", (1, 2)),
        Acked("upload", 400),
        Stop(StopBroker(3)),
        InSync(),
        Do(ElectPreferred("avatars")),
        LeaderMoved("avatars", (3,)),
        Acked("upload", 300),
    ),
    expect={"upload": Expect()},
)
