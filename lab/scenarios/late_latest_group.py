"""A group that begins at the end of the log, long after the producer began."""

from lab.faults import StopClient
from lab.scenario import Consumer, Expect, Owed, Producer, Scenario, Topic
from lab.steps import Acked, Launch, Received, Start

SCENARIO = Scenario(
    name="late-latest-group",
    question="Is a group that begins at the end of the log owed what was there before it?",
    topics=(Topic("events", ((1, 2, 3), (2, 3, 1)), {"min.insync.replicas": "2"}),),
    producers=(Producer("tracker", "events", messages=4000, per_second=80),),
    consumers=(
        Consumer("store", "events", group="store"),
        Consumer("alerting", "events", group="alerting", reset="latest", starts_later=True),
    ),
    steps=(
        Acked("tracker", 1000),
        Launch("alerting"),
        Received("alerting", 500),
        Start(StopClient("alerting")),
        Acked("tracker", 400),
        Launch("alerting"),
    ),
    expect={"tracker": Expect()},
    owed={"store": Owed(), "alerting": Owed()},
)
