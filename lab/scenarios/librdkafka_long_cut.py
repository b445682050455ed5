"""A librdkafka producer is cut off for longer than Java's budget, and shorter than its own."""

from lab.faults import Network
from lab.scenario import ANY, Consumer, Expect, Producer, Scenario, Topic
from lab.steps import Acked, Seconds, Start, Stop

_CUT = Network("refused")

SCENARIO = Scenario(
    name="librdkafka-long-cut",
    question="Does librdkafka lose anything in a cut of 140 s, which would exhaust a Java client?",
    topics=(Topic("samples", settings={"min.insync.replicas": "2"}),),
    producers=(Producer("sensor", "samples", messages=800, per_second=40, kind="python"),),
    consumers=(Consumer("plot", "samples", group="plot"),),
    steps=(Acked("sensor", 200), Start(_CUT), Seconds(140), Stop(_CUT), Acked("sensor", 300)),
    # Without idempotence: what was in flight may be stored twice.
    expect={"sensor": Expect(duplicated=ANY, out_of_order=ANY)},
    within_s=300,
)
