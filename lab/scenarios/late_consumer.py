"""A consumer stands still for a minute, and then goes on."""

from lab.faults import PauseClient
from lab.scenario import Consumer, Expect, Producer, Scenario, Topic
from lab.steps import Acked, Seconds, Start, Stop

_PAUSE = PauseClient("report")

SCENARIO = Scenario(
    name="late-consumer",
    question="Is anything lost when a consumer is a minute late?",
    topics=(Topic("readings", settings={"min.insync.replicas": "2"}),),
    producers=(Producer("meter", "readings", messages=4000, per_second=60),),
    consumers=(Consumer("report", "readings", group="report"),),
    steps=(Acked("meter", 300), Start(_PAUSE), Seconds(60), Stop(_PAUSE)),
    expect={"meter": Expect()},
)
