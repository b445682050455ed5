"""A compacted topic, and an admin who moves a group forward over what is left of it."""

from lab.admin import ResetGroup
from lab.faults import StopClient
from lab.scenario import ANY, SOME, Consumer, Expect, Owed, Producer, Scenario, Topic
from lab.steps import Do, Finished, Gone, Launch, Received, Seconds, Start

SCENARIO = Scenario(
    name="compaction-and-reset",
    question="What does a group miss that was moved over records, some of which are compacted?",
    topics=(
        Topic(
            "rates",
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
    producers=(Producer("bourse", "rates", messages=3000, per_second=80, repeating_keys=700),),
    consumers=(
        Consumer("till", "rates", group="till"),
        Consumer("board", "rates", group="board"),
    ),
    steps=(
        Received("board", 400),
        Start(StopClient("board")),
        Finished("bourse"),
        Gone("rates", 500, within=120),
        Do(ResetGroup("board", "rates", by=2400)),
        Seconds(6),
        Launch("board"),
    ),
    expect={"bourse": Expect(taken=SOME)},
    owed={"board": Owed(skipped=SOME, expired=ANY, cause="consumer_reset"), "till": Owed()},
)
