"""Two programs end with messages queued: one purges them, one never asks what became of them."""

from lab.faults import Network, StopClient
from lab.scenario import ANY, SOME, Consumer, Expect, Producer, Scenario, Topic
from lab.steps import Acked, Seconds, Start, Stop

_CUT = Network("cut")

SCENARIO = Scenario(
    name="purged-and-dropped",
    question="What is lost when a producer is closed with messages still in its queue?",
    topics=(Topic("saves"), Topic("views")),
    producers=(
        Producer(
            "save",
            "saves",
            messages=6000,
            per_second=100,
            kind="python",
            on_stop="purge",
            settings={"message.timeout.ms": "30000"},
        ),
        Producer(
            "view",
            "views",
            messages=6000,
            per_second=100,
            kind="python",
            on_stop="drop",
            settings={"message.timeout.ms": "30000"},
        ),
    ),
    consumers=(
        Consumer("backup", "saves", group="backup", kind="python"),
        Consumer("trends", "views", group="trends", kind="python"),
    ),
    steps=(
        Acked("save", 400),
        Acked("view", 300),
        Start(_CUT),
        Seconds(2),
        Start(StopClient("save")),
        Start(StopClient("view")),
        Stop(_CUT),
    ),
    # Requests that the cut held back reach the broker after it, whoever has ended meanwhile.
    expect={
        "save": Expect(cause="dropped_at_close", lost_told=SOME, ghosts=ANY),
        "view": Expect(cause="dropped_at_close", lost_silent=SOME, lost_told=ANY, ghosts=ANY),
    },
)
