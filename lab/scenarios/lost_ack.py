"""The ack never comes, and the producer sends again without idempotence."""

from lab.faults import Network
from lab.scenario import ANY, SOME, Consumer, Expect, Producer, Scenario, Topic
from lab.steps import Acked, Seconds, Start, Stop

_LOST = Network("drop_acks")

SCENARIO = Scenario(
    name="lost-ack",
    question="What happens if the ack never comes, without idempotence?",
    topics=(Topic("orders-lost-ack"),),
    producers=(
        Producer(
            "orders",
            "orders-lost-ack",
            messages=3000,
            per_second=200,
            settings={
                "enable.idempotence": "false",
                "request.timeout.ms": "2000",
                "delivery.timeout.ms": "30000",
            },
        ),
    ),
    consumers=(Consumer("shop", "orders-lost-ack", group="shop"),),
    steps=(Acked("orders", 300), Start(_LOST), Seconds(3), Stop(_LOST), Acked("orders", 500)),
    expect={"orders": Expect(duplicated=SOME, out_of_order=ANY)},
)
