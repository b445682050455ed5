"""The ack never comes, and the producer sends again with idempotence."""

from lab.faults import Network
from lab.scenario import Consumer, Expect, Producer, Scenario, Topic
from lab.steps import Acked, Seconds, Start, Stop

_LOST = Network("drop_acks")

SCENARIO = Scenario(
    name="lost-ack-idempotent",
    question="What happens if the ack never comes, with idempotence?",
    topics=(Topic("orders-lost-ack-idempotent"),),
    producers=(
        Producer(
            "orders",
            "orders-lost-ack-idempotent",
            messages=3000,
            per_second=200,
            settings={
                "enable.idempotence": "true",
                "request.timeout.ms": "2000",
                "delivery.timeout.ms": "30000",
            },
        ),
    ),
    consumers=(Consumer("shop", "orders-lost-ack-idempotent", group="shop-idempotent"),),
    steps=(Acked("orders", 300), Start(_LOST), Seconds(3), Stop(_LOST), Acked("orders", 500)),
    expect={"orders": Expect()},
)
