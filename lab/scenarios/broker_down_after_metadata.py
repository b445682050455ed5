"""The only replica's broker dies under a producer that knows the topic: batches expire."""

from lab.faults import KillBroker
from lab.scenario import ANY, SOME, Consumer, Expect, Producer, Scenario, Topic
from lab.steps import Acked, Failed, Start, Stop

SCENARIO = Scenario(
    name="broker-down-after-metadata",
    question="What becomes of messages whose leader is gone for longer than delivery.timeout.ms?",
    topics=(Topic("invoices", replicas=((2,),)),),
    producers=(
        Producer(
            "invoicing",
            "invoices",
            messages=3000,
            per_second=100,
            settings={"request.timeout.ms": "3000", "delivery.timeout.ms": "8000"},
        ),
    ),
    consumers=(Consumer("ledger", "invoices", group="ledger"),),
    steps=(
        Acked("invoicing", 300),
        Start(KillBroker(2)),
        Failed("invoicing", 200),
        Stop(KillBroker(2)),
    ),
    # What was in flight when the broker died may have been stored: ghosts are possible.
    expect={"invoicing": Expect(cause="delivery_timeout", lost_told=SOME, ghosts=ANY)},
)
