"""An admin deletes records that one group has read, and others have not."""

from lab.admin import DeleteRecords
from lab.faults import StopClient
from lab.scenario import SOME, Consumer, Expect, Owed, Producer, Scenario, Topic
from lab.steps import Acked, Do, Launch, Received, Start

SCENARIO = Scenario(
    name="records-deleted",
    question="What do groups miss when records are deleted before they have read them?",
    topics=(Topic("clicks", ((1, 2, 3), (2, 3, 1)), {"min.insync.replicas": "2"}),),
    producers=(Producer("click", "clicks", messages=5000, per_second=120),),
    consumers=(
        Consumer("quick", "clicks", group="quick"),
        Consumer("slow", "clicks", group="slow"),
        Consumer("off", "clicks", group="off", kind="python"),
    ),
    steps=(
        Received("slow", 300),
        Received("off", 300),
        Start(StopClient("slow")),
        Start(StopClient("off")),
        Acked("click", 1200),
        Received("quick", 1500),
        Do(DeleteRecords("clicks", keep=300, partition=0)),
        Do(DeleteRecords("clicks", keep=300, partition=1)),
        Launch("slow"),
        Acked("click", 300),
        Launch("off"),
    ),
    expect={"click": Expect(taken=SOME)},
    owed={
        "quick": Owed(),
        "slow": Owed(expired=SOME, cause="retention"),
        "off": Owed(expired=SOME, cause="retention"),
    },
)
