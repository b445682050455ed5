"""With --once the topic is read to the end it had, however slowly its messages come."""

from __future__ import annotations

import json
from types import SimpleNamespace

import pytest
from confluent_kafka import KafkaError

from acktrail.errors import SourceUnavailable
from acktrail.settings.model import KafkaSettings
from acktrail.settings.sources import LogTopicSource
from ingest.kafka.topic_reader import PartitionProgress, TopicReader
from ingest.registry import SourceContext
from ingest.sources.log_topic import LogTopic
from ingest.sources.shipped_records import PartitionLines

PLACE = ("logs", 0)
REFUSED = KafkaError.GROUP_AUTHORIZATION_FAILED


def message(offset: int, error: int | None = None) -> SimpleNamespace:
    text = f"2026-01-31 10:00:0{offset},001 ERROR produce response {offset}"
    value = json.dumps({"message": text, "host": {"name": "h"}}).encode()
    return SimpleNamespace(
        error=lambda: None if error is None else KafkaError(error),
        topic=lambda: PLACE[0],
        partition=lambda: PLACE[1],
        offset=lambda: offset,
        value=lambda: value,
        timestamp=lambda: (1, 1_790_000_000_000 + offset),
    )


class Broker:
    """Answers each call with the next of *answers*; then with nothing."""

    def __init__(self, answers: list[list[SimpleNamespace]]) -> None:
        self.answers = list(answers)

    def consume(self, _most: int, _timeout: float) -> list[SimpleNamespace]:
        return self.answers.pop(0) if self.answers else []


def read(answers: list[list[SimpleNamespace]], end: int) -> list[int]:
    """The offsets of all records, as `acktrail agent --once` reads them."""
    settings = LogTopicSource(
        kind="log_topic", name="fleet", topics=("logs",), shape="filebeat", timeout_s=0.05
    )
    kafka = KafkaSettings(bootstrap_servers="127.0.0.1:1")
    source = LogTopic(settings, SourceContext("c", kafka, once=True))
    config = {"bootstrap.servers": "127.0.0.1:1"}
    source._reader = reader = TopicReader("fleet", config, ("logs",), 0.05, once=True)
    reader._consumer = Broker(answers)  # type: ignore[assignment]
    reader.places = {PLACE: PartitionProgress("logs-0@id", 0, 0, end)}
    source._parts = {PLACE: PartitionLines(None, 0)}
    found: list[int] = []
    while batches := list(source.poll(0.01)):
        for batch in batches:
            found += batch.rows.column("position").to_pylist()
    return found


CASES = [
    # case, what each call gives
    ("all at once", [[message(0), message(1), message(2)]]),
    ("one line at a time: each may go on", [[message(0)], [message(1)], [message(2)]]),
    (
        "first a refusal that does not matter",
        [[message(0, REFUSED)], [message(0)], [message(1), message(2)]],
    ),
    ("nothing for a while", [[], [], [message(0), message(1), message(2)]]),
]


@pytest.mark.parametrize("answers", [c[1] for c in CASES], ids=[c[0] for c in CASES])
def test_everything_that_was_there_is_read(answers):
    assert read(answers, end=3) == [0, 1, 2]


def test_an_end_that_is_not_reached_is_an_error():
    with pytest.raises(SourceUnavailable, match="end was not reached"):
        read([[message(0)], [message(1)]], end=3)
