"""The disk of a broker is replaced, and it held the only replica."""

from lab.admin import WipeBroker
from lab.faults import StopBroker
from lab.scenario import ANY, SOME, Consumer, Expect, Producer, Scenario, Topic
from lab.steps import Acked, Do, Received, Start, Stop

SCENARIO = Scenario(
    name="disk-wiped-rf-1",
    question="What is lost when the disk that held the only replica is wiped?",
    topics=(Topic("thumbnails", ((3,),)),),
    producers=(
        Producer(
            "resize",
            "thumbnails",
            messages=4000,
            per_second=80,
            settings={"request.timeout.ms": "10000", "delivery.timeout.ms": "90000"},
        ),
    ),
    consumers=(
        Consumer("cdn", "thumbnails", group="cdn", settings={"metadata.max.age.ms": "3000"}),
    ),
    steps=(
        Acked("resize", 600),
        Received("cdn", 400),
        Start(StopBroker(3)),
        Do(WipeBroker(3)),
        Stop(StopBroker(3)),
        Acked("resize", 600),
    ),
    expect={
        "resize": Expect(
            cause="log_directory_lost",
            lost_after_ack=SOME,
            out_of_order=ANY,
            duplicated=ANY,
            cut=SOME,
        )
    },
    missed={"cdn": ANY},
)
