"""A consumer commits a batch before it processes it, and is killed in the middle."""

from lab.faults import KillClient
from lab.scenario import SOME, Consumer, Expect, Owed, Producer, Scenario, Topic
from lab.steps import Acked, Launch, Received, Seconds, Start

SCENARIO = Scenario(
    name="commit-ahead-and-kill",
    question="What does a group miss that commits before it processes, when a member is killed?",
    topics=(Topic("mails", settings={"min.insync.replicas": "2"}),),
    producers=(Producer("post", "mails", messages=4000, per_second=80),),
    consumers=(
        Consumer(
            "sender",
            "mails",
            group="sender",
            kind="python",
            commits="ahead",
            processing_ms=9,
        ),
        Consumer("archive", "mails", group="archive"),
    ),
    steps=(
        Received("sender", 450),
        Start(KillClient("sender")),
        Acked("post", 200),
        Launch("sender"),
        Received("sender", 1250),
        Start(KillClient("sender")),
        # Until its session is over and the group is seen to be empty.
        Seconds(18),
        Launch("sender"),
    ),
    expect={"post": Expect()},
    owed={"sender": Owed(skipped=SOME, cause="commit_before_processing"), "archive": Owed()},
)
