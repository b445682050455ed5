"""A topic that takes smaller batches than the producer makes: clients before 4.3 split for ever."""

from lab.admin import AlterTopic
from lab.scenario import ANY, Consumer, Expect, Producer, Scenario, Topic
from lab.steps import Acked, Do, Finished

SCENARIO = Scenario(
    name="batch-above-topic-limit",
    question="What becomes of messages whose batch is larger than `max.message.bytes`?",
    topics=(Topic("readings"),),
    producers=(
        Producer(
            "sensor",
            "readings",
            messages=1000,
            per_second=200,
            settings={
                "linger.ms": "500",
                "request.timeout.ms": "5000",
                "delivery.timeout.ms": "15000",
            },
        ),
    ),
    consumers=(Consumer("dashboard", "readings", group="dashboard"),),
    steps=(
        Acked("sensor", 200),
        Do(AlterTopic("readings", {"max.message.bytes": "1000"})),
        Finished("sensor", within=120),
    ),
    # 4.3 makes smaller batches (KAFKA-8350); 3.9 tries the same again until it expires.
    expect={"sensor": Expect(cause="delivery_timeout", lost_told=ANY)},
)
