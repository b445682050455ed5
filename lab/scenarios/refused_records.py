"""Records that never reach a log: too large, no room in the buffer, a topic nobody knows."""

from lab.admin import AlterTopic
from lab.faults import Network
from lab.scenario import ANY, SOME, Consumer, Expect, Producer, Scenario, Topic
from lab.steps import Acked, Do, Failed, Launch, Seconds, Start, Stop

_CUT, _REFUSED = Network("cut"), Network("refused")

SCENARIO = Scenario(
    name="refused-records",
    question="Are records that were refused before anything was stored told from lost ones?",
    topics=(
        Topic("photos", settings={"max.message.bytes": "1000"}),
        Topic("notes"),
        Topic("logins"),
        Topic("likes"),
    ),
    producers=(
        # One record in ten is larger than the topic takes.
        Producer(
            "camera",
            "photos",
            messages=1500,
            per_second=40,
            kind="python",
            large_every=10,
            large_bytes=3000,
            settings={"message.timeout.ms": "30000"},
        ),
        # The topic is made stricter than any record is small.
        Producer(
            "writer",
            "notes",
            messages=1500,
            per_second=40,
            settings={"request.timeout.ms": "10000", "delivery.timeout.ms": "30000"},
        ),
        # The buffer is full while nothing passes.
        Producer(
            "likes-api",
            "likes",
            messages=4000,
            per_second=400,
            settings={
                "buffer.memory": "32768",
                "max.block.ms": "500",
                "linger.ms": "0",
                "request.timeout.ms": "20000",
                "delivery.timeout.ms": "30000",
            },
            starts_later=True,
        ),
        # It starts while nobody answers.
        Producer(
            "login",
            "logins",
            messages=200,
            per_second=40,
            settings={
                "max.block.ms": "3000",
                "request.timeout.ms": "2000",
                "delivery.timeout.ms": "30000",
            },
            starts_later=True,
        ),
    ),
    consumers=(
        Consumer("album", "photos", group="album"),
        Consumer("search", "notes", group="search"),
        Consumer("counter", "likes", group="counter"),
        Consumer("sessions", "logins", group="sessions"),
    ),
    steps=(
        Acked("camera", 200),
        Acked("writer", 200),
        Do(AlterTopic("notes", {"max.message.bytes": "60"})),
        Failed("writer", 100),
        Do(AlterTopic("notes", {"max.message.bytes": "1048588"})),
        Launch("likes-api"),
        Acked("likes-api", 500),
        Start(_CUT),
        Failed("likes-api", 5),
        Seconds(2),
        Stop(_CUT),
        Start(_REFUSED),
        Launch("login"),
        Failed("login", 2),
        Stop(_REFUSED),
    ),
    expect={
        # A retry may be sent together with a record that is too large, and fail with it.
        "camera": Expect(
            cause="record_too_large", lost_told=SOME, ghosts=ANY, out_of_order=ANY, duplicated=ANY
        ),
        "writer": Expect(cause="record_too_large", lost_told=SOME, out_of_order=ANY),
        "likes-api": Expect(cause="buffer_exhausted", lost_told=SOME),
        "login": Expect(cause="metadata_timeout", lost_told=SOME),
    },
)
