"""A producer that aborts every third transaction, while a broker dies and returns."""

from lab.faults import KillBroker
from lab.scenario import SOME, Consumer, Expect, Producer, Scenario, Topic
from lab.steps import Acked, LeaderMoved, Start, Stop

SCENARIO = Scenario(
    name="transactions-aborted",
    question="Is anything lost, or owed to anybody, of transactions that were aborted?",
    topics=(Topic("bookings", ((1, 2, 3), (2, 3, 1)), {"min.insync.replicas": "2"}),),
    producers=(
        Producer(
            "booking",
            "bookings",
            messages=3000,
            per_second=80,
            kind="python",
            transaction_messages=20,
            aborts_every=3,
            settings={
                "transactional.id": "booking",
                "message.timeout.ms": "50000",
                "transaction.timeout.ms": "60000",
            },
        ),
    ),
    consumers=(
        Consumer(
            "ledger", "bookings", group="ledger", settings={"isolation.level": "read_committed"}
        ),
        Consumer("audit", "bookings", group="audit", kind="python"),
        Consumer("preview", "bookings", group="preview"),
    ),
    steps=(
        Acked("booking", 500),
        Start(KillBroker(1)),
        LeaderMoved("bookings", (2, 3)),
        Acked("booking", 500),
        Stop(KillBroker(1)),
    ),
    expect={"booking": Expect(aborted=SOME)},
)
