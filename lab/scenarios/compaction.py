"""A compacted topic: of each key the newest value stays, and the older ones go."""

from lab.faults import StopClient
from lab.scenario import SOME, Consumer, Expect, Owed, Producer, Scenario, Topic
from lab.steps import Finished, Gone, Launch, Received, Start

SCENARIO = Scenario(
    name="compaction",
    question="Is a message lost, or owed to a group, once compaction has removed it?",
    topics=(
        Topic(
            "prices",
            settings={
                "cleanup.policy": "compact",
                "segment.ms": "3000",
                "min.cleanable.dirty.ratio": "0.01",
                "min.compaction.lag.ms": "0",
                "max.compaction.lag.ms": "1000",
                "min.insync.replicas": "2",
            },
        ),
    ),
    producers=(Producer("pricing", "prices", messages=4000, per_second=120, repeating_keys=50),),
    consumers=(
        Consumer("shop", "prices", group="shop"),
        Consumer("shelf", "prices", group="shelf"),
        Consumer("catalogue", "prices", group="catalogue", starts_later=True),
    ),
    steps=(
        Received("shelf", 400),
        Start(StopClient("shelf")),
        Finished("pricing"),
        Gone("prices", 1000, within=120),
        Launch("shelf"),
        Launch("catalogue"),
    ),
    expect={"pricing": Expect(taken=SOME)},
    owed={"shelf": Owed(), "catalogue": Owed(), "shop": Owed()},
)
