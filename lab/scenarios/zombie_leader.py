"""A leader that stood still while another was elected acks what it will have to cut off."""

from lab.faults import PauseBrokers
from lab.scenario import ANY, SOME, Consumer, Expect, Producer, Scenario, Topic
from lab.steps import Acked, LeaderMoved, Start, Stop

_PAUSE = PauseBrokers((1,))

SCENARIO = Scenario(
    name="zombie-leader",
    question="With acks=1, what is lost that a deposed leader acks before it knows?",
    topics=(Topic("bids", ((1, 2, 3),)),),
    producers=(
        Producer(
            "bidder",
            "bids",
            # So many that the log grows past what is cut off: only then it is known to be gone.
            messages=9000,
            per_second=150,
            acks="1",
            # Patient: what was sent to the leader waits there until it wakes.
            settings={"request.timeout.ms": "60000", "delivery.timeout.ms": "120000"},
        ),
    ),
    consumers=(Consumer("auction", "bids", group="auction"),),
    steps=(
        Acked("bidder", 600),
        Start(_PAUSE),
        LeaderMoved("bids", (2, 3)),
        Stop(_PAUSE),
        Acked("bidder", 300),
    ),
    expect={
        "bidder": Expect(
            cause="acks_1_leader_change", lost_after_ack=SOME, duplicated=ANY, out_of_order=ANY
        )
    },
    missed={"auction": ANY},
)
