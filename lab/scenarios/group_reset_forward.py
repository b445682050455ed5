"""An admin moves the commit of an empty group forward."""

from lab.admin import ResetGroup
from lab.faults import StopClient
from lab.scenario import SOME, Consumer, Expect, Owed, Producer, Scenario, Topic
from lab.steps import Acked, Do, Launch, Received, Start

SCENARIO = Scenario(
    name="group-reset-forward",
    question="What does a group miss whose commit was moved forward while it was empty?",
    topics=(Topic("leads", settings={"min.insync.replicas": "2"}),),
    producers=(Producer("form", "leads", messages=4000, per_second=80),),
    consumers=(
        Consumer("importer", "leads", group="importer"),
        Consumer("reporting", "leads", group="reporting"),
    ),
    steps=(
        Received("importer", 400),
        Start(StopClient("importer")),
        Acked("form", 900),
        Do(ResetGroup("importer", "leads", by=600)),
        Launch("importer"),
        Acked("form", 300),
    ),
    expect={"form": Expect()},
    owed={"importer": Owed(skipped=SOME, cause="consumer_reset"), "reporting": Owed()},
)
