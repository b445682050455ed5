"""A topic is deleted and created again, twice, under a Java and a librdkafka producer."""

from lab.admin import RecreateTopic
from lab.scenario import ANY, SOME, Consumer, Expect, Producer, Scenario, Topic
from lab.steps import Acked, Do, Received

_EXPECT = Expect(
    cause="unknown", taken=SOME, lost_told=ANY, duplicated=ANY, out_of_order=ANY, ghosts=ANY
)

SCENARIO = Scenario(
    name="recreated-under-two-clients",
    question="Are messages lost to a group or a log when their topic is created again, twice?",
    topics=(Topic("sketches", ((1, 2, 3), (2, 3, 1)), {"min.insync.replicas": "2"}),),
    producers=(
        Producer(
            "pencil",
            "sketches",
            messages=4000,
            per_second=60,
            acks="1",
            settings={"metadata.max.age.ms": "3000"},
        ),
        Producer(
            "brush",
            "sketches",
            messages=4000,
            per_second=60,
            kind="python",
            settings={"topic.metadata.refresh.interval.ms": "3000"},
        ),
    ),
    consumers=(
        Consumer("album", "sketches", group="album", settings={"metadata.max.age.ms": "2000"}),
    ),
    steps=(
        Received("album", 800),
        Do(RecreateTopic("sketches")),
        Acked("pencil", 400, within=120),
        Acked("brush", 300, within=120),
        Do(RecreateTopic("sketches")),
        Acked("pencil", 600, within=120),
        Acked("brush", 300, within=120),
    ),
    # What is in flight when the topic goes may be told failed, or be stored in either.
    expect={"pencil": _EXPECT, "brush": _EXPECT},
    missed={"album": ANY},
)
