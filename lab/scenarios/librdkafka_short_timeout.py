"""A librdkafka producer with message.timeout.ms=5000 loses its acks, then its network."""

from lab.faults import Network
from lab.scenario import ANY, SOME, Consumer, Expect, Producer, Scenario, Topic
from lab.steps import Acked, Failed, Seconds, Start, Stop

_DROP, _CUT = Network("drop_acks"), Network("cut")

SCENARIO = Scenario(
    name="librdkafka-short-timeout",
    question="What is lost of a librdkafka producer that waits five seconds for each message?",
    topics=(Topic("readings", settings={"min.insync.replicas": "2"}),),
    producers=(
        Producer(
            "meter",
            "readings",
            messages=3500,
            per_second=60,
            kind="python",
            settings={"message.timeout.ms": "5000", "socket.timeout.ms": "3000"},
        ),
    ),
    consumers=(Consumer("plant", "readings", group="plant", kind="python"),),
    steps=(
        Acked("meter", 300),
        Start(_DROP),
        Seconds(9),
        Stop(_DROP),
        Acked("meter", 200),
        Start(_CUT),
        Failed("meter", 250),
        Stop(_CUT),
        Acked("meter", 300),
    ),
    # What was stored and whose ack was dropped is told failed.
    expect={
        "meter": Expect(
            cause="delivery_timeout", lost_told=SOME, ghosts=SOME, duplicated=ANY, out_of_order=ANY
        )
    },
)
