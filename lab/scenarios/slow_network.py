"""Every response is half a second late for half a minute."""

from lab.faults import Network
from lab.scenario import Consumer, Expect, Producer, Scenario, Topic
from lab.steps import Acked, Seconds, Start, Stop

_SLOW = Network("delay_s", value=0.5)

SCENARIO = Scenario(
    name="slow-network",
    question="Does a slow network lose anything with default settings?",
    topics=(Topic("quotes", ((1, 2, 3), (2, 3, 1)), {"min.insync.replicas": "2"}),),
    producers=(Producer("market", "quotes", messages=4000, per_second=100),),
    consumers=(Consumer("trader", "quotes", group="trader"),),
    steps=(Acked("market", 500), Start(_SLOW), Seconds(30), Stop(_SLOW), Acked("market", 300)),
    expect={"market": Expect()},
)
