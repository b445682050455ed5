"""All brokers are restarted one after the other, as every upgrade does."""

from lab.faults import RollingRestart
from lab.scenario import Consumer, Expect, Producer, Scenario, Topic
from lab.steps import Acked, Start, Stop

SCENARIO = Scenario(
    name="rolling-restart",
    question="Does a rolling restart lose anything with default settings?",
    topics=(Topic("trips", ((1, 2, 3), (2, 3, 1), (3, 1, 2)), {"min.insync.replicas": "2"}),),
    producers=(Producer("trip", "trips", messages=9000, per_second=150),),
    consumers=(Consumer("dispatch", "trips", group="dispatch"),),
    steps=(Acked("trip", 300), Start(RollingRestart()), Stop(RollingRestart())),
    expect={"trip": Expect()},
)
