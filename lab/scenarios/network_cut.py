"""Nothing passes between clients and brokers for five seconds: less than the retry budget."""

from lab.faults import Network
from lab.scenario import Consumer, Expect, Producer, Scenario, Topic
from lab.steps import Acked, Seconds, Start, Stop

_CUT = Network("cut")

SCENARIO = Scenario(
    name="network-cut",
    question="Does a network cut shorter than the budget lose anything with default settings?",
    topics=(Topic("parcels", settings={"min.insync.replicas": "2"}),),
    producers=(Producer("parcel", "parcels", messages=4000, per_second=200),),
    consumers=(Consumer("tracking", "parcels", group="tracking"),),
    steps=(Acked("parcel", 600), Start(_CUT), Seconds(5), Stop(_CUT), Acked("parcel", 1000)),
    expect={"parcel": Expect()},
)
