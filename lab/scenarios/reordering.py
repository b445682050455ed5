"""Five requests in flight, no idempotence, and the leader moves: retries overtake each other."""

from lab.faults import Network, StopBroker
from lab.scenario import ANY, SOME, Consumer, Expect, Producer, Scenario, Topic
from lab.steps import Acked, LeaderMoved, Start, Stop

_LATE = Network("delay_acks_s", value=0.15)

SCENARIO = Scenario(
    name="reordering",
    question="Can messages overtake each other with several requests in flight?",
    topics=(Topic("ledger-entries"),),
    producers=(
        Producer(
            "ledger",
            "ledger-entries",
            messages=3000,
            per_second=200,
            settings={
                "enable.idempotence": "false",
                "max.in.flight.requests.per.connection": "5",
                "batch.size": "200",
                "request.timeout.ms": "6000",
                "delivery.timeout.ms": "30000",
            },
        ),
    ),
    consumers=(Consumer("audit", "ledger-entries", group="audit"),),
    steps=(
        Start(_LATE),
        Acked("ledger", 300),
        Start(StopBroker(1)),
        LeaderMoved("ledger-entries", (2, 3)),
        Stop(_LATE),
        Acked("ledger", 300),
        Stop(StopBroker(1)),
    ),
    expect={"ledger": Expect(out_of_order=SOME, duplicated=ANY)},
)
