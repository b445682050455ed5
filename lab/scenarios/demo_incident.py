"""An afternoon on call, in three minutes: several producers, two faults, four fates."""

from lab.faults import KillBroker, PauseBrokers
from lab.scenario import ANY, SOME, Consumer, Expect, Producer, Scenario, Topic
from lab.steps import Acked, Finished, InSync, Launch, LeaderMoved, Seconds, Start, Stop

SCENARIO = Scenario(
    name="demo-incident",
    question="A loss after ack, two burning budgets, a producer that gave up, one that is fine.",
    topics=(
        Topic("payments"),
        Topic("orders", ((1, 2, 3), (2, 1, 3)), {"min.insync.replicas": "3"}),
        Topic("shipments", ((2, 1, 3),), {"min.insync.replicas": "3"}),
        Topic("refunds", ((1, 2, 3),), {"min.insync.replicas": "3"}),
        Topic("clicks", ((2, 3, 1), (1, 2, 3)), {"min.insync.replicas": "2"}),
    ),
    producers=(
        Producer(
            "payments-api",
            "payments",
            messages=4000,
            per_second=100,
            acks="1",
            settings={"request.timeout.ms": "10000", "delivery.timeout.ms": "60000"},
        ),
        Producer("clicks-tracker", "clicks", messages=5000, per_second=50),
        # Default settings: retries=2147483647, so only time runs out.
        Producer(
            "orders-api",
            "orders",
            messages=4000,
            per_second=20,
            starts_later=True,
            unfinished=True,
        ),
        # Retries run out one by one.
        Producer(
            "shipments-api",
            "shipments",
            messages=2000,
            per_second=5,
            retries=25,
            settings={"retry.backoff.ms": "3000", "retry.backoff.max.ms": "3000"},
            starts_later=True,
            unfinished=True,
        ),
        Producer(
            "refunds-api",
            "refunds",
            messages=500,
            per_second=20,
            retries=5,
            settings={
                "linger.ms": "1000",
                "retry.backoff.ms": "300",
                "retry.backoff.max.ms": "300",
                "request.timeout.ms": "10000",
                "delivery.timeout.ms": "30000",
            },
            starts_later=True,
        ),
    ),
    consumers=(
        Consumer("billing", "payments", group="billing"),
        Consumer("analytics", "clicks", group="analytics"),
        Consumer("fulfilment", "orders", group="fulfilment", kind="python"),
    ),
    steps=(
        Acked("payments-api", 500),
        Start(PauseBrokers((2, 3))),
        Seconds(0.5),
        Acked("payments-api", 150, within=2.0, or_go_on=True),
        Start(KillBroker(1)),
        Stop(PauseBrokers((2, 3))),
        LeaderMoved("payments", (2, 3)),
        Acked("payments-api", 300),
        Stop(KillBroker(1)),
        InSync(),
        Launch("orders-api"),
        Launch("shipments-api"),
        Launch("refunds-api"),
        Acked("orders-api", 100),
        Acked("shipments-api", 20),
        Acked("refunds-api", 60),
        Start(KillBroker(3)),
        Finished("refunds-api"),
        Seconds(40),
    ),
    expect={
        "payments-api": Expect(
            cause="acks_1_leader_change", lost_after_ack=SOME, duplicated=ANY, out_of_order=ANY
        ),
        "clicks-tracker": Expect(),
        "orders-api": Expect(lost_silent=ANY),
        "shipments-api": Expect(lost_silent=ANY),
        "refunds-api": Expect(cause="retries_exhausted", lost_told=SOME, ghosts=ANY),
    },
    within_s=420,
    ends_broken=True,
)
