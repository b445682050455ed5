"""Two members that commit ahead are killed at once, and come back one after the other."""

from lab.faults import KillClient
from lab.scenario import SOME, Consumer, Expect, Owed, Producer, Scenario, Topic
from lab.steps import Acked, Launch, Received, Seconds, Start

SCENARIO = Scenario(
    name="two-members-crash",
    question="What does a group miss that commits ahead, when all its members are killed at once?",
    topics=(Topic("parcels", ((1, 2, 3), (2, 3, 1)), {"min.insync.replicas": "2"}),),
    producers=(Producer("depot", "parcels", messages=4500, per_second=90),),
    consumers=(
        Consumer(
            "van-1", "parcels", group="vans", kind="python", commits="ahead", processing_ms=12
        ),
        Consumer(
            "van-2", "parcels", group="vans", kind="python", commits="ahead", processing_ms=12
        ),
        Consumer("office", "parcels", group="office"),
    ),
    steps=(
        Received("van-1", 250),
        Received("van-2", 250),
        Start(KillClient("van-1")),
        Start(KillClient("van-2")),
        # Until their sessions are over and the group is seen to be empty.
        Acked("depot", 1500),
        Launch("van-1"),
        Seconds(15),
        Launch("van-2"),
        Acked("depot", 300),
    ),
    expect={"depot": Expect()},
    owed={"vans": Owed(skipped=SOME, cause="commit_before_processing"), "office": Owed()},
)
