"""A loss by acks=1; later an admin deletes the records around it."""

from lab.admin import DeleteRecords
from lab.faults import KillBroker, PauseBrokers
from lab.scenario import ANY, SOME, Consumer, Expect, Producer, Scenario, Topic
from lab.steps import Acked, Do, InSync, LeaderMoved, Seconds, Start, Stop

SCENARIO = Scenario(
    name="lost-then-deleted",
    question="Is a loss still known once the records around it have been deleted?",
    topics=(Topic("claims"),),
    producers=(
        Producer(
            "claim",
            "claims",
            messages=6000,
            per_second=80,
            acks="1",
            settings={"request.timeout.ms": "4000", "delivery.timeout.ms": "60000"},
        ),
    ),
    consumers=(Consumer("insurer", "claims", group="insurer"),),
    steps=(
        Acked("claim", 400),
        Start(PauseBrokers((2, 3))),
        Seconds(0.5),
        Acked("claim", 150, within=2.5, or_go_on=True),
        Start(KillBroker(1)),
        Stop(PauseBrokers((2, 3))),
        LeaderMoved("claims", (2, 3)),
        Acked("claim", 300),
        Stop(KillBroker(1)),
        InSync(),
        Seconds(25),  # The scanner beside the run looks meanwhile.
        Do(DeleteRecords("claims", keep=200)),
        Acked("claim", 200),
    ),
    expect={
        "claim": Expect(
            cause="acks_1_leader_change",
            lost_after_ack=SOME,
            taken=SOME,
            duplicated=ANY,
            out_of_order=ANY,
        )
    },
    missed={"insurer": ANY},
)
