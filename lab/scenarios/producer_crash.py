"""A producer is killed with messages that `produce()` accepted and nobody has sent yet."""

from lab.faults import KillClient, Network
from lab.scenario import SOME, Consumer, Expect, Producer, Scenario, Topic
from lab.steps import Acked, Seconds, Start, Stop

_CUT = Network("cut")

SCENARIO = Scenario(
    name="producer-crash",
    question="What is lost when a producer dies with messages in its buffer?",
    topics=(Topic("signups"),),
    producers=(
        Producer(
            "signup",
            "signups",
            messages=3000,
            per_second=200,
            kind="python",
            settings={"message.timeout.ms": "30000"},
        ),
    ),
    consumers=(Consumer("mailer", "signups", group="mailer", kind="python"),),
    steps=(
        Acked("signup", 500),
        Start(_CUT),
        Seconds(1.5),
        Start(KillClient("signup")),
        Stop(_CUT),
    ),
    expect={"signup": Expect(cause="producer_crash", lost_silent=SOME)},
)
