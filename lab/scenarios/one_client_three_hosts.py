"""One application on three hosts under one client id, and only one of them has acks=all."""

from lab.faults import KillBroker, PauseBrokers
from lab.scenario import ANY, SOME, Consumer, Expect, Producer, Scenario, Topic
from lab.steps import Acked, LeaderMoved, Seconds, Start, Stop

_SETTINGS = {"request.timeout.ms": "4000", "delivery.timeout.ms": "60000"}
_LOSES = Expect(cause="acks_1_leader_change", lost_after_ack=SOME, duplicated=ANY, out_of_order=ANY)


def _on(host: str, acks: str) -> Producer:
    return Producer(
        host,
        "carts",
        messages=2500,
        per_second=60,
        acks="1" if acks == "1" else "all",
        client_id="checkout",
        on_host=host,
        settings=_SETTINGS,
    )


SCENARIO = Scenario(
    name="one-client-three-hosts",
    question="Of one client id on three hosts with different acks, who loses when a leader dies?",
    topics=(Topic("carts", settings={"min.insync.replicas": "1"}),),
    producers=(_on("web-1", "1"), _on("web-2", "all"), _on("web-3", "1")),
    consumers=(Consumer("fulfil", "carts", group="fulfil"),),
    steps=(
        Acked("web-1", 300),
        Acked("web-2", 100),
        Acked("web-3", 100),
        Start(PauseBrokers((2, 3))),
        Seconds(0.5),
        Acked("web-1", 60, within=2.0, or_go_on=True),
        Start(KillBroker(1)),
        Stop(PauseBrokers((2, 3))),
        LeaderMoved("carts", (2, 3)),
        Acked("web-1", 200),
        Stop(KillBroker(1)),
    ),
    expect={"web-1": _LOSES, "web-2": Expect(), "web-3": _LOSES},
    missed={"fulfil": ANY},
)
