"""An admin moves a group back, so that it reads again, and later forward over what it has read."""

from lab.admin import ResetGroup
from lab.faults import StopClient
from lab.scenario import SOME, Consumer, Expect, Owed, Producer, Scenario, Topic
from lab.steps import Acked, Do, Launch, Received, Seconds, Start

SCENARIO = Scenario(
    name="reset-back-and-forward",
    question="What does a group miss that is moved back, stopped early, and moved forward again?",
    topics=(Topic("votes", settings={"min.insync.replicas": "2"}),),
    producers=(Producer("booth", "votes", messages=4500, per_second=80),),
    consumers=(Consumer("tally", "votes", group="tally", kind="python", processing_ms=4),),
    steps=(
        Received("tally", 800),
        Start(StopClient("tally")),
        Do(ResetGroup("tally", "votes", by=-700)),
        Seconds(5),
        Launch("tally"),
        Received("tally", 1000),
        Start(StopClient("tally")),
        # Over what it had read before, and over some that it had not.
        Acked("booth", 600),
        Do(ResetGroup("tally", "votes", by=1200)),
        Seconds(5),
        Launch("tally"),
        Acked("booth", 300),
    ),
    expect={"booth": Expect()},
    owed={"tally": Owed(skipped=SOME, cause="consumer_reset")},
)
