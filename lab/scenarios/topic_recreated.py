"""A topic is deleted and created again under a producer and a group."""

from lab.admin import RecreateTopic
from lab.scenario import ANY, SOME, Consumer, Expect, Producer, Scenario, Topic
from lab.steps import Acked, Do, Received

SCENARIO = Scenario(
    name="topic-recreated",
    question="Are messages of a topic that was deleted and created again lost?",
    topics=(Topic("drafts", settings={"min.insync.replicas": "2"}),),
    producers=(
        Producer(
            "editor",
            "drafts",
            messages=4000,
            per_second=80,
            settings={"metadata.max.age.ms": "5000"},
        ),
    ),
    consumers=(
        Consumer("preview", "drafts", group="preview", settings={"metadata.max.age.ms": "2000"}),
    ),
    steps=(
        Received("preview", 800),
        Do(RecreateTopic("drafts")),
        Acked("editor", 1200, within=120),
    ),
    # What is in flight when the topic goes may be told failed, or be stored in either.
    expect={
        "editor": Expect(
            cause="unknown", taken=SOME, lost_told=ANY, duplicated=ANY, out_of_order=ANY, ghosts=ANY
        )
    },
    missed={"preview": ANY},
)
