"""A transactional producer stands still, another takes its id over, and it wakes and is fenced."""

from lab.faults import PauseClient
from lab.scenario import ANY, SOME, Consumer, Expect, Producer, Scenario, Topic
from lab.steps import Acked, Launch, Start, Stop

_PAUSE = PauseClient("old")
_SETTINGS = {
    "transactional.id": "booking",
    "message.timeout.ms": "50000",
    "transaction.timeout.ms": "60000",
}

SCENARIO = Scenario(
    name="fenced-producer",
    question="Is anything lost, or owed to anybody, of a transaction whose producer was fenced?",
    topics=(Topic("seats", ((1, 2, 3), (2, 3, 1)), {"min.insync.replicas": "2"}),),
    producers=(
        Producer(
            *("old", "seats"),
            messages=4000,
            per_second=80,
            kind="python",
            transaction_messages=25,
            settings=_SETTINGS,
        ),
        Producer(
            *("new", "seats"),
            messages=1500,
            per_second=80,
            kind="python",
            transaction_messages=25,
            aborts_every=4,
            settings=_SETTINGS,
            starts_later=True,
        ),
    ),
    consumers=(
        Consumer("hall", "seats", group="hall", kind="python"),
        Consumer("watch", "seats", group="watch"),
    ),
    steps=(
        Acked("old", 600),
        Start(_PAUSE),
        Launch("new"),
        Acked("new", 500),
        Stop(_PAUSE),
        Acked("new", 300),
    ),
    # What it had handed over and not committed is aborted, told or not.
    expect={"old": Expect(aborted=SOME, lost_told=ANY, ghosts=ANY), "new": Expect(aborted=SOME)},
)
