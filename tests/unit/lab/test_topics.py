"""Topics are made although a client's first request may be lost."""

from __future__ import annotations

from concurrent.futures import Future

import pytest
from confluent_kafka import KafkaError, KafkaException
from confluent_kafka.admin import NewTopic

from acktrail.errors import LabError
from lab import snapshots

LOST, THERE, BAD = (
    KafkaError._TRANSPORT,
    KafkaError.TOPIC_ALREADY_EXISTS,
    KafkaError.INVALID_REPLICATION_FACTOR,
)


class Admin:
    """Answers each request for a topic with the next of its *answers* (0: made)."""

    def __init__(self, **answers: list[int]) -> None:
        self.answers = answers

    def create_topics(self, new, operation_timeout):  # noqa: ARG002 - as the real one is called
        found = {}
        for topic in new:
            answer = self.answers[topic.topic].pop(0)
            found[topic.topic] = Future()
            if answer:
                found[topic.topic].set_exception(KafkaException(KafkaError(answer)))
            else:
                found[topic.topic].set_result(None)
        return found


@pytest.mark.parametrize(
    ("case", "answers", "made"),
    [
        ("at once", {"a": [0], "b": [0]}, True),
        ("the request was lost", {"a": [LOST, LOST, 0]}, True),
        ("its answer was lost", {"a": [LOST, THERE], "b": [0]}, True),
        ("it was there before", {"a": [THERE]}, False),
        ("refused", {"a": [BAD]}, False),
    ],
)
def test_a_lost_request_is_sent_again(case, answers, made) -> None:
    admin, new = Admin(**answers), [NewTopic(name, 1) for name in answers]
    if made:
        snapshots._create(admin, new, 5.0)  # type: ignore[arg-type]
        assert not any(admin.answers.values()), case
    else:
        with pytest.raises(LabError, match="could not be created"):
            snapshots._create(admin, new, 5.0)  # type: ignore[arg-type]
