"""No broker can be reached before the producer knows the topic: `send()` blocks and gives up."""

from lab.faults import Network
from lab.scenario import SOME, Consumer, Expect, Producer, Scenario, Topic
from lab.steps import Failed, Launch, Start, Stop

_DOWN = Network("refused")

SCENARIO = Scenario(
    name="broker-down-before-metadata",
    question="What becomes of messages sent while no broker has ever answered (max.block.ms)?",
    topics=(Topic("invoices"),),
    producers=(
        Producer(
            "invoicing",
            "invoices",
            messages=300,
            per_second=20,
            settings={
                "max.block.ms": "2000",
                "request.timeout.ms": "2000",
                "delivery.timeout.ms": "10000",
                "reconnect.backoff.max.ms": "500",
            },
            starts_later=True,
        ),
    ),
    consumers=(Consumer("ledger", "invoices", group="ledger"),),
    steps=(Start(_DOWN), Launch("invoicing"), Failed("invoicing", 4), Stop(_DOWN)),
    expect={"invoicing": Expect(cause="metadata_timeout", lost_told=SOME)},
)
